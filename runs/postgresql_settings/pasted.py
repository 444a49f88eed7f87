"""Settings in other forms than postgresql.conf, as its lines: statements, YAML, options, exports.

What is read: ALTER SYSTEM, ALTER DATABASE and SET; YAML of Patroni, CloudNativePG, Helm and others;
sessions of psql; command lines and compositions; pg_settings and SHOW ALL as tables or CSV; JSON
of cloud providers. Lines of a form that set nothing are left to the form; values that only the
provider can compute come as they are, and are refused by the check.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from runs import foreign_json
from runs.postgresql_settings import units
from runs.postgresql_settings.catalogue import MAJORS, existence, setting
from runs.postgresql_settings.command_lines import Pasted, of_command

_NAME = r"[A-Za-z_][\w$]*+(?:\.[A-Za-z_][\w$]*+)?"
_VALUE = r"""(?:(?:'[^']*+')+|"[^"]*+")"""
_OF_PROMPT = r"\w[\w@.:-]{0,60}?[=(*^-]?[#>](?:\s++|\Z)"
_PROMPT = re.compile(rf"\A\s*+(?:{_OF_PROMPT}|\$ )")
# What psql answers: tags of commands, tables, their counts, messages.
_OUTPUT = re.compile(
    r"(?:ALTER|CREATE|DROP) [A-Z ]{1,40}|SET|RESET|psql \(.*|Type \"help\".*|You are now .*"
    r"| .*|[-+]{3,}|\(\d{1,9} \w{1,20}\)|(?:NOTICE|WARNING|HINT|DETAIL): .*"
)
STATEMENT = re.compile(
    rf"\A\s*+(?:{_OF_PROMPT})?"
    r"(?:alter\s++(?:system|database\s++\S++|(?:role|user)\s++\S++(?:\s++in\s++database\s++\S++)?)\s++)?"
    rf"set\s++(?:session\s++|local\s++|persist\s++)?(?P<name>\"?{_NAME}\"?)\s*+(?:=|to\b)\s*+"
    rf"(?P<value>[^;]*+);?\s*+(?:--.*)?",
    re.IGNORECASE,
)
_OF_PSQL = re.compile(r"""\A\s*+(?:psql|docker)\b[^"]{0,300}\s-c\s*+"([^"]++)"\s*+\Z""")
# Statements that pgtune and others print around the settings.
NO_SETTING = re.compile(
    rf"\A\s*+(?:--.*+|(?:{_OF_PROMPT})?select\s++pg_reload_conf\(\)\s*+;?"
    r"|alter\s++system\s++reset\s++\S++)\s*+",
    re.IGNORECASE,
)
_YAML = re.compile(
    rf"""\A( *+)(?:- )?["']?(?P<name>{_NAME})["']?:"""
    rf"""(?:\s++(?P<value>{_VALUE}(?=\s*+(?:#|\Z))|[^#]*+))?\s*+(?:#.*+)?"""
)
_QUOTED_JSON = re.compile(r"--(?:parameters|config-json)\s++'(\s*+[\[{][^']*+)'")
_NAMES = {"name", "parametername", "parameter_name", "parameter name", "parameter"}
_VALUES = {
    "setting",
    "value",
    "parametervalue",
    "parameter_value",
    "parameter value",
    "currentvalue",
    "current_setting",
    "values",
}
_PAIR = re.compile(
    r"\A\s*+(?:- )?(?P<key>(?:parameter)?(?:name|value)|key|option|setting|unit|parameter|source)"
    r"\s*+[:=|]\s*+(?P<value>.*+)",
    re.IGNORECASE,
)
# Both in one line, as lists of Ansible may have it.
_FLOW = re.compile(
    r"\{\s*+(?:name|option|parameter)\s*+:\s*+[\"']?(?P<name>\w++)[\"']?\s*+,"
    r"\s*+(?:value|setting)\s*+:\s*+(?P<value>[^{}]*+)\}"
)
_UNIT = re.compile(r"(?:(\d{1,9})?(B|kB|MB|GB|us|ms|s|min|h|d))?")
_BORDERS = str.maketrans("│║┃┼─┤├", "|||+-||")
_COLUMNS = re.compile(r"\A {0,40}-{3,}(?: -{3,}){1,40} {0,40}")
_UNDERLINE = re.compile(r"\A[ \t]{0,40}-{3,}+[ \t]{0,40}\Z")
_SOURCES = {"source"}
_NOT_SET = {"default", "override", "engine-default", "system-default"}
MOST_COLUMNS = 40


def entries(text: str) -> list[Pasted] | None:
    """What a text in one of the other forms sets; None for a text that is none of them."""
    lines = text.split("\n")
    if (pasted := _of_json(text)) is not None:
        return pasted
    for read in (_of_table, _of_pairs, _of_shows, _of_yaml):
        if (pasted := read(lines)) is not None:
            return pasted
    return of_session(lines) or of_command(text)


def of_session(lines: list[str]) -> list[Pasted] | None:
    """What statements in a session of psql set; None where a line is neither these nor output."""
    pasted, prompts = [], 0
    for number, line in enumerate(lines, start=1):
        prompt = _PROMPT.match(line)
        prompts += prompt is not None
        if statement := of_statement(line):
            pasted.append((number, *statement))
        elif prompt is None and line.strip() and not _OUTPUT.fullmatch(line):
            return None
    return pasted if pasted and prompts else None


def of_statement(line: str) -> tuple[str, str] | None:
    """The name and value of a statement that sets something, also as psql's `-c` has it."""
    if inner := _OF_PSQL.match(line):
        line = inner[1]
    statement_match = STATEMENT.fullmatch(line)
    if statement_match is None:
        return None
    value_parts = re.findall(rf"{_VALUE}|[^,']++", statement_match["value"])
    value = ", ".join(
        _literal(value_part.strip()) for value_part in value_parts if value_part.strip(" ,")
    )
    return statement_match["name"].strip('"'), value


def _literal(text: str) -> str:
    """The value of a literal of SQL; other words as they are."""
    if len(text) > 1 and text[0] == "'" == text[-1]:
        return text[1:-1].replace("''", "'")
    return text


def _is_known(name: str) -> bool:
    return bool(existence(name) or ("." in name and re.fullmatch(_NAME, name)))


def _of_yaml(lines: list[str]) -> list[Pasted] | None:
    """The settings below `parameters:`; anywhere, if there is no such block."""
    pasted: list[Pasted] = []
    within_blocks: list[Pasted] = []
    blocks, inside, plain = 0, -1, 0
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "---", "- ")):
            continue
        entry = _YAML.fullmatch(line.expandtabs(2))
        if entry is None:
            plain += 1
            continue
        column, name, value = len(entry[1]), entry["name"], _yaml_value(entry["value"])
        if inside >= 0 and column <= inside:
            inside = -1
        if value == "" and name in {"parameters", "postgresql.conf", "databaseFlags"}:
            blocks, inside = blocks + 1, column
        elif value and (inside >= 0 or _is_known(name)):
            pasted.append((number, name, value))
            if inside >= 0:
                within_blocks.append((number, name, value))
    if not pasted or plain > len(pasted):
        return None
    return within_blocks if blocks else pasted


