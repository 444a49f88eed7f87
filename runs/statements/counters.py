"""pg_stat_statements as people keep it: CSV, JSON, or what psql prints, of 9.4 to 18."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from runs import foreign_json

# Up to 12 a statement had one time, in milliseconds; since 13 it has one for planning, too.
_TIMES = ("total_exec_time", "total_time")
LONGEST_FIELD = 10_000_000
_RECORD = re.compile(r"^-\[ (?:RECORD|Record|\S+) \d+ \][-+]*$")
_RULE = re.compile(r"^(?=[-+ ]*--)[-+ ]*$")


@dataclass(frozen=True)
class Counter:
    """A statement's counters: how often it was called, and the milliseconds of all calls."""

    text: str
    calls: int
    total_ms: float | None = None


def has_columns(names: Iterable[str]) -> bool:
    """Whether columns are those of pg_stat_statements."""
    return {"query", "calls"} <= {name.strip().lower() for name in names}


def from_csv(text: str) -> Iterator[Counter]:
    """With a line of names."""
    csv.field_size_limit(LONGEST_FIELD)
    dialect = csv.excel_tab if "\t" in text.partition("\n")[0] else csv.excel
    rows = csv.reader(io.StringIO(text, newline=""), dialect)
    names = [name.strip().lower() for name in next(rows, [])]
    for row in rows:
        if len(row) == len(names):
            yield from _counter(dict(zip(names, row, strict=True)))


def from_json(text: str) -> Iterator[Counter]:
    """A list of objects, or an object a line, as row_to_json prints it."""
    stripped = text.strip()
    documents = [stripped] if stripped.startswith("[") else stripped.splitlines()
    for document in documents:
        try:
            rows = foreign_json.loads(document)
        except ValueError:
            continue
        for row in rows if isinstance(rows, list) else [rows]:
            if isinstance(row, dict):
                yield from _counter(row)


def from_psql(text: str) -> Iterator[Counter]:
    """What psql prints: a table, or with \\x a block a row."""
    lines = text.splitlines()
    is_expanded = any(_RECORD.match(line.strip()) for line in lines[:50])
    rows = _expanded(lines) if is_expanded else _aligned(lines)
    for row in rows:
        yield from _counter(row)


def _counter(row: Mapping[str, object]) -> Iterator[Counter]:
    text, calls = row.get("query"), _number(row.get("calls"))
    if not isinstance(text, str) or not text.strip() or calls is None or calls < 1:
        return
    times = [_number(row.get(name)) for name in _TIMES]
    total_ms = next((time for time in times if time is not None), None)
    yield Counter(text.strip(), int(calls), total_ms)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(str(value).strip().replace(",", ""))
    except ValueError:
        return None
    return number if 0 <= number < 1e18 else None


def _expanded(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """Blocks of `name | value`; a further line of a value has no name, and psql ends it by `+`."""
    row: dict[str, str] = {}
    name = ""
    for line in lines:
        if _RECORD.match(line.strip()):
            if row:
                yield row
            row, name = {}, ""
            continue
        label, separator, value = line.partition("|")
        if not separator:
            continue
        text = value.removeprefix(" ").rstrip()
        text = text[:-1].rstrip() if text.endswith("+") else text
        if label.strip(" +"):
            name = label.strip().lower()
            row[name] = text
        elif name:
            row[name] += f"\n{text}"
    if row:
        yield row


def _aligned(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """A table: columns at the places that its rule of dashes has."""
    rule = next((place for place, line in enumerate(lines) if _RULE.match(line)), None)
    if not rule:
        return
    spans = _spans(lines[rule])
    names = [cell.lower() for cell in _cells(lines[rule - 1], spans)]
    row: dict[str, str] = {}
    is_open = False
    for line in lines[rule + 1 :]:
        if not line.strip() or line.startswith("("):
            break
        cells = _cells(line, spans)
        continues = [cell.endswith("+") for cell in cells]
        texts = [cell[:-1].rstrip() if cell.endswith("+") else cell for cell in cells]
        if is_open:
            row = {
                name: _joined(row[name], text)
                for name, text in zip(names, texts, strict=True)
            }
        else:
            row = dict(zip(names, texts, strict=True))
        is_open = any(continues)
        if not is_open:
            yield row


def _joined(before: str, text: str) -> str:
    return f"{before}\n{text}" if text else before


def _spans(rule: str) -> list[tuple[int, int]]:
    spans = []
    begin = 0
    for part in rule.split("+"):
        spans.append((begin, begin + len(part)))
        begin += len(part) + 1
    return spans


def _cells(line: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """The last column goes to the end of the line; psql's `+` stands after a column's own width."""
    last = len(spans) - 1
    return [
        (line[begin:] if place == last else line[begin : end + 1]).strip(" |")
        for place, (begin, end) in enumerate(spans)
    ]
