"""BenchBase's summary.json, and the throughput over time of its results.csv or samples.csv.

Sources: BenchBase's ResultWriter (2021 to 2024) and published summaries. `Throughput` counts every
request, `Goodput` those that were committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Files,
    Level,
    MetricValue,
    Reading,
    Reason,
    SeriesData,
    TakenFile,
    UnreadableOutput,
    judged,
)
from runs.tools.metrics import Point, interval_of, regular
from runs.tools.output import (
    documents_in,
    lines_of,
    number,
    part,
    shown,
    text_of,
    words,
)
from runs.wording import gettext_noop as _

_THROUGHPUT_KEY, _GOODPUT_KEY = (
    "Throughput (requests/second)",
    "Goodput (requests/second)",
)
_LATENCIES = (
    (known_metrics.LATENCY_MINIMUM, "Minimum"),
    *(
        (known_metrics.latency_percentile(p), f"{p}th Percentile")
        for p in ("25", "75", "90", "95", "99")
    ),
    (known_metrics.latency_percentile("50"), "Median"),
    (known_metrics.LATENCY_AVERAGE, "Average"),
    (known_metrics.LATENCY_MAXIMUM, "Maximum"),
)
_DATABASES = {"postgres", "postgresql"}
_STATES_OF_AN_END = {"done", "exit"}
_VERSION = re.compile(r"(?:PostgreSQL )?(?P<version>[0-9]{1,3}(?:\.[0-9]{1,3}){0,2})\b")
_AVERAGES = {
    "Average Latency (millisecond)": 1.0,
    "Average Latency (microseconds)": 1e-3,
}
_TIME_COLUMN = "Time (seconds)"
_FILES = 20


def read(files: Files) -> Reading:
    """Read the summary and the time series, of files of any names. Raises UnreadableOutput."""
    summaries, other_text = _read(files)
    if not summaries:
        raise UnreadableOutput(
            "not_benchbase_output",
            _("There is no summary of BenchBase in the output, or it is not whole."),
            _("Send the file results/*.summary.json, unchanged."),
        )
    summary = summaries[0]
    lines = lines_of(other_text)
    series = tuple(_series(lines.whole))
    isolation = words(summary.get("isolation"))
    return judged(
        "benchbase",
        _reasons(summaries),
        _measurements(summary),
        fatal=None,
        mild={"ended_early"},
        server_version=_server_version(summary),
        series=series,
        levels=_levels(summary),
        labels={"isolation": isolation} if isolation else {},
        unknown_lines=() if series else shown(lines.all),
    )


def _read(files: Files) -> tuple[list[dict[str, Any]], str]:
    summaries, texts = [], []
    for content in list(files.values())[:_FILES]:
        output = documents_in(text_of(content))
        summaries += [
            document
            for document in output.found
            if isinstance(document, dict) and _THROUGHPUT_KEY in document
        ]
        texts.append(output.other_text)
    return summaries, "\n".join(texts)


def _reasons(summaries: list[dict[str, Any]]) -> Iterator[Reason]:
    summary = summaries[0]
    database = (words(summary.get("DBMS Type")) or "")[:60]
    state = words(summary.get("Final State"))
    if len(summaries) > 1:
        yield SEVERAL_RESULTS
    if database.lower() not in _DATABASES:
        yield Reason(
            "other_database",
            _("This is a result of %(database)s."),
            database=database or _("an unknown database"),
        )
    if state and state.lower() == "error":
        yield Reason("run_aborted", _("The final state of the run is ERROR."))
    elif state and state.lower() not in _STATES_OF_AN_END:
        yield Reason(
            "ended_early",
            _("The final state of the run is %(state)s."),
            state=state[:40],
        )
    throughput, goodput = (
        number(summary.get(key)) for key in (_THROUGHPUT_KEY, _GOODPUT_KEY)
    )
    if throughput and goodput and goodput > throughput * 1.001:
        yield Reason(
            "contradiction",
            _("The goodput (%(goodput)s) is above the throughput (%(throughput)s)."),
            goodput=f"{goodput:g}",
            throughput=f"{throughput:g}",
        )
    if (
        not (goodput or (goodput is None and throughput))
        or number(summary.get("Measured Requests")) == 0
    ):
        yield Reason("nothing_processed", _("No request was committed."))


def _measurements(summary: dict[str, Any]) -> Iterator[MetricValue]:
    yield from known_metrics.GOODPUT.make_values(number(summary.get(_GOODPUT_KEY)))
    yield from known_metrics.THROUGHPUT.make_values(
        number(summary.get(_THROUGHPUT_KEY))
    )
    yield from known_metrics.REQUESTS.make_values(
        number(summary.get("Measured Requests"))
    )
    latencies = part(summary, "Latency Distribution")
    for metric, name in _LATENCIES:
        microseconds = number(latencies.get(f"{name} Latency (microseconds)"))
        if microseconds is not None and microseconds >= 0:
            yield from metric.make_values(microseconds / 1000)


def _series(lines: tuple[str, ...]) -> Iterator[SeriesData]:
    """Yield throughput and latency of a CSV file; the first that has a column is taken."""
    header: list[str] = []
    table: list[list[float | None]] = []
    for line in lines:
        cells = line.split(",")
        if cells[0] == _TIME_COLUMN:
            if header:
                break
            header = cells
        elif header and len(cells) == len(header):
            table.append([number(cell) for cell in cells])
    seconds = [row[0] for row in table if row[0] is not None]
    interval = interval_of(sorted(seconds))
    for metric, columns in (
        (known_metrics.THROUGHPUT, {_THROUGHPUT_KEY: 1.0}),
        (known_metrics.LATENCY, _AVERAGES),
    ):
        column = next((column for column in columns if column in header), None)
        if column is not None:
            column_index, factor = header.index(column), columns[column]
            points = [
                _point(row[0], row[column_index], factor, interval) for row in table
            ]
            known_points = [point for point in points if point is not None]
            yield from regular(metric, known_points, interval=interval)


def _point(
    time: float | None, value: float | None, factor: float, interval: float | None
) -> Point | None:
    """Return a row's value at the end of its interval, as of all series."""
    if time is None or interval is None or abs(time) > 1e9:
        return None
    return time + interval, None if value is None else value * factor


def _server_version(summary: dict[str, Any]) -> str | None:
    match = _VERSION.match(words(summary.get("DBMS Version")) or "")
    return match["version"] if match else None


def _levels(summary: dict[str, Any]) -> dict[str, Level]:
    """Return what was asked for; the summary has only the time that the run took."""
    levels: dict[str, Level] = {}
    for level, key in (("clients", "terminals"), ("scale", "scalefactor")):
        value = number(summary.get(key))
        if value is not None:
            levels[level] = int(value) if value.is_integer() else value
    kind = words(summary.get("Benchmark Type"))
    return {**levels, **({"benchmark": kind} if kind else {})}


ADAPTER = Adapter(
    "benchbase",
    "BenchBase",
    (
        TakenFile("summary", _("*.summary.json"), required=True),
        TakenFile("results", _("*.results.csv or *.samples.csv, for the series")),
    ),
    read,
)
