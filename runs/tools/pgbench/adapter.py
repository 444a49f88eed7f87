"""pgbench's raw output: the summary, progress, statements, and the logs of `-l`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import (
    Adapter,
    Files,
    Level,
    MetricValue,
    Reading,
    Reason,
    SeriesData,
    Status,
    TakenFile,
    UnreadableOutput,
)
from runs.tools.metrics import Metric, interval_of, regular
from runs.tools.output import shown, slug, text_named
from runs.tools.pgbench.logs import LogReading, read_logs
from runs.tools.pgbench.parser import parse
from runs.tools.pgbench.result import (
    PgbenchResult,
    ProgressPoint,
    ScriptResult,
    StatementResult,
)
from runs.wording import gettext_noop as _

_CONNECTIONS: dict[bool | None, str] = {True: "each-transaction", False: "kept"}
LIMITED = "limited"
"""pgbench prints that there was a rate, and not which."""
_BUILT_IN = {
    "TPC-B (sort of)": "tpcb-like",
    "select only": "select-only",
    "SELECT only": "select-only",
    "simple update": "simple-update",
    "Update only pgbench_accounts": "simple-update",
}
_NAME = re.compile(r"\A<builtin: (?P<name>.*)>")
_UNKNOWN = {"Custom query", "multiple scripts"}
_LONGEST = 100


def workload_of(result: PgbenchResult) -> dict[str, Level]:
    """Return what is known of it."""
    has_rate = result.schedule_lag_average_ms is not None
    rate: Level | None = None
    if result.tps is not None:
        rate = LIMITED if has_rate else 0
    level_values: dict[str, Level | None] = {
        "script": _script(result),
        "query_mode": result.query_mode,
        "connection": _CONNECTIONS.get(result.reconnects),
        "rate": rate,
        "max_tries": result.maximum_tries or (1 if result.tps is not None else None),
    }
    return {name: value for name, value in level_values.items() if value is not None}


def _script(result: PgbenchResult) -> str | None:
    """The script's name, or those of several with their weights: `read.sql*3+select-only`."""
    if len(result.scripts) > 1:
        return "+".join(map(_weighted, result.scripts))[:_LONGEST]
    return script_named(result.transaction_type) if result.transaction_type else None


def _weighted(script: ScriptResult) -> str:
    weight = "" if script.weight in (None, 1) else f"*{script.weight}"
    return f"{script_named(script.name) or script.name}{weight}"


def script_named(printed: str) -> str | None:
    """The script of a line "transaction type"; None where the version does not name it."""
    if not printed or printed in _UNKNOWN:
        return None
    built_in = _NAME.fullmatch(printed)
    name = built_in["name"] if built_in else printed
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    # The folder is that of a checkout or of a job, and another one each time.
    return PurePosixPath(name.replace("\\", "/")).name[:_LONGEST] or None


_LONGEST_STATEMENT_NAME = 60


def list_figures(result: PgbenchResult) -> Iterator[MetricValue]:
    """Yield the figures of a run; those of scripts only where there are several."""
    yield from _figures(result)
    yield from known_metrics.CONNECTION_TIME.make_values(
        result.initial_connection_time_ms
    )
    yield from known_metrics.RECONNECTION.make_values(result.average_connection_time_ms)
    yield from known_metrics.TPS_INCLUDING.make_values(result.tps_including_connections)
    yield from known_metrics.LATE.make_values(result.late)
    yield from known_metrics.LAG_AVERAGE.make_values(result.schedule_lag_average_ms)
    yield from known_metrics.LAG_MAXIMUM.make_values(result.schedule_lag_max_ms)
    if len(result.scripts) > 1:
        for script in result.scripts:
            yield from _figures(script, f"script {script.number}")
    for number, statement in enumerate(result.statements, start=1):
        yield from _statement_values(number, statement)


