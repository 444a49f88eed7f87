"""A parsed run as measurements, series and levels."""

from collections.abc import Iterator, Sequence

from runs.tools import metrics
from runs.tools.adapter import Level, MetricValue, SeriesReading
from runs.tools.metrics import Metric
from runs.tools.pgbench.result import PgbenchResult, ProgressPoint, ScriptResult, StatementResult
from runs.tools.series import interval_of, regular
from runs.tools.text import slug
from runs.wording import gettext_noop as _

_SKIPPED = Metric("skipped_transactions", _("Transactions skipped"), "transactions", "lower")
_LATE = Metric("late_transactions", _("Transactions above the limit"), "transactions", "lower")
_RETRIED = Metric("retried_transactions", _("Transactions retried"), "transactions", "lower")
_RETRIES = Metric("retries", _("Retries"), "retries", "lower")
_LAG_AVERAGE = Metric("schedule_lag_average", _("Schedule lag, average"), "ms", "lower")
_LAG_MAXIMUM = Metric("schedule_lag_max", _("Schedule lag, maximum"), "ms", "lower")
_RECONNECTION = Metric("connection_time_average", _("Connection time, average"), "ms", "lower")
_SERIALIZATION = Metric(
    "serialization_failures", _("Serialization failures"), "transactions", "lower"
)
_DEADLOCK = Metric("deadlock_failures", _("Deadlock failures"), "transactions", "lower")
_OTHER = Metric("other_failures", _("Other failures"), "transactions", "lower")
# The same run in other words: to be read, not to be judged a second time.
_TPS_INCLUDING = Metric(
    "tps_including_connections", _("Transactions per second, with connecting"), "tps", "neutral"
)
_LONGEST_STATEMENT_NAME = 60

_SERIES = {"tps": "tps", "latency": "ms", "latency_stddev": "ms", "schedule_lag": "ms"}
_COUNTS = {"failed_transactions": "transactions", "skipped_transactions": "transactions"}


def of_result(result: PgbenchResult) -> Iterator[MetricValue]:
    """Yield the figures of a run; those of scripts only where there are several."""
    yield from metrics.TPS.of(result.tps)
    yield from metrics.LATENCY_AVERAGE.of(result.latency_average_ms)
    yield from metrics.LATENCY_STDDEV.of(result.latency_stddev_ms)
    yield from metrics.CONNECTION_TIME.of(result.initial_connection_time_ms)
    yield from _RECONNECTION.of(result.average_connection_time_ms)
    yield from metrics.TRANSACTIONS.of(result.transactions_processed)
    yield from _TPS_INCLUDING.of(result.tps_including_connections)
    yield from _failures(result)
    yield from _LATE.of(result.late)
    yield from _LAG_AVERAGE.of(result.schedule_lag_average_ms)
    yield from _LAG_MAXIMUM.of(result.schedule_lag_max_ms)
    if len(result.scripts) > 1:
        for script in result.scripts:
            yield from _of_script(script)
    for number, statement in enumerate(result.statements, start=1):
        yield from _of_statement(number, statement)


def _failures(of: PgbenchResult | ScriptResult, part: str = "") -> Iterator[MetricValue]:
    """What did not go through at the first try, of the run or of one of its scripts."""
    for metric, value in (
        (metrics.FAILED, of.failed_transactions),
        (_SERIALIZATION, of.serialization_failures),
        (_DEADLOCK, of.deadlock_failures),
        (_OTHER, of.other_failures),
        (_RETRIED, of.retried),
        (_RETRIES, of.retries),
        (_SKIPPED, of.skipped),
    ):
        yield from (metric.part(part) if part else metric).of(value)


def _of_script(script: ScriptResult) -> Iterator[MetricValue]:
    name = f"script {script.number}"
    yield from metrics.TPS.part(name).of(script.tps)
    yield from metrics.LATENCY_AVERAGE.part(name).of(script.latency_average_ms)
    yield from metrics.LATENCY_STDDEV.part(name).of(script.latency_stddev_ms)
    yield from metrics.TRANSACTIONS.part(name).of(script.transactions_processed)
    yield from _failures(script, name)


def _of_statement(number: int, statement: StatementResult) -> Iterator[MetricValue]:
    place = f"statement_{statement.script}_{number}_{slug(statement.text)}"
    name, text = place[:_LONGEST_STATEMENT_NAME].strip("_"), statement.text[:150]
    yield from Metric(f"{name}_latency", text, "ms", "lower").of(statement.latency_ms)
    # Those of the complete run have a better direction; these say where they come from.
    yield from Metric(f"{name}_failures", text, "transactions", "neutral").of(statement.failures)
    yield from Metric(f"{name}_retries", text, "retries", "neutral").of(statement.retries)


def progress_series(points: tuple[ProgressPoint, ...]) -> tuple[SeriesReading, ...]:
    """Return the series of `-P`, each where the tool printed its column."""
    seconds = [point.seconds for point in points]
    interval = interval_of(sorted(seconds)) or (seconds[0] if seconds else None)
    # Under --progress-timestamp the times count from the Unix epoch.
    shift = min(seconds) - (interval or 0) if seconds and min(seconds) > 1e8 else 0.0
    columns: dict[str, Sequence[float | None]] = {
        "tps": [point.tps for point in points],
        "latency": [point.latency_ms for point in points],
        "latency_stddev": [point.stddev_ms for point in points],
        "schedule_lag": [point.lag_ms for point in points],
        "failed_transactions": [point.failed for point in points],
        "skipped_transactions": [point.skipped for point in points],
    }
    found: list[SeriesReading] = []
    for name, unit in {**_SERIES, **_COUNTS}.items():
        placed = [(time - shift, value) for time, value in zip(seconds, columns[name], strict=True)]
        found += regular(name, unit, placed, interval=interval)
    return tuple(found)


def levels(result: PgbenchResult) -> dict[str, Level]:
    """Return what was run."""
    found = {
        "clients": result.clients,
        "threads": result.threads,
        "scale": result.scale,
        "duration": result.duration_s,
        "transactions_per_client": result.transactions_per_client,
        "partitions": result.partitions,
        "latency_limit": result.latency_limit_ms,
    }
    return {name: value for name, value in found.items() if value is not None}


def labels(result: PgbenchResult) -> dict[str, str]:
    """Return what else the tool says of the run."""
    found = {
        "transaction_type": result.transaction_type,
        "query_mode": result.query_mode,
        "partition_method": result.partition_method,
    }
    return {name: value for name, value in found.items() if value}
