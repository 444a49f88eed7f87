"""What the logs of a run (`-l`) add to its summary: percentiles of latency, and series.

A log does not show that others are missing, so its rates count only if the summary agrees.

Aggregated logs (`pgbench -l --aggregate-interval`): counts and sums for each interval.

The columns are `start transactions sum sum2 min max` (6), with `-R` the same of the lag (10), with
`-L` also the skipped ones (11). From 15 on all 15 are always there, the last four `retried retries
serialization deadlock`; 19 adds other failures. To 14 the transactions include the skipped ones.
Times are in microseconds. The tool never writes the last interval, and the first one begins with
the run, not with a second. Source: the manual's page of each version, and its recorded output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import MetricValue, Reason, SeriesData
from runs.tools.metrics import interval_of, regular
from runs.tools.output import UNKNOWN_LINES, text_of
from runs.tools.pgbench.result import PgbenchResult
from runs.tools.pgbench.transaction_log import (
    TransactionLog,
    is_transaction_line,
    read_transaction_log,
)
from runs.wording import gettext_noop as _

_WIDTHS = (6, 10, 11, 15, 16)
_NUMBERS = re.compile(rb"[0-9]{9,11}(?: [0-9]{1,24}){5,15}")
_SKIPPED, _FAILURES = 10, slice(13, 16)
_SKIPPED_COUNTED = 11  # columns of the versions that count skipped transactions


@dataclass
class Interval:
    """What ran in one interval, in all threads. Times are in microseconds."""

    transactions: int = 0
    latency_sum: int = 0
    latency_maximum: int = 0
    skipped: int = 0
    failed: int = 0
    writers: int = 0

    def add(self, numbers: list[int]) -> None:
        """Add a thread's line."""
        self.writers += 1
        skipped = numbers[_SKIPPED] if len(numbers) > _SKIPPED else 0
        counted = skipped if len(numbers) == _SKIPPED_COUNTED else 0
        self.transactions += max(numbers[1] - counted, 0)
        self.latency_sum += numbers[2]
        self.latency_maximum = max(self.latency_maximum, numbers[5])
        self.skipped += skipped
        self.failed += sum(numbers[_FAILURES])


@dataclass
class AggregatedLog:
    """The intervals by their start, in seconds since the epoch."""

    intervals: dict[int, Interval] = field(default_factory=dict)
    unknown_lines: list[str] = field(default_factory=list)

    @property
    def writers(self) -> int:
        """How many threads' logs these are: each writes a line for an interval."""
        return max(
            (interval.writers for interval in self.intervals.values()), default=0
        )


def is_aggregated_line(line: bytes) -> bool:
    """Whether a line is an aggregated log's."""
    return (
        bool(_NUMBERS.fullmatch(line.rstrip(b"\r"))) and line.count(b" ") + 1 in _WIDTHS
    )


def read_aggregated_log(files: Mapping[str, bytes]) -> AggregatedLog:
    """Read the logs of all threads of a run."""
    log = AggregatedLog()
    for content in files.values():
        *whole_lines, cut = content.split(b"\n")
        for line in whole_lines:
            _take(line.removesuffix(b"\r"), log)
        _report([cut], log)
    return log


def _take(line: bytes, log: AggregatedLog) -> None:
    if not is_aggregated_line(line):
        _report([line], log)
        return
    numbers = [int(text) for text in line.split(b" ")]
    log.intervals.setdefault(numbers[0], Interval()).add(numbers)


def _report(lines: Iterable[bytes], log: AggregatedLog) -> None:
    for line in lines:
        if line.strip() and len(log.unknown_lines) < UNKNOWN_LINES:
            log.unknown_lines.append(text_of(line[:300]))


PERCENTILES = ("50", "90", "95", "99", "99.9")
_US_PER_MS = 1000
_BYTES_LOOKED_AT, _LINES_LOOKED_AT = 1 << 16, 100


@dataclass(frozen=True)
class LogReading:
    """What the logs give. `found` says whether there was any line of a log."""

    found: bool = False
    measurements: tuple[MetricValue, ...] = ()
    series: tuple[SeriesData, ...] = ()
    notes: tuple[Reason, ...] = ()
    reasons: tuple[Reason, ...] = ()
    unknown_lines: tuple[str, ...] = ()


def read_logs(files: Mapping[str, bytes], result: PgbenchResult) -> LogReading:
    """Read the logs of a run whose summary is `result`. A file that is not a log is reported."""
    kinds = {name: _kind(content) for name, content in files.items()}
    of_transactions = {
        name: files[name] for name, kind in kinds.items() if kind == "transactions"
    }
    aggregated = {
        name: files[name] for name, kind in kinds.items() if kind == "aggregated"
    }
    strange = tuple(
        Reason(
            "unknown_file",
            _("%(file)s is no log of pgbench and was left out."),
            file=text_of(name)[:100],
        )
        for name, kind in kinds.items()
        if kind is None and files[name].strip()
    )
    if of_transactions:
        reading = _read_transactions(read_transaction_log(of_transactions), result)
    elif aggregated:
        reading = _read_intervals(read_aggregated_log(aggregated), result)
    else:
        reading = LogReading()
    return replace(reading, notes=strange + reading.notes)


