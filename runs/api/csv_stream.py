"""Lists as CSV: every row that the filters leave, sent while it is read."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings

from runs.reports.tables import csv_cell

# Rows that the database sends at a time.
CHUNK = 2000

Told = Callable[[Sequence[Any]], Sequence[Any]]


class CSVRenderer(JSONRenderer):
    """Makes `format=csv` known. It renders problems, as JSON; rows do not come by here."""

    media_type = "text/csv"
    format = "csv"


class _Line:
    """What csv.writer writes a line into; gives it back."""

    def write(self, line: str) -> str:
        return line


def for_links(request: Request) -> HttpRequest:
    """The request without its `format`, which would go on into every address in the rows."""
    plain = copy(request._request)
    query = request.query_params.copy()
    query.pop(str(api_settings.URL_FORMAT_OVERRIDE), None)
    plain.GET = query  # type: ignore[assignment]  # as mutable as Django's own is not
    return plain


def stream(
    rows: QuerySet[Any], serializer: Serializer[Any], *, name: str, told: Told
) -> StreamingHttpResponse:
    """The rows as the serializer gives them, a header first; nested values are JSON in their field.

    `told` prepares some rows at a time for the serializer. No text is a formula for a
    spreadsheet (`tables.csv_cell`).

    Takes as little memory for ten million rows as for ten: none is kept.
    """
    response = StreamingHttpResponse(
        _lines(rows, serializer, told), content_type="text/csv; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _lines(rows: QuerySet[Any], serializer: Serializer[Any], told: Told) -> Iterator[str]:
    writer = csv.writer(_Line(), lineterminator="\n")
    yield str(writer.writerow(serializer.fields))
    for chunk in _chunks(rows.iterator(chunk_size=CHUNK)):
        for row in told(chunk):
            yield str(writer.writerow(map(_cell, serializer.to_representation(row).values())))


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    return value
