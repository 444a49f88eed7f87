"""The last points of a branch as one baseline: `base=history:main`."""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from django.db.models import Q, QuerySet

from runs.analysis.inference import SIGNIFICANCE, Inference, Model, Pair, judge
from runs.analysis.inference import Cell as Counted
from runs.analysis.inference.job_prior import JobPoint
from runs.analysis.inference.job_scatter import JobAnswer, judge_jobs
from runs.analysis.summary import Summary, summarise
from runs.cells.selectors import metrics, revisions
from runs.cells.selectors.series_cells import have_levels
from runs.compare.selectors.address.head_and_base import Side
from runs.compare.selectors.judge import gate, two_jobs
from runs.compare.selectors.judge.gate import (
    Began,
    Criteria,
    SideVerdict,
    VerdictRow,
    primary_of,
)
from runs.compare.selectors.judge.two_jobs import JobHistory, JobKey
from runs.compare.selectors.load import comparability, stored_cells
from runs.compare.selectors.load.comparability import Comparability
from runs.compare.selectors.load.stored_cells import CellRuns, Machine
from runs.grouping import group_by_key
from runs.models import Cell, CellSummary, Measurement, Metric, Run

# What so many of the last points have, the next one is to have, too.
AGREE = 3
# Of more that is lost the rest is not told: one row is enough for the verdict.
MOST_LOST = 1000

Summaries = Mapping[tuple[Metric, int], Summary]


@dataclass(frozen=True)
class _Known:
    """What is known of all cells of both sides."""

    summaries: Summaries
    history: JobHistory
    counts: Mapping[tuple[int, int], list[float]]
    runs: Mapping[int, CellRuns]
    under: Comparability
    criteria: Criteria
    shas: Mapping[int, str]

    @property
    def counted(self) -> set[int]:
        """The metrics that are compared by their values, and not by logs."""
        return {metric for metric, _cell in self.counts}


def compared(base: Side, head: Side, criteria: Criteria) -> SideVerdict:
    """The verdict of two sides; the base may be the last points of a branch."""
    if base.points:
        return judge_against_history(base, head, criteria)
    return gate.compare_sides(base, head, criteria)


def judge_against_history(base: Side, head: Side, criteria: Criteria) -> SideVerdict:
    """Each condition of the head against its points of the base, and what the head lost.

    Seven queries, and four more where it lost something.
    """
    summaries: Summaries = _summaries(
        [cell.pk for cell in head.cells], criteria.metrics
    )
    metrics_found = metrics.sort_by_use({metric for metric, _cell in summaries})
    until = revisions.arrived(head.campaign, [head.revision] if head.revision else [])
    history = _history(base, head, metrics_found, criteria, until)
    ids = {cell.pk for cell in (*head.cells, *base.cells)}
    ids.update(cell for cells in history.cells.values() for cell in cells.values())
    runs = stored_cells.read_runs(ids, until=until, without=history.without)
    if history.without:
        summaries = _exclude_machines(head, summaries, history.without)
    known_facts = _Known(
        summaries,
        history,
        _counts(ids, metrics_found, until, history.without),
        runs,
        comparability.read_comparability(ids, runs),
        criteria,
        {cell.revision.pk: cell.revision.sha for cell in base.cells if cell.revision},
    )
    points = group_by_key((cell.series_key, cell) for cell in base.cells)
    heads = [
        cell
        for cell in head.cells
        if have_levels(head.levels[cell.pk], criteria.levels)
    ]
    lost = _lost_rows(base, head, summaries, criteria, until)
    all_metrics = metrics.sort_by_use({*metrics_found, *(row.metric for row in lost)})
    primary = primary_of(head, all_metrics, criteria.metrics)
    rows = []
    for metric in metrics_found:
        measured = [cell for cell in heads if (metric, cell.pk) in summaries]
        share = 1 if metric.name in primary else max(1, len(metrics_found) - 1)
        judged = _judged(metric, measured, known_facts, share)
        for cell in measured:
            row = _row(metric, points[cell.series_key], cell, known_facts, judged)
            rows.append(
                replace(
                    row, levels=head.levels[cell.pk], is_asked=metric.name in primary
                )
            )
    rows += [replace(row, is_asked=row.metric.name in primary) for row in lost]
    return SideVerdict(base, head, tuple(rows), criteria.effect)


