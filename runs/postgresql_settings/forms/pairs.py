"""A name and a value, each on a line or in a field of its own: Terraform, Cloud SQL, Ansible, SHOW.

Rows of tables and objects of JSON are such pairs, too.
"""

import re
from collections.abc import Mapping
from typing import Any

from runs.postgresql_settings import units
from runs.postgresql_settings.forms.reading import (
    FormReading,
    is_name,
    is_preset,
    is_setting,
    sql_literal,
)

_OF_TABLES = (
    "name",
    "parametername",
    "parameter_name",
    "parameter name",
    "parameter",
)
NAMES = (*_OF_TABLES, "option", "key", "flag")
# What was changed has a column before it.
_CHANGED = ("after", "new", "new value", "new setting", "変更後", "新しい値")
VALUES = (
    *_CHANGED,
    "setting",
    "value",
    "parametervalue",
    "parameter_value",
    "parameter value",
    "currentvalue",
    "current value",
    "current_setting",
    "values",
)
_PAIR = re.compile(
    r"\A\s*+(?:- )?(?P<key>(?:parameter)?(?:name|value)|key|option|setting|unit|parameter|source)"
    r"\s*+(?P<separator>[:=]\s*+|\| ?)(?P<value>.*+)",
    re.IGNORECASE,
)
# Both in one line, as lists of Ansible may have it.
_FLOW = re.compile(
    r"\{\s*+(?:name|option|parameter)\s*+[:=]\s*+[\"']?(?P<name>\w++)[\"']?\s*+,"
    r"\s*+(?:value|setting)\s*+[:=]\s*+(?P<value>\"[^\"]*+\"|'[^']*+'|[^{},\"']++)\s*+[,}]"
)
_UNIT = re.compile(r"(?:(\d{1,9})?(B|kB|MB|GB|us|ms|s|min|h|d))?")
_UNDERLINE = re.compile(r"\A[ \t]{0,40}-{3,}+[ \t]{0,40}\Z")
# A default, or what the server or its provider sets itself.
_NOT_SET = frozenset(
    {"default", "override", "engine-default", "system-default", "system"}
)
# Of pg_settings: set for a session, a role or a database, and in no file.
_OF_SESSIONS = frozenset(
    {
        "client",
        "session",
        "interactive",
        "database",
        "user",
        "database user",
        "global",
        "test",
    }
)


def read(text: str) -> FormReading | None:
    """A name and below it a value; None for a text without a known name."""
    rows: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if flow := _FLOW.search(line):
            rows.append(
                (number, {"name": flow["name"], "value": unquoted(flow["value"])})
            )
        pair = _PAIR.fullmatch(line)
        if pair is None:
            continue
        key, value = pair["key"].lower(), unquoted(pair["value"].rstrip(" ,;"))
        if pair["separator"].startswith("|"):
            # psql writes one blank, and the value up to the end of the line.
            value = pair["value"]
        if key in NAMES:
            rows.append((number, {"name": value}))
        elif rows and key not in rows[-1][1]:
            rows[-1][1][key] = value
    reading = FormReading()
    for number, row in rows:
        take_row(reading, number, row, is_exact=True)
    return reading if _has_known(reading) else None


def read_shows(text: str) -> FormReading | None:
    """What SHOW prints: a name, a rule and a value."""
    lines = text.split("\n")
    reading = FormReading()
    for number in range(1, len(lines) - 1):
        name = lines[number - 1].strip()
        if _UNDERLINE.match(lines[number]) and is_setting(name):
            reading.settings.append((number, name, lines[number + 1].strip()))
    return reading if reading.settings else None


def take_row(
    reading: FormReading, number: int, row: Mapping[str, Any], *, is_exact: bool = False
) -> None:
    """A row or an object with a name and a value, if it says what a configuration sets.

    Where values are not exact, blanks around them are of the table, and an empty one is none.
    """
    lowered = {str(key).strip().lower(): value for key, value in row.items()}
    name = _first(lowered, _OF_TABLES)
    value = _first(lowered, _CHANGED)
    value = _first(lowered, VALUES) if value is None else value
    source = str(lowered.get("source") or "").strip().lower()
    text_of_name = "" if name is None else str(name).strip()
    if not is_name(text_of_name) or value is None:
        return
    if source in _NOT_SET or is_preset(text_of_name):
        return
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if is_exact else text.strip()
    is_of_session = source in _OF_SESSIONS and "setting" in lowered
    if is_of_session or str(lowered.get("applied")).strip().lower() in {"f", "false"}:
        reading.leave_out(number, f"{text_of_name} = {text}")
    elif text or is_exact or "unit" in lowered or "setting" in lowered:
        unit = str(lowered.get("unit") or "").strip()
        reading.settings.append((number, text_of_name, add_unit(text, unit)))


def is_unit(text: str, *, of: str) -> bool:
    """Whether it is the unit that pg_settings has of a value; a setting without one has no text.

    Only numbers have one: behind `128MB` stands another value.
    """
    return _UNIT.fullmatch(text) is not None and (not text or _is_number(of))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,18}(?:\.\d{1,18})?", text) is not None


def add_unit(value: str, unit: str) -> str:
    """A number of pg_settings in a unit that a file can have (8kB is none)."""
    blocks = _UNIT.fullmatch(unit)
    number = re.fullmatch(r"\d{1,18}(?:\.\d{1,18})?", value)
    if blocks is None or number is None or not unit:
        return value
    if blocks[1] is None:
        return f"{value}{unit}"
    size = int(blocks[1]) * units.BYTES[blocks[2]]
    return f"{int(float(value)) * size // units.BYTES['kB']}kB"


def unquoted(text: str) -> str:
    """A value as programs and YAML write it, without its quotes."""
    value = text.strip().rstrip(",")  # as in a dictionary of a program
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        quote, value = value[0], value[1:-1]
        return (
            value.replace("''", "'")
            if quote == "'"
            else sql_literal(value.replace('\\"', '"'))
        )
    return "" if value in {"|", ">", "{}", "null", "~"} else value


def _first(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((row[key] for key in row if key in keys), None)


def _has_known(reading: FormReading) -> bool:
    names = [name for _line, name, _value in reading.settings]
    return any(is_setting(name) for name in names) or bool(reading.left_out)
