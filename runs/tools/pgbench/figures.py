"""The values of a summary as settings and figures, as printed."""

from runs.tools.pgbench.printed import count, decimal
from runs.tools.pgbench.result import Figures, ScriptResult, Settings
from runs.tools.pgbench.summary import ScriptLines, Summary, Values


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
        failed_transactions=count(get("failed")),
        serialization_failures=count(get("serialization")),
        deadlock_failures=count(get("deadlock")),
        other_failures=count(get("other")),
        retried=count(get("retried")),
        retries=count(get("retries")),
        skipped=count(get("skipped")),
        late=count(get("late")),
        latency_average_ms=decimal(get("average")),
        latency_stddev_ms=decimal(get("stddev")),
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
        latency_average_ms=decimal(get("average")),
        latency_stddev_ms=decimal(get("stddev")),
        failed_transactions=count(get("failed")),
        serialization_failures=count(get("serialization")),
        deadlock_failures=count(get("deadlock")),
        other_failures=count(get("other")),
        retried=count(get("retried")),
        retries=count(get("retries")),
        skipped=count(get("skipped")),
    )


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