def _lost_rows(
    base: Side, head: Side, summaries: Summaries, criteria: Criteria, until: int
) -> list[VerdictRow]:
    """What the last points of the base all measured and the head did not, in the head's own jobs.

    A suite that is measured now and then is in some of them only, and is not missed.
    """
    last_points = list(dict.fromkeys(cell.revision_id for cell in base.cells))[:AGREE]
    if not last_points:
        return []
    series_of = {cell.pk: cell.series_key for cell in head.cells}
    measured = {(metric.pk, series_of[cell]) for metric, cell in summaries}
    lost = _find_missing(head, last_points, criteria, measured)[:MOST_LOST]
    if not lost:
        return []
    lost_cells = Cell.objects.filter(pk__in={cell for _metric, cell in lost})
    lost_side = Side(
        base.text, head.campaign, lambda: tuple(lost_cells.select_related("revision"))
    )
    metric_of = Metric.objects.in_bulk({metric for metric, _cell in lost})
    newest_cells = [
        cell.pk for cell in base.cells if cell.revision_id == last_points[0]
    ]
    ids = {*lost_side.levels, *newest_cells, *series_of}
    runs = stored_cells.read_runs(ids, until=until)
    pairs = [
        gate.CellPair(levels, cell, None) for cell, levels in lost_side.levels.items()
    ]
    pairs += [gate.CellPair({}, cell, None) for cell in newest_cells]
    pairs += [gate.CellPair({}, None, cell) for cell in series_of]
    of_jobs = {pair.base for pair in gate.select_pairs_of_head_jobs(pairs, runs)}
    values = _values(lost, until)
    return [
        VerdictRow(
            lost_side.levels[cell],
            metric_of[metric],
            summarise(values[metric, cell]),
            None,
            runs.get(cell, CellRuns()),
            CellRuns(),
            Inference("not_comparable", reasons=("not_measured",)),
        )
        for metric, cell in lost
        if cell in of_jobs
        and (metric, cell) in values
        and have_levels(lost_side.levels[cell], criteria.levels)
    ]


class _PointRow(NamedTuple):
    """What a point of the base has."""

    metric: int
    cell: int
    series_key: str
    revision: int


def _find_missing(
    head: Side,
    last_points: Sequence[int | None],
    criteria: Criteria,
    measured: Collection[tuple[int, str]],
) -> list[tuple[int, int]]:
    """What each of these points has, but for `measured`: (metric, cell of the newest point).

    One query, whose rows are light: mostly nothing is lost.
    """
    rows = CellSummary.objects.filter(
        cell__campaign=head.campaign, cell__revision__in=last_points
    )
    columns = ("metric_id", "cell_id", "cell__series_key", "cell__revision_id")
    of_points = [
        _PointRow(*row)
        for row in _select_metrics(rows, criteria.metrics)
        .order_by("cell", "metric")
        .values_list(*columns)
    ]
    times = Counter((row.metric, row.series_key) for row in of_points)
    return [
        (row.metric, row.cell)
        for row in of_points
        if row.revision == last_points[0]
        and (row.metric, row.series_key) not in measured
        and times[row.metric, row.series_key] == len(last_points)
    ]


def _values(
    measured: Sequence[tuple[int, int]], until: int
) -> dict[tuple[int, int], list[float]]:
    """The runs' values of these metrics of cells, by (metric, cell)."""
    measurements = Measurement.objects.filter(
        run__cell__in={cell for _metric, cell in measured},
        metric__in={metric for metric, _cell in measured},
        run__lte=until,
        run__state=Run.State.FINISHED,
    )
    rows = measurements.order_by().values_list("metric_id", "run__cell_id", "value")
    return group_by_key(((metric, cell), value) for metric, cell, value in rows)