def _of_pairs(lines: list[str]) -> list[Pasted] | None:
    """A name and below it a value: Terraform, Cloud SQL, Ansible, and psql's expanded tables."""
    pairs: list[dict[str, str]] = []
    begins = []
    for number, line in enumerate(lines, start=1):
        if flow := _FLOW.search(line):
            pairs.append({"name": flow["name"], "value": _yaml_value(flow["value"])})
            begins.append(number)
        pair = _PAIR.fullmatch(line)
        if pair is None:
            continue
        key, value = pair["key"].lower(), _yaml_value(pair["value"].rstrip(" ,;"))
        if key in _NAMES | {"option", "key"}:
            pairs.append({"name": value})
            begins.append(number)
        elif pairs and key not in pairs[-1]:
            pairs[-1][key] = value
    pasted = [
        entry
        for row, line_number in zip(pairs, begins, strict=True)
        for entry in _row(line_number, row)
    ]
    return pasted if any(_is_known(name) for _line, name, _value in pasted) else None


def _of_shows(lines: list[str]) -> list[Pasted] | None:
    """What SHOW prints: a name, a rule and a value."""
    pasted = [
        (number, lines[number - 1].strip(), lines[number + 1].strip())
        for number in range(1, len(lines) - 1)
        if _UNDERLINE.match(lines[number]) and _is_known(lines[number - 1].strip())
    ]
    return pasted or None


def _yaml_value(text: str | None) -> str:
    value = (text or "").strip().rstrip(",")  # as in a dictionary of a program
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        quote, value = value[0], value[1:-1]
        return value.replace("''", "'") if quote == "'" else _literal(value.replace('\\"', '"'))
    return "" if value in {"|", ">", "{}", "null", "~"} else value


def _of_table(lines: list[str]) -> list[Pasted] | None:
    """Rows of pg_settings, SHOW ALL or a provider's export, below their heading or without one."""
    lines = [line.translate(_BORDERS) for line in lines]
    for index, line in enumerate(lines[:20]):
        for separator in (",", "|", "\t", ";"):
            if separator not in line:
                continue
            heading = [cell.strip().strip("\ufeff").lower() for cell in _cells(line, separator)]
            if _NAMES & set(heading) and _VALUES & set(heading):
                return list(_rows(lines, index + 1, heading, separator))
    return _of_columns(lines) or _of_bare_rows(lines)


def _of_columns(lines: list[str]) -> list[Pasted] | None:
    """What psql prints without a border: a rule above each column."""
    for index, line in enumerate(lines[1:20], start=1):
        if not _COLUMNS.fullmatch(line):
            continue
        spans = [rule_match.span() for rule_match in re.finditer(r"-++", line)]
        cut = ["|".join(row[begin:end].strip() for begin, end in spans) for row in lines]
        return list(_rows(cut, index + 1, cut[index - 1].lower().split("|"), "|"))
    return None


