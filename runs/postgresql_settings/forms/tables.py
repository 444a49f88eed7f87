"""Rows of pg_settings, SHOW ALL, pg_file_settings or a provider's export, as tables or CSV.

The columns of a table are those of its rule line, where it has one: a value may have a bar in it.
A row that has more cells than its heading is not understood.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runs.postgresql_settings.catalogue import existence
from runs.postgresql_settings.forms import pairs
from runs.postgresql_settings.forms.reading import FormReading

_BORDERS = str.maketrans("│║┃┼─┤├═╪╫", "|||+-||-++")
_COLUMNS = re.compile(r"\A {0,40}-{3,}+(?: {1,3}-{3,}+){1,40} {0,40}")
_RULE = re.compile(r"\A\s{0,40}[|+]?[ :]?-{2}[-+|: ]{2,}+\Z")
_FOOT = re.compile(r"\A\s*+\(\d{1,9} (?:\w{1,20}|行)\)\s*+")
_MOST_COLUMNS = 40
_HEADINGS_WITHIN = 20


@dataclass(frozen=True)
class _Table:
    """Where a table's rows begin, its columns, and how its lines are cut."""

    first_row: int
    heading: Sequence[str]
    separator: str
    spans: Sequence[tuple[int, int]] = ()


def read(text: str) -> FormReading | None:
    """The settings of a table, below its heading or without one; None for another text."""
    lines = [line.translate(_BORDERS) for line in text.split("\n")]
    table = _read_headed(lines) or _read_ruled(lines)
    if table is None:
        return _read_bare_rows(lines)
    reading = FormReading()
    if table.separator in ",;\t":
        _take_records(reading, lines, table)
    else:
        _take_lines(reading, lines, table)
    is_found = reading.settings or reading.faults or reading.left_out
    return reading if is_found else None


def _read_headed(lines: Sequence[str]) -> _Table | None:
    for index, line in enumerate(lines[:_HEADINGS_WITHIN]):
        for separator in (",", "|", "\t", ";"):
            if separator not in line:
                continue
            heading = [
                cell.strip().strip('\ufeff"').lower()
                for cell in _cells(line, separator)
            ]
            if set(pairs.NAMES) & set(heading) and set(pairs.VALUES) & set(heading):
                spans = (
                    _spans(line, lines[index + 1 : index + 2])
                    if separator == "|"
                    else []
                )
                return _Table(index + 1, heading, separator, spans)
    return None


def _read_ruled(lines: Sequence[str]) -> _Table | None:
    """What psql prints without a border: a rule above each column."""
    for index, line in enumerate(lines[1:_HEADINGS_WITHIN], start=1):
        if _COLUMNS.fullmatch(line):
            spans = [rule_match.span() for rule_match in re.finditer(r"-++", line)]
            spans[-1] = (spans[-1][0], 10**6)
            heading = [
                lines[index - 1][begin:end].strip().lower() for begin, end in spans
            ]
            return _Table(index + 1, heading, " ", spans)
    return None


def _spans(heading: str, rules: Sequence[str]) -> list[tuple[int, int]]:
    """The columns by psql's rule line; none without one, or where the heading is elsewhere."""
    if not rules or not _RULE.fullmatch(rules[0].rstrip()) or "+" not in rules[0]:
        return []
    rule = rules[0]
    bars = [place for place, letter in enumerate(heading) if letter == "|"]
    crosses = [place for place, letter in enumerate(rule.rstrip()) if letter in "+|"]
    if bars != crosses:
        return []
    edges = [-1, *bars, 10**6]
    spans = [(begin + 1, end) for begin, end in pairwise(edges)]
    is_framed = heading.lstrip()[:1] == "|"
    return spans[1:-1] if is_framed else spans


def _take_lines(reading: FormReading, lines: Sequence[str], table: _Table) -> None:
    for number, line in enumerate(lines[table.first_row :], start=table.first_row + 1):
        if set(line.strip()) <= set("-+|=: ") or _FOOT.fullmatch(line):
            continue
        cells = _cut(line, table)
        if len(cells) > len(table.heading):
            reading.refuse_rest(number, line)
        elif len(cells) > 1:
            pairs.take_row(
                reading, number, dict(zip(table.heading, cells, strict=False))
            )


def _cut(line: str, table: _Table) -> list[str]:
    if table.separator == "|":
        cells = _cells(line, "|")
        if len(cells) <= len(table.heading) or not table.spans:
            return cells
    return [line[begin:end].strip() for begin, end in table.spans]


def _take_records(reading: FormReading, lines: Sequence[str], table: _Table) -> None:
    """CSV, whose values may have line breaks in quotes."""
    records = csv.reader(
        [f"{line}\n" for line in lines[table.first_row :]],
        delimiter=table.separator,
        strict=False,
    )
    first = table.first_row + 1
    for cells in records:
        if len(cells) > len(table.heading):
            reading.refuse_rest(first, table.separator.join(cells))
        elif len(cells) > 1:
            row = dict(zip(table.heading, cells, strict=False))
            pairs.take_row(reading, first, row, is_exact="setting" in table.heading)
        first = table.first_row + records.line_num + 1


def _read_bare_rows(lines: Sequence[str]) -> FormReading | None:
    """A setting and its value in each row, and perhaps its unit, whatever is above them."""
    for separator in ("|", ",", "\t", ";"):
        reading = FormReading()
        rows = list(_numbered_cells(lines, separator))
        for number, cells in rows:
            if not cells or not existence(cells[0].lower()):
                continue
            if len(cells) == 3 and not pairs.is_unit(cells[2], of=cells[1]):
                # SHOW ALL has a description; a value with a separator in it looks the same.
                return None
            if len(cells) not in {2, 3}:
                return None
            row = dict(zip(("name", "setting", "unit"), cells, strict=False))
            pairs.take_row(reading, number, row)
        if len(reading.settings) > 1 and len(reading.settings) >= len(rows) - 2:
            return reading
    return None


def _numbered_cells(
    lines: Sequence[str], separator: str
) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, start=1):
        if separator in line:
            yield number, [cell.strip("` ") for cell in _cells(line, separator)]


def _cells(line: str, separator: str) -> list[str]:
    if separator == "|":
        inner = line.strip()
        inner = inner[1:-1] if inner[:1] == "|" == inner[-1:] else inner
        inner = (
            inner[1:-1] if inner[:1] == "|" == inner[-1:] and len(inner) > 1 else inner
        )
        return [cell.strip() for cell in inner.split("|")][:_MOST_COLUMNS]
    return next(csv.reader([line], delimiter=separator, strict=False), [])[
        :_MOST_COLUMNS
    ]