@dataclass(frozen=True)
class _Judged:
    """What is said of the rows of a metric, by series key; `level` is that of a row of counts."""

    answers: Mapping[str, JobAnswer]
    level: float


def _judged(
    metric: Metric, heads: Sequence[Cell], known_facts: _Known, share: int
) -> _Judged:
    """The rows of a metric together: they say how jobs scatter in each other."""
    level = 1 - (1 - SIGNIFICANCE) ** (1 / max(len(heads) * share, 1))
    if metric.pk in known_facts.counted:
        return _Judged({}, level)
    rows = {}
    for head in heads:
        summary = known_facts.summaries[metric, head.pk]
        if summary.log_mean is not None:
            one = JobPoint(
                summary.n or 1, summary.log_mean, summary.log_variance or 0.0
            )
            rows[head.series_key] = known_facts.history.row(
                metric.pk, head.series_key, head=[one]
            )
    direction: Any = metric.direction
    effect = known_facts.criteria.effect / 100
    answers = judge_jobs(rows, direction=direction, effect=effect, share=share)
    return _Judged(answers, level)


def _row(
    metric: Metric,
    points: Sequence[Cell],
    head: Cell,
    known_facts: _Known,
    judged_rows: _Judged,
) -> VerdictRow:
    """A metric of a condition. The points are those since the last step, the newest first."""
    ignore = [f"{name}_differs" for name in known_facts.criteria.ignore]
    place = (metric.pk, head.series_key)
    answer = judged_rows.answers.get(head.series_key)
    if metric.pk in known_facts.counted:
        comparable = [
            cell.pk
            for cell in points
            if not known_facts.under.judgement(cell.pk, head.pk, ignore=ignore).reasons
        ]
        cells = [cell for cell in comparable if (metric.pk, cell) in known_facts.counts]
        values = [
            statistics.median(known_facts.counts[metric.pk, cell]) for cell in cells
        ]
    else:
        jobs = list(reversed(answer.base)) if answer else []
        cell_of = known_facts.history.cells.get(place, {})
        cells = list(dict.fromkeys(cell_of[job.key[0]] for job in jobs))  # type: ignore[index]
        values = [math.exp(job.mean) for job in jobs]
    newest = cells[0] if cells else next((cell.pk for cell in points), None)
    judged = known_facts.under.judgement(newest, head.pk, ignore=ignore)
    if judged.reasons:
        inference = Inference("not_comparable", reasons=judged.reasons)
    elif metric.pk in known_facts.counted and cells:
        effect = known_facts.criteria.effect / 100
        inference = _judge_counts(
            metric, cells, head, known_facts, effect, judged_rows.level
        )
    elif answer is not None:
        inference = answer.inference
    elif known_facts.summaries[metric, head.pk].log_mean is None:
        inference = Inference("not_comparable", reasons=("not_positive",))
    else:
        inference = Inference("not_comparable", reasons=("not_measured",))
    despite: tuple[Any, ...] = (
        ("other_machines",) if known_facts.history.without else ()
    )
    inference = replace(
        inference, despite=(*despite, *judged.despite), differing=judged.differing
    )
    return VerdictRow(
        {},
        metric,
        summarise(values) if values else None,
        known_facts.summaries[metric, head.pk],
        known_facts.runs.get(cells[0], CellRuns()) if cells else CellRuns(),
        known_facts.runs.get(head.pk, CellRuns()),
        inference,
        head_cell=head.pk,
        began=_began(answer, known_facts.shas),
    )


def _began(answer: JobAnswer | None, shas: Mapping[int, str]) -> Began | None:
    """The commit at which the present level began, where that is news."""
    if answer is None or answer.began is None or answer.inference.is_proven:
        return None
    revision, _job = cast(JobKey, answer.began)
    return Began(shas[revision], math.exp(answer.change)) if revision in shas else None


