"""go-tpc's TPC-C report in its three forms: plain lines, a table, JSON. Source: v1.0's output."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runs.tools.documents import document_of, number, words

_NUMBER = r"[0-9]{1,15}\.[0-9]"
_PLAIN = re.compile(r"\[(?P<when>Current|Summary)\] (?P<operation>[A-Z_]{1,40}) - (?P<columns>.+)")
_COLUMN = re.compile(rf"(?P<name>[A-Za-z0-9.]{{1,12}}(?:\(m?s\))?): (?P<value>{_NUMBER}|[0-9]+)")
_COLUMNS = frozenset(
    {
        *("takes(s)", "count", "tpm", "sum(ms)", "avg(ms)", "max(ms)"),
        *("50th(ms)", "90th(ms)", "95th(ms)", "99th(ms)", "99.9th(ms)"),
    }
)
_PLAIN_RESULT = re.compile(
    rf"tpmC: (?P<tpmc>{_NUMBER})(?:, tpmTotal: (?P<tpmtotal>{_NUMBER}))?"
    rf"(?:, efficiency: (?P<efficiency>{_NUMBER})%)?"
)
_OPERATION = re.compile("[A-Z]{1,20}(?:_[A-Z]{1,20}){0,3}")
_RULE = re.compile(r"\+[-+]+\+")
_ERROR = re.compile(r"panic: .*|fatal error: .*|failed to .*|execute .* failed.*")
_SILENT = re.compile(
    r"[0-9/]{10} [0-9:]{8} maxprocs: .*|Finished|begin to check .*|creating .*|load to .*"
    r"|\[[-0-9]{10} [0-9:]{8}\] .*"  # workers that stop, often with the statement that they were in
    r"|goroutine [0-9]+ .*"
)


@dataclass(frozen=True)
class Operation:
    """The figures of one kind of transaction, for an interval or the complete run. Times in ms."""

    name: str
    values: dict[str, float]


@dataclass
class Report:
    """The lines, sorted. `current` has the intervals of each operation in order."""

    current: dict[str, list[Operation]] = field(default_factory=dict)
    summary: dict[str, Operation] = field(default_factory=dict)
    results: list[dict[str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    known_lines: int = 0
    unknown_lines: list[str] = field(default_factory=list)
    header: tuple[str, ...] = ()
    repeated: bool = False


def read_report(lines: tuple[str, ...], cut: str) -> Report:
    """Sort the lines. A last one without newline counts only if its form shows it is complete."""
    report = Report()
    for line in lines:
        _take(line.strip(), report)
    whole = cut.endswith(("%", "|", "]", "+")) and not cut.startswith("[Current]")
    if whole:
        _take(cut.strip(), report)
    elif cut.strip():
        report.unknown_lines.append(cut)
    return report


def _take(line: str, report: Report) -> None:
    if not line:
        return
    report.known_lines += 1
    if line.startswith("[{"):
        _take_json(line, report)
    elif line.startswith("|"):
        _take_row(line, report)
    elif match := _PLAIN.fullmatch(line):
        _take_plain(match, report)
    elif result := _PLAIN_RESULT.fullmatch(line):
        report.results.append(_finite(result.groupdict()))
    elif _ERROR.fullmatch(line):
        report.errors.append(line)
    elif not (_RULE.fullmatch(line) or _SILENT.fullmatch(line)):
        _refuse(line, report)


def _refuse(line: str, report: Report) -> None:
    report.known_lines -= 1
    report.unknown_lines.append(line)


def _take_plain(match: re.Match[str], report: Report) -> None:
    cells = _COLUMN.finditer(match["columns"])
    columns = {cell["name"].lower(): cell["value"] for cell in cells}
    if set(columns) == _COLUMNS:
        _keep(match["when"], match["operation"], columns, report)
    else:
        _refuse(match[0], report)


def _take_row(line: str, report: Report) -> None:
    cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
    if cells[0] in ("PREFIX", "TPMC"):
        report.header = tuple(cell.lower() for cell in cells)
        return
    row = dict(zip(report.header, cells, strict=False))
    if len(cells) != len(report.header) or not report.header:
        _refuse(line, report)
    elif "tpmc" in row:
        report.results.append(_finite(row))
    elif {"prefix", "operation"} <= row.keys():
        _keep(row["prefix"].strip("[]"), row["operation"], row, report)
    else:
        _refuse(line, report)


def _take_json(line: str, report: Report) -> None:
    document = document_of(line)
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        _refuse(line, report)
        return
    for row in document:
        lowered = {str(name).lower(): value for name, value in row.items()}
        if "tpmc" in lowered:
            report.results.append(_finite(lowered))
        else:
            when = (words(lowered.get("prefix")) or "").strip("[] ")
            _keep(when, words(lowered.get("operation")) or "", lowered, report)


def _keep(when: str, operation: str, columns: dict[str, Any], report: Report) -> None:
    found = Operation(operation, _finite({name: columns.get(name) for name in _COLUMNS}))
    if len(found.values) < len(_COLUMNS) or not _OPERATION.fullmatch(operation):
        _refuse(f"{when} {operation}: a column is missing or no number", report)
    elif when == "Current":
        report.current.setdefault(operation, []).append(found)
    elif when == "Summary":
        report.repeated |= operation in report.summary
        report.summary[operation] = found


def _finite(columns: dict[str, Any]) -> dict[str, float]:
    def values() -> Iterator[tuple[str, float]]:
        for name, text in columns.items():
            value = number(text.rstrip("%") if isinstance(text, str) else text)
            if value is not None:
                yield name, value

    return dict(values())