def _of_bare_rows(lines: list[str]) -> list[Pasted] | None:
    """A setting and its value in each row, and perhaps its unit, whatever is above them."""
    for separator in ("|", ",", "\t", ";"):
        pasted: list[Pasted] = []
        rows = [
            (n, [cell.strip("` ") for cell in _cells(line, separator)])
            for n, line in enumerate(lines, start=1)
            if separator in line
        ]
        for number, cells in rows:
            if cells and existence(cells[0].lower()):
                if len(cells) not in {2, 3} or (len(cells) == 3 and not _UNIT.fullmatch(cells[2])):
                    return None
                pasted += _row(number, dict(zip(("name", "setting", "unit"), cells, strict=False)))
        if len(pasted) > 1 and len(pasted) >= len(rows) - 2:
            return pasted
    return None


def _cells(line: str, separator: str) -> list[str]:
    if separator == "|":
        inner = line.strip()
        inner = inner[1:-1] if inner[:1] == "|" == inner[-1:] else inner
        return [cell.strip() for cell in inner.split("|")][:MOST_COLUMNS]
    return next(csv.reader([line], delimiter=separator, strict=False), [])[:MOST_COLUMNS]


def _rows(lines: list[str], begin: int, heading: list[str], separator: str) -> Iterator[Pasted]:
    for number, line in enumerate(lines[begin:], start=begin + 1):
        cells = _cells(line, separator)
        row = dict(zip(heading, cells, strict=False))
        if len(cells) > 1 and not set(line.strip()) <= set("-+|=: "):
            yield from _row(number, row)


def _row(number: int, row: Mapping[str, Any]) -> Iterator[Pasted]:
    lowered = {str(name).lower(): value for name, value in row.items()}
    name = next((str(lowered[key]).strip() for key in lowered if key in _NAMES), "")
    value = next((lowered[key] for key in lowered if key in _VALUES), None)
    source = next((str(lowered[key]).strip().lower() for key in lowered if key in _SOURCES), "")
    if not re.fullmatch(_NAME, name) or value is None or source in _NOT_SET or _is_preset(name):
        return
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    if text or "unit" in lowered:
        yield number, name, _with_unit(text, str(lowered.get("unit") or "").strip())


def _is_preset(name: str) -> bool:
    """Whether it only shows how a server was built: an export has these, too."""
    catalogued_settings = [
        catalogued for major in MAJORS if (catalogued := setting(name, major)) is not None
    ]
    return bool(catalogued_settings) and catalogued_settings[-1].is_preset


def _with_unit(value: str, unit: str) -> str:
    """A number of pg_settings in a unit that a file can have (8kB is none)."""
    blocks = _UNIT.fullmatch(unit)
    number = re.fullmatch(r"\d{1,18}(?:\.\d{1,18})?", value)
    if blocks is None or number is None or not unit:
        return value
    if blocks[1] is None:
        return f"{value}{unit}"
    size = int(blocks[1]) * units.BYTES[blocks[2]]
    return f"{int(float(value)) * size // units.BYTES['kB']}kB"


def _of_json(text: str) -> list[Pasted] | None:
    """Objects with a name and a value at any depth, or an object of settings.

    `aws rds modify-db-parameter-group` has them in quotes.
    """
    quoted = _QUOTED_JSON.search(text)
    try:
        document = foreign_json.loads(quoted[1] if quoted else foreign_json.of_program(text))
    except ValueError:
        return None
    rows = list(_objects(document)) if isinstance(document, dict | list) else []
    pasted = [entry for row in rows for entry in _row(1, row)]
    if pasted:
        return [(_line_of(text, name), name, value) for _one, name, value in pasted]
    return [
        (_line_of(text, name), name, str(value).lower() if isinstance(value, bool) else str(value))
        for row in map(_in_units, rows)
        for name, value in row.items()
        if _is_known(name) and isinstance(value, str | int | float)
    ] or None


def _in_units(row: dict[str, Any]) -> dict[str, Any]:
    """Aiven and DigitalOcean count work_mem in MB, and others in their own units."""
    if isinstance(row.get("work_mem"), int) and row.keys() & {"pg", "shared_buffers_percentage"}:
        return {**row, "work_mem": f"{row['work_mem']}MB"}
    return row


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, list) and all(
        isinstance(row, list) and len(row) == 2 for row in document
    ):
        document = {str(name): value for name, value in document}
    if isinstance(document, dict):
        rows_by_name = {name: row for name, row in document.items() if isinstance(row, dict)}
        setting_rows = [
            {"name": name, **row} for name, row in rows_by_name.items() if existence(name)
        ]
        yield from setting_rows or [document]
    for element in document.values() if isinstance(document, dict) else document:
        if isinstance(element, dict | list):
            yield from _objects(element)


def _line_of(text: str, name: str) -> int:
    offset = text.find(json.dumps(name))
    return text.count("\n", 0, max(offset, 0)) + 1