def _figures(
    result: PgbenchResult | ScriptResult, part_name: str = ""
) -> Iterator[MetricValue]:
    """What the run and each of its scripts have."""
    for metric, value in (
        (known_metrics.TPS, result.tps),
        (known_metrics.LATENCY_AVERAGE, result.latency_average_ms),
        (known_metrics.LATENCY_STDDEV, result.latency_stddev_ms),
        (known_metrics.TRANSACTIONS, result.transactions_processed),
        (known_metrics.FAILED, result.failed_transactions),
        (known_metrics.SERIALIZATION, result.serialization_failures),
        (known_metrics.DEADLOCK, result.deadlock_failures),
        (known_metrics.OTHER_FAILURES, result.other_failures),
        (known_metrics.RETRIED, result.retried),
        (known_metrics.RETRIES, result.retries),
        (known_metrics.SKIPPED, result.skipped),
    ):
        yield from (metric.part(part_name) if part_name else metric).make_values(value)


def _statement_values(number: int, statement: StatementResult) -> Iterator[MetricValue]:
    full_name = f"statement_{statement.script}_{number}_{slug(statement.text)}"
    name, text = full_name[:_LONGEST_STATEMENT_NAME].strip("_"), statement.text[:150]
    # Failures and retries of the complete run have a direction; these say where they come from.
    for metric, value in (
        (known_metrics.LATENCY, statement.latency_ms),
        (known_metrics.STATEMENT_FAILURES, statement.failures),
        (replace(known_metrics.RETRIES, direction="neutral"), statement.retries),
    ):
        yield from replace(
            metric, name=f"{name}_{metric.name}", title=text
        ).make_values(value)


def progress_series(points: tuple[ProgressPoint, ...]) -> tuple[SeriesData, ...]:
    """Return the series of `-P`, each where the tool printed its column."""
    seconds = [point.seconds for point in points]
    interval = interval_of(sorted(seconds)) or (seconds[0] if seconds else None)
    # Under --progress-timestamp the times count from the Unix epoch.
    shift = min(seconds) - (interval or 0) if seconds and min(seconds) > 1e8 else 0.0
    columns: tuple[tuple[Metric, Sequence[float | None]], ...] = (
        (known_metrics.TPS, [point.tps for point in points]),
        (known_metrics.LATENCY, [point.latency_ms for point in points]),
        (known_metrics.LATENCY_STDDEV, [point.stddev_ms for point in points]),
        (known_metrics.SCHEDULE_LAG, [point.lag_ms for point in points]),
        (known_metrics.FAILED, [point.failed for point in points]),
        (known_metrics.SKIPPED, [point.skipped for point in points]),
    )
    series: list[SeriesData] = []
    for metric, values in columns:
        placed = [(time - shift, value) for time, value in zip(seconds, values)]
        series += regular(metric, placed, interval=interval)
    return tuple(series)


def levels(result: PgbenchResult) -> dict[str, Level]:
    """Return what was run."""
    level_values = {
        "clients": result.clients,
        "threads": result.threads,
        "scale": result.scale,
        "duration": result.duration_s,
        "transactions_per_client": result.transactions_per_client,
        "partitions": result.partitions,
        "latency_limit": result.latency_limit_ms,
    }
    return {name: value for name, value in level_values.items() if value is not None}


def labels(result: PgbenchResult) -> dict[str, str]:
    """Return what else the tool says of the run."""
    label_values = {
        "transaction_type": result.transaction_type,
        "query_mode": result.query_mode,
        "partition_method": result.partition_method,
    }
    return {name: value for name, value in label_values.items() if value}


_OTHER_USE = re.compile(
    r"^(?:pgbench is a benchmarking tool for PostgreSQL|pgbench \(PostgreSQL\) \d"
    r"|dropping old tables|creating tables\.\.\.|generating data|vacuuming\.\.\.|vacuum\.\.\.$"
    r"|(?:set|creating) primary keys?\.\.\.|\d{1,12} (?:of \d{1,12} )?tuples .{0,40}done"
    r"|done in \d{1,9}\.\d{1,6} s \()",
    re.MULTILINE,
)
_NOTHING = _(
    "Nothing in the output is pgbench's: no line of a result, no message of the tool."
)
_NOT_LOGS = {"stdout", "raw", "stderr", "exit_status"}