def _kind(content: bytes) -> str | None:
    for line in content[:_BYTES_LOOKED_AT].split(b"\n")[:_LINES_LOOKED_AT]:
        if is_transaction_line(line):
            return "transactions"
        if is_aggregated_line(line):
            return "aggregated"
    return None


def _read_transactions(log: TransactionLog, result: PgbenchResult) -> LogReading:
    measurements = [
        value
        for percent in PERCENTILES
        for value in known_metrics.latency_percentile(percent).make_values(
            _ms(log, float(percent))
        )
    ]
    differs = _difference(log, result)
    if (result.transactions_processed or log.latencies.count) < log.latencies.count:
        text = _(
            "%(difference)s It is that of another run, too: send the logs of this run alone."
        )
        contradiction = Reason("log_of_another_run", text, difference=differs)
        return LogReading(True, reasons=(contradiction,))
    if log.latencies.count and not differs:
        measurements += known_metrics.LATENCY_MAXIMUM.make_values(
            log.latencies.maximum / _US_PER_MS
        )
    return LogReading(
        bool(log.lines),
        tuple(measurements),
        () if differs else _sum_by_second(log),
        (differs,) if differs else (),
        unknown_lines=tuple(log.unknown_lines),
    )


def _ms(log: TransactionLog, percent: float) -> float | None:
    if log.latencies.count * (100 - percent) < 100:
        return None  # so few transactions that it would be the longest one
    latency = log.latencies.percentile(percent)
    return None if latency is None else latency / _US_PER_MS


def _difference(log: TransactionLog, result: PgbenchResult) -> Reason | None:
    """Say why the log does not have the transactions of the summary; None if it does."""
    transactions, number = result.transactions_processed, log.latencies.count
    if transactions is None:
        text = _(
            "Without a summary the log may be incomplete; its rates were left out."
        )
        return Reason("log_differs", text)
    if log.misplaced:
        text = _("%(number)s transactions of the log have impossible times.")
        return Reason("log_differs", text, number=log.misplaced)
    text = _(
        "The log holds %(number)s of the %(all)s transactions "
        "(a thread's log may be missing, or it is a sample): its rates were left out."
    )
    return (
        Reason("log_differs", text, number=number, all=transactions)
        if number != transactions
        else None
    )


def _sum_by_second(log: TransactionLog) -> tuple[SeriesData, ...]:
    counts = log.per_second.transactions[: log.whole_seconds].tolist()
    sums = log.per_second.latency_sum[: log.whole_seconds].tolist()
    latencies = tuple(
        total / count / _US_PER_MS if count else None
        for total, count in zip(sums, counts)
    )
    if not counts:
        return ()
    return (
        SeriesData(
            known_metrics.TPS.name,
            known_metrics.TPS.unit,
            tuple(float(count) for count in counts),
            start=1.0,
        ),
        SeriesData(
            known_metrics.LATENCY.name, known_metrics.LATENCY.unit, latencies, start=1.0
        ),
    )


def _read_intervals(log: AggregatedLog, result: PgbenchResult) -> LogReading:
    missing = result.threads is None or log.writers != result.threads
    text = _(
        "The logs are those of %(number)s threads, the run had %(all)s: their rates were left out."
    )
    if result.threads is None:
        text = _(
            "The logs are those of %(number)s threads, the run had more: their rates were left out."
        )
    note = Reason("log_differs", text, number=log.writers, all=result.threads)
    return LogReading(
        bool(log.intervals),
        series=() if missing else _intervals(log),
        notes=(note,) if missing else (),
        unknown_lines=tuple(log.unknown_lines),
    )


def _intervals(log: AggregatedLog) -> tuple[SeriesData, ...]:
    """Return the intervals but the first, which began before the run did."""
    starts = sorted(log.intervals)
    interval = interval_of([float(start) for start in starts])
    if interval is None:
        return ()
    rates: list[tuple[float, float | None]] = []
    latencies: list[tuple[float, float | None]] = []
    longest: list[tuple[float, float | None]] = []
    for start in starts[1:]:
        interval_found, end = log.intervals[start], start - starts[0] + interval
        count = interval_found.transactions
        rates.append((end, count / interval))
        latencies.append(
            (end, interval_found.latency_sum / count / _US_PER_MS if count else None)
        )
        longest.append(
            (end, interval_found.latency_maximum / _US_PER_MS if count else None)
        )
    return (
        *regular(known_metrics.TPS, rates, interval=interval),
        *regular(known_metrics.LATENCY, latencies, interval=interval),
        *regular(known_metrics.LATENCY_MAXIMUM, longest, interval=interval),
    )
