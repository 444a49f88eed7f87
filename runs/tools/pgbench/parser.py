"""pgbench's output, from 9.2 to 19beta1, into a `PgbenchResult`."""

from dataclasses import replace
from typing import Any

from runs.tools.pgbench.messages import count, decimal, read_messages, without_skipped
from runs.tools.pgbench.result import Expected, Figures, PgbenchResult, ScriptResult, Settings
from runs.tools.pgbench.summary import ScriptLines, Summary, Values, read_summary
from runs.tools.pgbench.verdict import find_problems, status_of


def correct(figures: Figures, summary: Summary) -> Figures:
    """Return the figures with the faults of the tool's version put right."""
    figures = _without_commands_that_never_ran(figures)
    if not figures.skipped or figures.transactions_processed is None:
        return figures
    if summary.spreads_lag_over_skipped:
        figures = _lag_of_executed(figures, bool(summary.counts_skipped_as_processed))
    if summary.counts_skipped_as_processed:
        figures = _processed_without_skipped(figures)
    return figures


def _processed_without_skipped(figures: Figures) -> Figures:
    """Take out the transactions that 9.6 and 10 skipped under `-R -L` and counted all the same."""
    printed, skipped = figures.transactions_processed or 0, figures.skipped or 0
    share = _executed_share(printed, skipped)
    return replace(
        figures,
        transactions_processed=max(printed - skipped, 0),
        tps=_times(figures.tps, share),
        tps_including_connections=_times(figures.tps_including_connections, share),
        scripts=tuple(_script_without_skipped(script) for script in figures.scripts),
    )


def _script_without_skipped(script: ScriptResult) -> ScriptResult:
    executed, skipped = script.transactions_processed, script.skipped
    if executed is None:
        return replace(script, tps=None)
    if not skipped:
        return script
    return replace(script, tps=_times(script.tps, executed / (executed + skipped)))


def _lag_of_executed(figures: Figures, counts_skipped: bool) -> Figures:
    """Divide the sum of the lags by the transactions that had one (9.6 to 14 do not)."""
    printed, skipped = figures.transactions_processed or 0, figures.skipped or 0
    total = printed if counts_skipped else printed + skipped
    share = _executed_share(total, skipped)
    lag = figures.schedule_lag_average_ms
    average = lag / share if lag is not None and share else None
    return replace(figures, schedule_lag_average_ms=average)


def _executed_share(total: int, skipped: int) -> float:
    return max(total - skipped, 0) / total if total else 0.0


def _times(figure: float | None, share: float) -> float | None:
    return None if figure is None else figure * share


def _without_commands_that_never_ran(figures: Figures) -> Figures:
    """Forget the 0.000 ms that most versions print for the commands of a script of weight 0."""
    idle = {script.number for script in figures.scripts if script.transactions_processed == 0}
    if not idle:
        return figures
    return replace(
        figures,
        statements=tuple(
            replace(row, latency_ms=None) if row.script in idle else row
            for row in figures.statements
        ),
    )


def settings(values: Values) -> Settings:
    """Return what was run."""
    get = values.get
    tool = get("tool")
    return Settings(
        tool_version=tool,
        server_version=get("server") or tool,
        transaction_type=get("transaction_type"),
        scale=count(get("scale")),
        partition_method=get("partition_method"),
        partitions=count(get("partitions")),
        query_mode=get("query_mode"),
        clients=count(get("clients")),
        threads=count(get("threads")),
        maximum_tries=count(get("maximum_tries")),
        duration_s=decimal(get("duration")),
        transactions_per_client=count(get("per_client")),
        transactions_requested=count(get("requested")),
        latency_limit_ms=decimal(get("limit")),
    )


