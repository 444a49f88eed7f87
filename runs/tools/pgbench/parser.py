"""pgbench's output, from 9.2 to 19beta1, into a `PgbenchResult`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from runs.patterns import re
from runs.tools.pgbench.messages import (
    Messages,
    count,
    decimal,
    drop_skipped,
    read_messages,
)
from runs.tools.pgbench.result import (
    Expected,
    Figures,
    PgbenchResult,
    Problem,
    ScriptResult,
    Settings,
    Status,
)
from runs.tools.pgbench.summary import ScriptLines, Summary, Values, read_summary
from runs.wording import Marked
from runs.wording import gettext_noop as _

# A line of a figure that no version prints in this way, such as one that is no number.
_MEANT = re.compile(
    r"(?:latency (?:average|stddev)|(?:initial|average) connection time) ?[:=]|tps ?="
)
_MOST_IN_FLIGHT = 1.5  # transactions a client; one is what it can have
_SIGNALS = {2: "SIGINT", 9: "SIGKILL", 15: "SIGTERM"}
_COVERED_SHARE = 0.95  # of the duration; recorded good runs cover 0.99 or more
_OVERRUN_SHARE, _OVERRUN_SLACK_S = 1.1, 1.0
_GAPS_AT_THE_END = (
    10  # mean waits for the next transaction that a throttled run may end early by
)


def status_of(
    problems: tuple[Problem, ...], figures: Figures, messages: Messages
) -> Status:
    """Weigh the problems. Figures that hold no more than the failures of dead clients are none."""
    if (
        any(problem.code == "several_results" for problem in problems)
        or figures.tps is None
    ):
        return "failed"
    if (figures.transactions_processed or 0) <= len(messages.aborted_clients):
        return "failed"
    return "complete" if all(problem.note for problem in problems) else "partial"


def find_problems(
    settings: Settings,
    figures: Figures,
    summary: Summary,
    messages: Messages,
    *,
    exit_status: int | None,
    expected: Expected,
) -> tuple[Problem, ...]:
    """Return everything that is wrong, the causes first."""
    problems = [
        *_message_problems(settings, messages),
        *_status_problems(exit_status, messages),
        *_output_problems(figures, summary, messages, exit_status),
        *_against_expected(settings, expected),
        *_transaction_problems(settings, figures),
        *_time_problems(settings, figures, expected),
        *_latency_problems(settings, figures),
    ]
    return tuple(problems)


def _message_problems(settings: Settings, messages: Messages) -> Iterator[Problem]:
    if messages.aborts:
        died = _("%(number)s of %(all)s clients aborted; the first message: %(said)s")
        if not settings.clients:
            died = _("%(number)s clients aborted; the first message: %(said)s")
        number, reason = len(messages.aborted_clients), messages.aborts[0]
        yield Problem(
            "clients_aborted", died, number=number, all=settings.clients, said=reason
        )
    elif messages.run_aborted:
        yield Problem("run_aborted", _("The tool said that the run was aborted."))
    if messages.connection_failures:
        reason = _add_reason(messages.connection_failures[0], messages)
        yield Problem(
            "connection_failed", _("A connection failed: %(said)s"), said=reason
        )
    elif messages.errors and not messages.aborts:
        yield _tool_error(messages.errors[0])


def _add_reason(failure: str, messages: Messages) -> str:
    """Join a failure with the server's reason, which to 12 is on the next line."""
    reason = next(
        (error for error in messages.errors if error.startswith("FATAL")), None
    )
    return f"{failure} {reason}" if failure.endswith(":") and reason else failure


def _tool_error(message: str) -> Problem:
    if "does not exist" in message and "relation" in message:
        text = _(
            "%(said)s Load the tables first (pgbench -i), or name a database that has them."
        )
        return Problem("not_initialised", text, said=message)
    return Problem("tool_error", _("The tool reported: %(said)s"), said=message)


def _status_problems(exit_status: int | None, messages: Messages) -> Iterator[Problem]:
    if not exit_status:
        return
    signal = -exit_status if exit_status < 0 else exit_status - 128
    if signal in _SIGNALS:
        name = _SIGNALS[signal]
        yield Problem(
            "interrupted", _("The tool was ended by %(signal)s."), signal=name
        )
    elif messages.unknown_lines:
        text = _("The tool exited with status %(status)s: %(said)s")
        line = messages.unknown_lines[0].strip()
        yield Problem("exit_status", text, status=exit_status, said=line)
    else:
        text = _("The tool exited with status %(status)s.")
        yield Problem("exit_status", text, status=exit_status)


def _output_problems(
    figures: Figures, summary: Summary, messages: Messages, exit_status: int | None
) -> Iterator[Problem]:
    if summary.repeated:
        message = _("The output holds more than one result, or lines of one twice.")
        yield Problem("several_results", message)
    if figures.transactions_processed == 0:
        yield Problem("nothing_processed", _("No transaction was processed."))
    elif not (exit_status or summary.values or messages.recognised):
        message = _(
            "Nothing in the output is pgbench's: no line of a result, no message of the tool."
        )
        yield Problem("not_pgbench_output", message)
    elif figures.tps is None:
        yield Problem(
            "no_result",
            _("The output ends without a whole line of transactions/second."),
        )
    elif figures.transactions_processed is None:
        yield Problem(
            "no_result",
            _("The output has no whole line of the transactions processed."),
        )
    meant = [line for line in summary.other_lines if _MEANT.match(line)]
    if figures.transactions_processed and (average := summary.values.get("average")):
        meant += (
            [f"latency average = {average}"]
            if figures.latency_average_ms is None
            else []
        )
    if meant:
        line = repr(meant[0][:80])
        yield Problem(
            "unreadable_figure", _("A figure cannot be read: %(line)s"), line=line
        )
    if summary.cut_line is not None:
        message = _("The last line may have been cut and was left out: %(line)s")
        yield Problem("cut_line", message, note=True, line=repr(summary.cut_line[:80]))
    if summary.counts_skipped_as_processed and figures.skipped:
        message = _(
            "The tool counted %(number)s skipped transactions as processed; "
            "transactions and tps were corrected."
        )
        yield Problem("skipped_corrected", message, note=True, number=figures.skipped)


