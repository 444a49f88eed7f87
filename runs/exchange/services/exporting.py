"""A project as lines of JSON, generated while it is read."""

import base64
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import IO, Any

from django.db import connection, transaction

from runs.exchange.selectors import exchange
from runs.exchange.services.reading import IMPORTED, PART_BYTES
from runs.export_reader import END, FILE, FORMAT, FORMAT_VERSION
from runs.models import Campaign, Instance, Project
from runs.queue.services import artifacts
from runs.seals.selectors import export_fields
from runs.seals.selectors.export_fields import Row


def lines(project: Project) -> Iterator[bytes]:
    """The project as lines, each with its newline; a consistent snapshot.

    The same content gives the same bytes in any database.
    """
    with transaction.atomic():
        if len(connection.savepoint_ids) == 0:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
                )
        number = 1
        owner = {
            "slug": project.slug,
            "name": project.name,
            "public": project.is_public,
        }
        instance = Instance.objects.values_list("name", flat=True).first()
        first = {
            "version": FORMAT_VERSION,
            "project": owner,
            "instance": str(instance or ""),
        }
        yield _line(FORMAT, first)
        for kind, row in _rows(project):
            number += 1
            yield _line(kind, row)
        yield _line(END, {"lines": number + 1})


def _rows(project: Project) -> Iterator[tuple[str, Row]]:
    for kind, row in exchange.shared(project):
        if kind == "topology":
            row["slug"] = row["slug"].removeprefix(IMPORTED)
        yield kind, row
    for digest, content in artifacts.opened(exchange.files(project)):
        if content is not None:
            yield from _file(digest, content)
    for kind, row in exchange.results(project):
        yield kind, TOLD.get(kind, _resolved)(row)
    for row in exchange.seals(project):
        yield "seal", row


def _file(digest: str, packed: IO[bytes]) -> Iterator[tuple[str, Row]]:
    with packed as content:
        piece = content.read(PART_BYTES)
        while piece:
            following = content.read(PART_BYTES)
            encoded = base64.b64encode(piece).decode()
            yield FILE, {"sha256": digest, "gzip": encoded, "last": not following}
            piece = following


def _resolved(row: Row) -> Row:
    """The row with its references resolved."""
    return {name.removeprefix("link_"): value for name, value in row.items()}


def _resolved_campaign(row: Row) -> Row:
    resolved = _resolved(row)
    resolved["topology"] = (resolved["topology"] or "").removeprefix(IMPORTED) or None
    if resolved["state"] not in Campaign.ENDED:
        # Runs that have not ended are not exported.
        resolved["state"] = Campaign.State.INCOMPLETE.value
    return resolved


def _told_run(row: Row) -> Row:
    resolved = _resolved(row)
    labels = dict(resolved["labels"])
    elsewhere = labels.pop(export_fields.ELSEWHERE, None)
    resolved["labels"] = labels
    resolved["server"] = resolved["server"] or elsewhere
    if resolved["plan"] is not None:
        resolved["plan"] = {
            name: value
            for name, value in resolved["plan"].items()
            if name not in export_fields.SECRET_IN_PLAN
        }
    for name in ("measurements", "changes"):
        resolved[name] = [_resolved(nested_row) for nested_row in resolved[name]]
    return resolved


TOLD = {"campaign": _resolved_campaign, "run": _told_run}


def _line(kind: str, row: Row) -> bytes:
    """In canonical form, so that a digest of what is read is a digest of the bytes."""
    text = json.dumps(
        {"type": kind, **row},
        ensure_ascii=False,
        default=_plain,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    raise TypeError(f"{type(value).__name__} has no form in an export")
