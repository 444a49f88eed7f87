"""A load of pgbench in slices: a process for each, in turn with the other runs of the round.

Each slice is a durable step. Its figures are points of the run's series, which are numbered by
rounds; the run's own figures are those of all its slices together.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runs.execution import turns
from runs.execution.bench import LIVE_SECONDS, Bench, require_program
from runs.execution.errors import TargetProblem
from runs.execution.machine import saturation
from runs.execution.steps.steps import StepResult
from runs.scenarios.definition import Values
from runs.tools import known_metrics, pgbench
from runs.tools.adapter import SeriesData
from runs.tools.metrics import Metric
from runs.tools.pgbench import versions
from runs.wording import gettext_noop as _

# In addition to its seconds; all other runs of the round wait meanwhile.
GRACE_SECONDS = 60.0
# A slice in which no transaction ended: as if half of one had, where the others have few.
LEAST_TRANSACTIONS = 0.5
# Where they have more, the machine stood still, and the slice says nothing of the load.
FEW_TRANSACTIONS = 5
# Names of steps sort as they are executed.
DIGITS = 4


def number_of(parameters: Values, slice_s: int) -> int:
    """How many slices a run has: its seconds, in whole slices."""
    return int(parameters["duration"]) // slice_s


@dataclass(frozen=True)
class Slice:
    """One slice: when it began (seconds since the epoch), and what it gave.

    `foreign` is the share of the machine's processors that others took, None if unknown.
    """

    begun: float
    result: pgbench.PgbenchResult
    step: StepResult
    foreign: float | None

    @property
    def transactions(self) -> int:
        """How many ended in it."""
        return self.result.transactions_processed or 0


async def measure(
    bench: Bench, argv_of: Callable[[int], Sequence[str]], clients: int
) -> None:
    """Run the load slice by slice, each when it is this run's turn, and add the findings.

    `argv_of` gives the command of each, which are numbered from 1. Raises TargetProblem with
    pgbench's message for a slice that does not end as asked, and where no slice has a transaction.
    """
    slice_s = bench.plan.slice_s
    number = number_of(bench.parameters, slice_s)
    expected = pgbench.Expected(duration_s=slice_s, clients=clients)
    slices: list[Slice] = []
    shown_at = time.monotonic()
    for ordinal in range(1, number + 1):
        await _reach(bench, turns.slice_of(ordinal))
        slices.append(await _slice(bench, argv_of(ordinal), ordinal, expected))
        if time.monotonic() - shown_at > LIVE_SECONDS:
            shown_at = time.monotonic()
            await bench.reporter.live_series(series_of(slices, slice_s))
    for act in bench.after_slices:
        await act()
    await _reach(bench, turns.END)
    _keep_output(bench, slices)
    if not any(one_slice.transactions for one_slice in slices):
        raise _incomplete(slices[-1].step.name, slices[-1].result)
    _report(bench, slices)


async def _reach(bench: Bench, point: turns.Point) -> None:
    if bench.turns is not None:
        await bench.turns.reached(bench.plan.run_id, point)


async def _slice(
    bench: Bench, argv: Sequence[str], ordinal: int, expected: pgbench.Expected
) -> Slice:
    name = f"slice-{ordinal:0{DIGITS}}"
    limit_s = bench.plan.slice_s + GRACE_SECONDS
    step = await bench.load_step(name, argv, limit_s=limit_s)
    begun = bench.load_spans.get(bench.database.name, (step.started, 0.0))[0]
    bench.load_spans[bench.database.name] = (begun, step.finished)
    require_program(step, "pgbench", bench.database)
    result = pgbench.parse(
        step.stdout, step.stderr, exit_status=step.exit_status, expected=expected
    )
    if result.status != "complete" and not _is_empty(result):
        bench.keep("pgbench.err", step.stderr)
        raise _incomplete(name, result)
    return Slice(step.started, result, step, bench.foreign_share)


def _is_empty(result: pgbench.PgbenchResult) -> bool:
    """Whether pgbench ended as asked, before any transaction did."""
    codes = [problem.code for problem in result.problems if not problem.note]
    return codes == ["nothing_processed"]


def _incomplete(name: str, result: pgbench.PgbenchResult) -> TargetProblem:
    return TargetProblem(
        "%(name)s: %(problems)s",
        name=name,
        problems=result.failure,
        code="slice_incomplete",
        remedy=_("Read the step's output and server.log, then queue the run again."),
    )


def _keep_output(bench: Bench, slices: Sequence[Slice]) -> None:
    bench.keep("pgbench.out", "\n".join(one_slice.step.stdout for one_slice in slices))
    if errors := "\n".join(
        filter(None, (one_slice.step.stderr for one_slice in slices))
    ):
        bench.keep("pgbench.err", errors)


def _report(bench: Bench, slices: Sequence[Slice]) -> None:
    findings = bench.findings
    findings.tool_name = "pgbench"
    full_result = _first_full(slices).result
    findings.tool_version = full_result.tool_version or versions.release_text(
        bench.plan.client_version_num
    )
    findings.series += series_of(slices, bench.plan.slice_s)
    findings.measurements.update(figures(slices))
    _note_generator(bench, slices)
    _note_still(bench, slices)
    others = bench.turns.size - 1 if bench.turns is not None else 0
    text = _(
        "Measured in %(number)s slices of %(seconds)s s, in turn with %(others)s other runs of "
        "the round."
    )
    bench.note(
        "slices",
        text,
        level="info",
        number=len(slices),
        seconds=bench.plan.slice_s,
        others=others,
    )


def _note_generator(bench: Bench, slices: Sequence[Slice]) -> None:
    used = [one_slice.step.cpu_seconds for one_slice in slices]
    known_seconds = [seconds for seconds in used if seconds is not None]
    if len(known_seconds) < len(used):
        return
    whole_seconds = sum(one_slice.step.seconds for one_slice in slices)
    saturation.note_share(
        bench,
        "pgbench",
        sum(known_seconds) / whole_seconds,
        _first_full(slices).result.threads or 0,
    )


def _first_full(slices: Sequence[Slice]) -> Slice:
    return next(one_slice for one_slice in slices if one_slice.transactions)


def _note_still(bench: Bench, slices: Sequence[Slice]) -> None:
    number = rates(slices).count(None)
    if not number:
        return
    text = _(
        "No transaction ended in %(number)s of %(all)s slices, and the others have many: the "
        "machine stood still. Rounds with such a slice do not count."
    )
    bench.note("slices_empty", text, number=number, all=len(slices))


def figures(slices: Sequence[Slice]) -> dict[str, float]:
    """A run's figures: rates and latencies of all its slices together."""
    results = [one_slice.result for one_slice in slices]
    full_slices = [one_slice for one_slice in slices if one_slice.transactions]
    total = sum(one_slice.transactions for one_slice in full_slices)
    found = {
        known_metrics.TPS.name: math.fsum(rate or 0.0 for rate in rates(slices))
        / len(slices),
        known_metrics.TRANSACTIONS.name: float(total),
    }
    latencies = [one_slice.result.latency_average_ms for one_slice in full_slices]
    if total and None not in latencies:
        weighted = (
            one_slice.transactions * (latency or 0.0)
            for one_slice, latency in zip(full_slices, latencies, strict=True)
        )
        found[known_metrics.LATENCY_AVERAGE.name] = math.fsum(weighted) / total
    connecting = [result.initial_connection_time_ms for result in results]
    known_times = [
        milliseconds for milliseconds in connecting if milliseconds is not None
    ]
    if len(known_times) == len(results):
        mean = math.fsum(known_times) / len(known_times)
        found[known_metrics.CONNECTION_TIME.name] = mean
    return found


