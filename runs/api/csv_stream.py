"""Lists as CSV: every row that the filters leave, sent while it is read."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.serializers import Serializer

from runs.reports.tables import csv_cell

# Rows that the database sends at a time.
CHUNK = 2000


class CSVRenderer(JSONRenderer):
    """Makes `format=csv` known. It renders problems, as JSON; rows do not come by here."""

    media_type = "text/csv"
    format = "csv"


class _Line:
    """What csv.writer writes a line into; gives it back."""

    def write(self, line: str) -> str:
        return line


def stream(rows: QuerySet[Any], serializer: Serializer[Any], *, name: str) -> StreamingHttpResponse:
    """The rows as the serializer tells them, a header first; mappings are JSON within a field.

    No text is a formula for a spreadsheet (`tables.csv_cell`).

    Takes as little memory for ten million rows as for ten: none is kept.
    """
    response = StreamingHttpResponse(
        _lines(rows, serializer), content_type="text/csv; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _lines(rows: QuerySet[Any], serializer: Serializer[Any]) -> Iterator[str]:
    writer = csv.writer(_Line(), lineterminator="\n")
    yield str(writer.writerow(serializer.fields))
    for row in rows.iterator(chunk_size=CHUNK):
        yield str(writer.writerow(map(_cell, serializer.to_representation(row).values())))


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return csv_cell(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
