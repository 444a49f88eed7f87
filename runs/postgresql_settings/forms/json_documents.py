"""JSON of cloud providers and controllers: objects with a name and a value, or an object of both.

`aws rds modify-db-parameter-group` has them in quotes; literals of Python and JavaScript are read.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from runs import foreign_json
from runs.postgresql_settings.catalogue import existence
from runs.postgresql_settings.forms import pairs
from runs.postgresql_settings.forms.reading import (
    FormReading,
    is_preset,
    is_setting,
    known_name,
)

_QUOTED = re.compile(r"--(?:parameters|config-json)\s++'(\s*+[\[{][^']*+)'")
# Keys that stand beside settings in no other provider's object.
_OF_AIVEN = frozenset({"pg", "pgbouncer", "pglookout", "shared_buffers_percentage"})
# Session state that current_setting() has besides.
_OF_SESSION = frozenset(
    {"session_authorization", "is_superuser", "transaction_read_only", "role"}
)


def read(text: str) -> FormReading | None:
    """Objects with a name and a value at any depth, or an object of settings."""
    quoted = _QUOTED.search(text)
    document = _document(quoted[1] if quoted else foreign_json.convert_literal(text))
    objects = list(_objects(document)) if isinstance(document, dict | list) else []
    reading = FormReading()
    for row in objects:
        pairs.take_row(reading, 1, row, is_exact=True)
    if not reading.settings:
        for row in map(_add_units, objects):
            _take_object(reading, row)
    placed = [
        (_line_of(text, name), name, value) for _one, name, value in reading.settings
    ]
    return FormReading(placed, reading.left_out, reading.faults) if placed else None


def _document(text: str) -> Any:
    """The document, or the list of those that each line is; None for another text."""
    try:
        return foreign_json.loads(text)
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or not all(line.lstrip()[:1] == "{" for line in lines):
        return None
    try:
        return [foreign_json.loads(line) for line in lines]
    except ValueError:
        return None


def _take_object(reading: FormReading, row: dict[str, Any]) -> None:
    if row.get("op") in {"add", "replace"} and isinstance(row.get("path"), str):
        # A patch (RFC 6902): the setting is the last step of its path.
        row = {row["path"].rpartition("/")[2]: row.get("value")}
    for key, value in row.items():
        if key.endswith(".conf"):  # a file, which YAML's reader takes
            continue
        name = key if is_setting(key) else known_name(key)
        if not name or is_preset(name) or name in _OF_SESSION:
            continue
        if (
            isinstance(value, list)
            and value
            and all(isinstance(item, str) for item in value)
        ):
            reading.settings.append((1, name, ",".join(value)))
        elif isinstance(value, str | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            reading.settings.append((1, name, text))


def _add_units(row: dict[str, Any]) -> dict[str, Any]:
    """Aiven and DigitalOcean count work_mem in MB, and others in their own units."""
    if isinstance(row.get("work_mem"), int) and row.keys() & _OF_AIVEN:
        return {**row, "work_mem": f"{row['work_mem']}MB"}
    return row


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, list) and all(
        isinstance(row, list) and len(row) == 2 for row in document
    ):
        document = {str(name): value for name, value in document}
    if isinstance(document, dict):
        document = _exclude_status(document)
        rows_by_name = {
            name: row for name, row in document.items() if isinstance(row, dict)
        }
        setting_rows = [
            {"name": name, **row}
            for name, row in rows_by_name.items()
            if existence(name)
        ]
        yield from setting_rows or [document]
    for element in document.values() if isinstance(document, dict) else document:
        if isinstance(element, dict | list):
            yield from _objects(element)


def _exclude_status(document: dict[str, Any]) -> dict[str, Any]:
    """What people have written of a controller's object, and not what it says of its state."""
    if "spec" not in document:
        return document
    return {
        name: value
        for name, value in document.items()
        if name not in {"status", "metadata"}
    }


def _line_of(text: str, name: str) -> int:
    offset = text.find(json.dumps(name))
    return text.count("\n", 0, max(offset, 0)) + 1