def read(files: Files) -> Reading:
    """Read a run; files of other names than these are its logs. Raises UnreadableOutput."""
    stdout = text_named(files, "stdout") or text_named(files, "raw")
    stderr = text_named(files, "stderr")
    result = parse(stdout, stderr, exit_status=_exit_status(files))
    logs = read_logs(_logs(files), result)
    if not logs.found and _is_other_use(result, f"{stdout}\n{stderr}"):
        raise UnreadableOutput(
            "not_a_run",
            _(
                "The output is that of pgbench -i, --help or --version, and of no benchmark."
            ),
            _("Send what pgbench printed while it measured."),
        )
    if not logs.found and any(
        item.code == "not_pgbench_output" for item in result.problems
    ):
        raise UnreadableOutput(
            "not_pgbench_output",
            _NOTHING,
            _(
                'Send what pgbench printed as "stdout" (or "raw"), together with its logs.'
            ),
        )
    if logs.found and not stdout.strip():
        return _log_alone(result, logs)
    return _reading(result, logs)


def _reading(result: PgbenchResult, logs: LogReading) -> Reading:
    figures = () if result.status == "failed" else tuple(list_figures(result))
    progress = progress_series(result.progress)
    names = {series.name for series in progress}
    return Reading(
        status=_status(result, logs),
        tool_name="pgbench",
        tool_version=result.tool_version,
        server_version=result.server_version,
        reasons=(*(item for item in result.problems if not item.note), *logs.reasons),
        notes=(*(item for item in result.problems if item.note), *logs.notes),
        measurements=figures + (logs.measurements if figures else ()),
        series=progress
        + tuple(series for series in logs.series if series.name not in names),
        levels=levels(result),
        labels=labels(result),
        workload=workload_of(result),
        unknown_lines=shown((*result.unknown_lines, *logs.unknown_lines)),
    )


def _status(result: PgbenchResult, logs: LogReading) -> Status:
    if result.status == "complete":
        return "partial" if logs.reasons else "finished"
    return result.status


def _is_other_use(result: PgbenchResult, text: str) -> bool:
    """Whether pgbench did something else than to measure: no figure, and words of that use."""
    return result.transaction_type is None and _OTHER_USE.search(text) is not None


def _log_alone(result: PgbenchResult, logs: LogReading) -> Reading:
    """Return what a log says without the summary: latencies, of nobody knows which run."""
    missing = _(
        "There is a log but no summary: how long the run was, and its tps, are not known."
    )
    return Reading(
        status="partial",
        tool_name="pgbench",
        reasons=(
            Reason("no_summary", missing),
            *(
                item
                for item in result.problems
                if not item.note
                and item.code not in {"not_pgbench_output", "no_result"}
            ),
        ),
        notes=logs.notes,
        measurements=logs.measurements,
        series=progress_series(result.progress),
        unknown_lines=shown((*result.unknown_lines, *logs.unknown_lines)),
    )


def _exit_status(files: Files) -> int | None:
    text = text_named(files, "exit_status").strip()
    negative, digits = text.startswith("-"), text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    return -int(digits) if negative else int(digits)


def _logs(files: Files) -> dict[str, bytes]:
    return {
        name: content.encode("utf-8", "replace")
        if isinstance(content, str)
        else content
        for name, content in files.items()
        if name not in _NOT_LOGS
    }


ADAPTER = Adapter(
    "pgbench",
    "pgbench",
    (
        TakenFile(
            "stdout", _("What pgbench printed; standard error may be mixed into it")
        ),
        TakenFile("stderr", _("Standard error, which has the progress")),
        TakenFile("exit_status", _("The exit status, as a number")),
        TakenFile("log", _("Logs of -l, one file for each thread, under any names")),
    ),
    read,
)