def _judge_counts(
    metric: Metric,
    points: Sequence[int],
    head: Cell,
    known_facts: _Known,
    effect: float,
    level: float,
) -> Inference:
    """The values of all points together, where logs say nothing."""
    base = [
        value
        for cell in points
        for value in known_facts.counts.get((metric.pk, cell), ())
    ]
    of_head = known_facts.counts.get((metric.pk, head.pk), [])
    cells = [
        Counted(len(side_values), None, None, counted=tuple(side_values))
        for side_values in (base, of_head)
    ]
    (inference,) = judge(
        Model(cells),
        [Pair(0, 1)],
        direction=metric.direction,  # type: ignore[arg-type]
        effect=effect,
        significance=level,
        as_counts=metrics.is_count(metric),
    )
    return inference


def _summaries(
    cells: Sequence[int], names: Sequence[str]
) -> dict[tuple[Metric, int], Summary]:
    rows = (
        CellSummary.objects.filter(cell__in=cells)
        .select_related("metric")
        .order_by("cell")
    )
    return {
        (row.metric, row.cell_id): metrics.summary_of(row)
        for row in _select_metrics(rows, names)
    }


def _select_metrics(
    rows: QuerySet[CellSummary], names: Sequence[str]
) -> QuerySet[CellSummary]:
    """Those that are asked for, else all of which an end is better."""
    if names:
        return rows.filter(metric__name__in=names)
    return rows.exclude(metric__direction=Metric.Direction.NEUTRAL)


def _exclude_machines(
    head: Side, summaries: Summaries, machines: Collection[Machine]
) -> Summaries:
    """The same of the runs on other machines. Two queries."""
    cells = {cell.pk: cell for cell in head.cells}
    names = {metric.name for metric, _cell in summaries}
    measured = stored_cells.metrics(cells, names, whole=False)
    stored = stored_cells.build_model_cells(cells, measured, machines)
    return {
        (metric, cell): two_jobs.summary_of(stored[cell, metric.pk])
        for metric, cell in summaries
        if (cell, metric.pk) in stored
    }


def _counts(
    cells: Collection[int],
    metrics_found: Sequence[Metric],
    until: int,
    without: Collection[Machine],
) -> dict[tuple[int, int], list[float]]:
    """The runs' values of metrics that are counts, or 0 in a run, by (metric, cell).

    `without` those on these machines.
    """
    measurements = Measurement.objects.filter(
        run__cell__in=cells,
        run__lte=until,
        run__state=Run.State.FINISHED,
        metric__in=[metric.pk for metric in metrics_found],
    )
    if without:
        # Where a machine is not known, NOT would leave out nothing.
        left_out = Q()
        for hardware, environment in without:
            left_out |= Q(hardware=hardware, environment=environment)
        runs = Run.objects.filter(left_out, cell__in=cells)
        measurements = measurements.exclude(run__in=runs.values("pk"))
    counts_of = [metric.pk for metric in metrics_found if metrics.is_count(metric)]
    # DISTINCT keeps PostgreSQL from asking it again for each value, by the metric alone.
    zeros = Q(metric__in=measurements.filter(value=0).values("metric").distinct())
    rows = measurements.filter(Q(metric__in=counts_of) | zeros)
    values = rows.order_by().values_list("metric_id", "run__cell_id", "value")
    return group_by_key(((metric, cell), value) for metric, cell, value in values)


def _history(
    base: Side,
    head: Side,
    metrics_found: Sequence[Metric],
    criteria: Criteria,
    until: int,
) -> JobHistory:
    if head.revision is None:
        return JobHistory()
    return two_jobs.history_before(
        head.campaign,
        head.revision,
        {cell.series_key: cell.pk for cell in head.cells},
        {metric.pk: metric.pk for metric in metrics_found},
        ref=base.text.partition(":")[2],
        until=until,
        ignore=[f"{name}_differs" for name in criteria.ignore],
        exact={metric.pk for metric in metrics_found if not metrics.is_speed(metric)},
    )