def figures(summary: Summary) -> Figures:
    """Return the figures as printed; `corrections` lists where they differ from the print."""
    get = summary.values.get
    tps = get("excluding") or get("without_initial") or get("reconnecting")
    return Figures(
        transactions_processed=count(get("processed")),
        **_counts_and_latency(summary.values),
        late=count(get("late")),
        latency_is_measured=get("stddev") is not None,
        latency_includes_failures=get("with_failures") is not None,
        schedule_lag_average_ms=decimal(get("lag")),
        schedule_lag_max_ms=decimal(get("maximum_lag")),
        initial_connection_time_ms=decimal(get("initial")),
        average_connection_time_ms=decimal(get("reconnection")),
        tps=decimal(tps),
        tps_including_connections=decimal(get("including") or get("reconnecting")),
        reconnects=_reconnects(summary.values),
        scripts=tuple(_script(script, summary.values) for script in summary.scripts),
        statements=tuple(summary.table.rows),
    )


def _reconnects(values: Values) -> bool | None:
    if "reconnecting" in values:
        return True
    return False if "without_initial" in values else None


def _script(script: ScriptLines, whole_run: Values) -> ScriptResult:
    get = script.values.get
    return ScriptResult(
        number=script.number,
        name=script.name,
        weight=count(get("weight")),
        transactions_processed=_script_processed(script.values, whole_run),
        tps=decimal(get("processed_tps") or get("tps")),
        **_counts_and_latency(script.values),
    )


def _counts_and_latency(values: Values) -> dict[str, Any]:
    """What is printed alike of a run and of a script."""
    return {
        "failed_transactions": count(values.get("failed")),
        "serialization_failures": count(values.get("serialization")),
        "deadlock_failures": count(values.get("deadlock")),
        "other_failures": count(values.get("other")),
        "retried": count(values.get("retried")),
        "retries": count(values.get("retries")),
        "skipped": count(values.get("skipped")),
        "latency_average_ms": decimal(values.get("average")),
        "latency_stddev_ms": decimal(values.get("stddev")),
    }


def _script_processed(values: Values, whole_run: Values) -> int | None:
    """Count the processed transactions of a script.

    "N transactions" includes the skipped ones to 14, does not in 15 to 17, and includes skipped
    and failed ones from 18 on, where another line gives the processed ones, if there were any.
    """
    processed, total = count(values.get("processed")), count(values.get("transactions"))
    if processed is not None or not total:
        return total if processed is None else processed
    if values.get("tps") is None:
        return None
    if "failed" in values or "skipped" not in whole_run:
        return total
    skipped = count(values.get("skipped"))
    return None if skipped is None else max(total - skipped, 0)


def parse(
    stdout: str, stderr: str, *, exit_status: int | None, expected: Expected | None = None
) -> PgbenchResult:
    """Read the output of one benchmark run (not of `-i`).

    The streams are taken as the tool wrote them; standard error may also be mixed into standard
    output. `exit_status` is the tool's, a negative signal number, or None if nobody kept it.
    No text makes this raise: what is not a result gives status "failed" with the reason. The time
    taken grows with the length of the output, and no faster.
    """
    summary = read_summary(stdout)
    messages = read_messages([*summary.other_lines, *stderr.split("\n")])
    options, measured = settings(summary.values), correct(figures(summary), summary)
    problems = find_problems(
        options,
        measured,
        summary,
        messages,
        exit_status=exit_status,
        expected=expected or Expected(),
    )
    progress = tuple(messages.progress)
    if summary.counts_skipped_as_processed is not False:
        progress = without_skipped(
            progress,
            is_limited=measured.skipped is not None,
            # A summary with tps is complete, and has the skipped transactions if any could be.
            is_cut=measured.tps is None and "progress: " in stderr.rpartition("\n")[2],
        )
    unknown = messages.unknown_lines + ([summary.cut_line] if summary.cut_line else [])
    result = PgbenchResult(
        **vars(options),
        **vars(measured),
        status=status_of(problems, measured, messages),
        problems=problems,
        progress=progress,
        unknown_lines=tuple(unknown),
    )
    return _only_what_holds(result)


def _only_what_holds(result: PgbenchResult) -> PgbenchResult:
    """Leave out the figures that the status takes the ground from."""
    if result.status == "failed":
        return result.without_figures()
    if result.status == "partial" and not result.latency_is_measured:
        # The tool divided the time of all the clients asked for, the dead ones among them.
        return replace(result, latency_average_ms=None)
    return result
