"""go-tpc's raw output of `go-tpc tpcc run`, in any of its output formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Files,
    MetricValue,
    Reading,
    Reason,
    SeriesData,
    TakenFile,
    UnreadableOutput,
    judged,
    quoted,
)
from runs.tools.metrics import Point, regular
from runs.tools.output import (
    document_of,
    lines_of,
    number,
    output_of,
    shown,
    text_named,
    words,
)
from runs.wording import gettext_noop as _

_NUMBER = r"[0-9]{1,15}\.[0-9]"
_PLAIN = re.compile(
    r"\[(?P<when>Current|Summary)\] (?P<operation>[A-Z_]{1,40}) - (?P<columns>.+)"
)
_COLUMN = re.compile(
    rf"(?<![A-Za-z0-9.])(?P<name>[A-Za-z0-9.]{{1,12}}(?:\(m?s\))?): (?P<value>{_NUMBER}|[0-9]+)"
)
# To November 2020 there were these alone, of whole milliseconds.
_FIRST_COLUMNS = frozenset(
    {"takes(s)", "count", "tpm", "sum(ms)", "avg(ms)", "90th(ms)", "99th(ms)"}
)
_COLUMNS = _FIRST_COLUMNS | {"50th(ms)", "95th(ms)", "99.9th(ms)", "max(ms)"}
_PLAIN_RESULT = re.compile(
    rf"tpmC: (?P<tpmc>{_NUMBER})(?:, tpmTotal: (?P<tpmtotal>{_NUMBER}))?"
    rf"(?:, efficiency: (?P<efficiency>{_NUMBER})%)?"
)
_OPERATION = re.compile("[A-Z]{1,20}(?:_[A-Z]{1,20}){0,3}")
_RULE = re.compile(r"\+[-+]+\+")
_ERROR = re.compile(r"\A(?:panic: .*|fatal error: .*|failed to .*|execute .* failed.*)")
_SILENT = re.compile(
    r"[0-9/]{10} [0-9:]{8} maxprocs: .*|Finished|begin to check .*|creating .*|load to .*"
    r"|\[[-0-9]{10} [0-9:]{8}\] .*"  # workers that stop, often with the statement that they were in
    r"|goroutine [0-9]+ .*"
    r"|[A-Z_]{1,40} - Takes\(s\): .*"  # of the first versions, which print no tpmC
    r"|Finished: [0-9]+ OL[AT]P .*"
)
_QUERY = re.compile(
    r"\[(?P<when>Current|Summary)\] (?P<query>Q[0-9]{1,2})(?P<failed>_ERR)?(?: *-|:)"
    r" (?P<columns>.*)"
)
_QPHH = re.compile(rf"QphH: (?P<qphh>{_NUMBER})")


@dataclass
class Report:
    """The lines, sorted. `current` has the intervals of each operation in order, times in ms."""

    current: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    summary: dict[str, dict[str, float]] = field(default_factory=dict)
    results: list[dict[str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    known_lines: int = 0
    unknown_lines: list[str] = field(default_factory=list)
    header: tuple[str, ...] = ()
    repeated: bool = False
    of_queries: bool = False
    queries: dict[str, float] = field(
        default_factory=dict
    )  # of CH-benCHmark: milliseconds of each
    failed_queries: float = 0.0
    qphh: float | None = None


def read_report(lines: tuple[str, ...], cut: str) -> Report:
    """Sort the lines. A last one without newline counts only if its form shows it is complete."""
    report = Report()
    for line in lines:
        _take(line.strip(), report)
    is_whole_line = cut.endswith(("%", "|", "]", "+")) and not cut.startswith(
        "[Current]"
    )
    if is_whole_line:
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
    elif query := _QUERY.fullmatch(line):
        _take_query(query, report)
    elif rate := _QPHH.fullmatch(line):
        report.qphh = float(rate["qphh"])
    elif not (_RULE.fullmatch(line) or _SILENT.fullmatch(line)):
        _refuse(line, report)


def _refuse(line: str, report: Report) -> None:
    report.known_lines -= 1
    report.unknown_lines.append(line)


def _take_plain(match: re.Match[str], report: Report) -> None:
    columns = _columns(match)
    if _FIRST_COLUMNS <= columns.keys() <= _COLUMNS:
        _keep(match["when"], match["operation"], columns, report)
    else:
        _refuse(match[0], report)


def _take_query(match: re.Match[str], report: Report) -> None:
    report.of_queries = True
    columns = _finite(_columns(match))
    if match["when"] == "Current" or not {"count", "avg(ms)"} <= columns.keys():
        return
    if match["failed"]:
        report.failed_queries += columns["count"]
    else:
        report.queries[match["query"]] = columns["avg(ms)"]


def _columns(match: re.Match[str]) -> dict[str, str]:
    return {
        cell["name"].lower(): cell["value"]
        for cell in _COLUMN.finditer(match["columns"])
    }


def _take_row(line: str, report: Report) -> None:
    cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
    if cells[0] in ("PREFIX", "TPMC"):
        report.header = tuple(cell.lower() for cell in cells)
        return
    row = dict(zip(report.header, cells))
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
    if not isinstance(document, list) or not all(
        isinstance(row, dict) for row in document
    ):
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
    figures = _finite({name: columns.get(name) for name in _COLUMNS})
    is_whole = figures.keys() >= _FIRST_COLUMNS | (columns.keys() & _COLUMNS)
    if not is_whole or not _OPERATION.fullmatch(operation):
        _refuse(f"{when} {operation}: a column is missing or no number", report)
    elif when == "Current":
        report.current.setdefault(operation, []).append(figures)
    elif when == "Summary":
        report.repeated |= operation in report.summary
        report.summary[operation] = figures


def _finite(columns: dict[str, Any]) -> dict[str, float]:
    numbers_by_name = {
        name: number(text.rstrip("%") if isinstance(text, str) else text)
        for name, text in columns.items()
    }
    return {name: value for name, value in numbers_by_name.items() if value is not None}


_ERROR_SUFFIX = "_ERR"


def read(files: Files) -> Reading:
    """Read a TPC-C run: --output plain, table or json. Raises UnreadableOutput."""
    lines = lines_of(output_of(files))
    report = read_report(
        (*lines.whole, *lines_of(text_named(files, "stderr")).all), lines.cut
    )
    if not report.known_lines:
        raise UnreadableOutput(
            "not_go_tpc_output",
            _("No line of the output is go-tpc's."),
            _("Send all that go-tpc tpcc run printed, unchanged."),
        )
    return judged(
        "go_tpc",
        _reasons(report),
        _measurements(report),
        fatal={"no_result", "several_results", "nothing_processed", "other_benchmark"},
        series=() if report.repeated else tuple(_series(report)),
        unknown_lines=shown(report.unknown_lines),
    )


def _reasons(report: Report) -> Iterator[Reason]:
    if report.errors:
        yield quoted("tool_error", report.errors[0])
    if report.repeated or len(report.results) > 1:
        yield SEVERAL_RESULTS
    elif not report.results and report.of_queries and not report.current:
        message = _("Only TPC-C runs are read, and this is one of TPC-H's queries.")
        yield Reason("other_benchmark", message)
    elif not report.results:
        yield Reason(
            "no_result", _("The output ends without tpmC: it is no whole run of tpcc.")
        )
    elif not report.results[0].get("tpmc"):
        yield Reason("nothing_processed", _("No new order was processed."))
    elif "NEW_ORDER" not in report.summary:
        yield Reason("cut", _("The summary of the operations is missing."))


def _measurements(report: Report) -> Iterator[MetricValue]:
    result = report.results[0]
    yield from known_metrics.TPMC.make_values(result["tpmc"])
    yield from known_metrics.TPM.make_values(result.get("tpmtotal"))
    yield from known_metrics.EFFICIENCY.make_values(result.get("efficiency"))
    yield from known_metrics.QPHH.make_values(report.qphh)
    for query, average in report.queries.items():
        yield from known_metrics.LATENCY_AVERAGE.part(query).make_values(average)
    errors = report.failed_queries
    for operation, values in report.summary.items():
        if operation.endswith(_ERROR_SUFFIX):
            errors += values["count"]
        else:
            yield from _operation_values(operation, values)
    yield from known_metrics.ERRORS.make_values(errors)


def _operation_values(
    operation: str, values: dict[str, float]
) -> Iterator[MetricValue]:
    for metric, column in (
        (known_metrics.TRANSACTIONS, "count"),
        (known_metrics.TPM, "tpm"),
        (known_metrics.LATENCY_AVERAGE, "avg(ms)"),
        *(
            (known_metrics.latency_percentile(p), f"{p}th(ms)")
            for p in ("50", "90", "95", "99", "99.9")
        ),
        (known_metrics.LATENCY_MAXIMUM, "max(ms)"),
    ):
        yield from metric.part(operation).make_values(values.get(column))


def _series(report: Report) -> Iterator[SeriesData]:
    """Yield transactions a minute of each operation that was in every interval.

    The tool prints no time. An interval is as long as its longest operation took, and one in which
    an operation did nothing has no line, so that others cannot be placed.
    """
    rounds = max((len(intervals) for intervals in report.current.values()), default=0)
    if not rounds:
        return
    longest = max(
        interval_figures["takes(s)"]
        for intervals in report.current.values()
        for interval_figures in intervals
    )
    interval = float(round(longest))
    for name, intervals in report.current.items():
        if len(intervals) == rounds and not name.endswith(_ERROR_SUFFIX):
            points: list[Point] = [
                (interval * interval_number, values["tpm"])
                for interval_number, values in enumerate(intervals, start=1)
            ]
            yield from regular(known_metrics.TPM.part(name), points, interval=interval)


ADAPTER = Adapter(
    "go_tpc",
    "go-tpc",
    (
        TakenFile("stdout", _("What go-tpc tpcc run printed"), required=True),
        TakenFile("stderr", _("Standard error")),
    ),
    read,
)
