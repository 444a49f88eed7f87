"""Where a version prints something else than it says."""

from dataclasses import replace

from runs.tools.pgbench.result import Figures, ScriptResult
from runs.tools.pgbench.summary import Summary


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