def rates(slices: Sequence[Slice]) -> list[float | None]:
    """Transactions a second of each slice; never 0, which has no logarithm.

    None where no transaction ended, and others of the run have many: see FEW_TRANSACTIONS.
    """
    numbers = [one_slice.transactions for one_slice in slices if one_slice.transactions]
    usual = statistics.median(numbers) if numbers else 0.0
    return [
        one_slice.result.tps
        if one_slice.transactions
        else _rate_of_none(one_slice, usual)
        for one_slice in slices
    ]


def _rate_of_none(one_slice: Slice, usual: float) -> float | None:
    if usual > FEW_TRANSACTIONS:
        return None
    return LEAST_TRANSACTIONS / max(one_slice.step.seconds, 1.0)


def series_of(slices: Sequence[Slice], slice_s: int) -> list[SeriesData]:
    """The slices by round. The first moment of `slice_at` is in seconds since the epoch."""
    first = slices[0].begun

    def series(
        metric: Metric, values: Sequence[float | None], start: float
    ) -> SeriesData:
        return SeriesData(
            metric.name,
            metric.unit,
            tuple(values),
            start=start,
            interval=float(slice_s),
        )

    tps = rates(slices)
    latencies = [one_slice.result.latency_average_ms for one_slice in slices]
    begun = [one_slice.begun - first for one_slice in slices]
    foreign = [one_slice.foreign for one_slice in slices]
    percent = [None if share is None else round(100 * share, 1) for share in foreign]
    return [
        series(known_metrics.SLICE_TPS, tps, slice_s),
        series(known_metrics.SLICE_LATENCY, latencies, slice_s),
        series(known_metrics.SLICE_AT, begun, first),
        series(known_metrics.SLICE_FOREIGN, percent, slice_s),
    ]