def _against_expected(settings: Settings, expected: Expected) -> Iterator[Problem]:
    clients = _("The run was of %(found)s clients, not of %(wanted)s as asked for.")
    seconds = _("The run was of %(found)s seconds, not of %(wanted)s as asked for.")
    yield from _if_other("clients_differ", clients, settings.clients, expected.clients)
    yield from _if_other(
        "duration_differs", seconds, settings.duration_s, expected.duration_s
    )


def _if_other(
    code: str, text: Marked, actual: float | None, expected: float | None
) -> Iterator[Problem]:
    if actual is not None and expected is not None and actual != expected:
        yield Problem(code, text, found=f"{actual:g}", wanted=f"{expected:g}")


def _transaction_problems(settings: Settings, figures: Figures) -> Iterator[Problem]:
    requested, processed = (
        settings.transactions_requested,
        figures.transactions_processed,
    )
    if requested is None or processed is None:
        return
    accounted = processed + (figures.failed_transactions or 0) + (figures.skipped or 0)
    if accounted != requested:
        message = _("%(number)s of the %(wanted)s transactions asked for were run.")
        yield Problem(
            "transactions_missing", message, number=accounted, wanted=requested
        )


def _time_problems(
    settings: Settings, figures: Figures, expected: Expected
) -> Iterator[Problem]:
    duration = (
        expected.duration_s if settings.duration_s is None else settings.duration_s
    )
    if not duration:
        return
    known_times = (expected.elapsed_s, _covered_seconds(figures))
    seconds = min((time for time in known_times if time is not None), default=duration)
    if seconds < duration * _COVERED_SHARE - _early_end_allowed(settings, figures):
        message = _(
            "The run took %(seconds)s s of its %(all)s s; its figures cover no more."
        )
        yield Problem(
            "ended_early", message, seconds=f"{seconds:.1f}", all=f"{duration:g}"
        )
    elapsed = expected.elapsed_s
    if elapsed is not None and elapsed > duration * _OVERRUN_SHARE + _OVERRUN_SLACK_S:
        message = _("The run took %(seconds)s s instead of %(wanted)s s.")
        took, duration_text = f"{elapsed:.1f}", f"{duration:g}"
        yield Problem("overran", message, note=True, seconds=took, wanted=duration_text)


def _latency_problems(settings: Settings, figures: Figures) -> Iterator[Problem]:
    """Without a rate, whose lag counts, a client's transactions cannot overlap."""
    clients, latency = settings.clients, figures.latency_average_ms
    tps = figures.tps_including_connections or figures.tps
    if (
        not clients
        or not tps
        or not latency
        or figures.schedule_lag_average_ms is not None
    ):
        return
    if latency / 1000 * tps > clients * _MOST_IN_FLIGHT:
        message = _(
            "%(clients)s clients cannot run %(tps)s transactions/s of %(ms)s ms each."
        )
        rate, ms = f"{tps:g}", f"{latency:g}"
        yield Problem("contradiction", message, clients=clients, tps=rate, ms=ms)


def _covered_seconds(figures: Figures) -> float | None:
    """Return the time that tps was computed over, and that to connect, which -T includes."""
    processed, tps = figures.transactions_processed, figures.tps_including_connections
    if tps is None:
        tps = figures.tps
    if not processed or not tps:
        return None
    return processed / tps + (figures.initial_connection_time_ms or 0.0) / 1000


def _early_end_allowed(settings: Settings, figures: Figures) -> float:
    """Return how early a throttled run may end: a client stops if its next turn is too late."""
    if figures.schedule_lag_max_ms is None or not figures.tps:
        return 0.0
    return _GAPS_AT_THE_END * (settings.threads or 1) / figures.tps


def correct(figures: Figures, summary: Summary) -> Figures:
    """Return the figures with the faults of the tool's version put right."""
    figures = _exclude_idle_commands(figures)
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


def _exclude_idle_commands(figures: Figures) -> Figures:
    """Forget the 0.000 ms that most versions print for the commands of a script of weight 0."""
    idle = {
        script.number
        for script in figures.scripts
        if script.transactions_processed == 0
    }
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
    """Return the figures as printed."""
    get = summary.values.get
    tps = get("excluding") or get("without_initial") or get("reconnecting")
    return Figures(
        transactions_processed=count(get("processed")),
        **_counts_and_latency(summary.values),
        late=count(get("late")),
        latency_is_measured=get("stddev") is not None,
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
    stdout: str,
    stderr: str,
    *,
    exit_status: int | None,
    expected: Expected | None = None,
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
        progress = drop_skipped(
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
        return result.clear_figures()
    if result.status == "partial" and not result.latency_is_measured:
        # The tool divided the time of all the clients asked for, the dead ones among them.
        return replace(result, latency_average_ms=None)
    return result
