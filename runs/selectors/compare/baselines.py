"""The last points of a branch as one baseline: `base=history:main`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runs.analysis.inference import SIGNIFICANCE, Inference, Model, Pair, judge
from runs.analysis.inference import Cell as Counted
from runs.analysis.inference.against_history import LEAST_POINTS, Point, judge_against
from runs.analysis.summary import Summary, summarise
from runs.models import Cell, CellSummary, Change, Measurement, Metric, Run
from runs.selectors.campaigns import metrics
from runs.selectors.compare import cell_runs, comparability
from runs.selectors.compare.cell_runs import CellRuns
from runs.selectors.compare.comparability import Comparability
from runs.selectors.compare.head_and_base import Side
from runs.selectors.compare.series_cells import level_text
from runs.selectors.compare.verdicts import Asked, SideVerdict, VerdictRow, primary_of

Summaries = Mapping[tuple[Metric, int], Summary]


@dataclass(frozen=True)
class _Known:
    """What is known of all cells of both sides."""

    summaries: Summaries
    counts: Mapping[tuple[int, int], list[float]]
    runs: Mapping[int, CellRuns]
    under: Comparability
    steps: frozenset[tuple[int, int]]
    asked: Asked


def between(base: Side, head: Side, asked: Asked) -> SideVerdict:
    """Each condition of the head against its points of the base. Six queries."""
    ids = [cell.pk for side in (base, head) for cell in side.cells]
    summaries = _summaries(ids, asked.metrics)
    found = metrics.by_use({metric for metric, _cell in summaries})
    runs = cell_runs.of_cells(ids)
    known = _Known(
        summaries,
        _counts(ids, found),
        runs,
        comparability.of_cells(ids, runs),
        _steps(base),
        asked,
    )
    points: dict[str, list[Cell]] = defaultdict(list)
    for cell in base.cells:
        points[cell.series_key].append(cell)
    heads = [cell for cell in head.cells if _is_asked_for(head, cell, asked)]
    primary = primary_of(head, found, asked.metrics)
    rows = []
    for metric in found:
        measured = [cell for cell in heads if (metric, cell.pk) in summaries]
        tables = len(measured) * (1 if metric.name in primary else max(1, len(found) - 1))
        for cell in measured:
            row = _row(metric, points[cell.series_key], cell, known, tables)
            rows.append(replace(row, levels=head.levels[cell.pk], is_asked=metric.name in primary))
    return SideVerdict(base, head, tuple(rows), asked.effect)


def _row(
    metric: Metric, points: Sequence[Cell], head: Cell, known: _Known, tables: int
) -> VerdictRow:
    """A metric of a condition. The points are those since the last step, the newest first."""
    ignore = [f"{name}_differs" for name in known.asked.ignore]
    newest = next((cell for cell in points if (metric, cell.pk) in known.summaries), None)
    judged = known.under.judgement(newest.pk if newest else None, head.pk, ignore=ignore)
    kept: list[Cell] = []
    for cell in points:
        is_alike = not known.under.judgement(cell.pk, head.pk, ignore=ignore).reasons
        if (metric, cell.pk) in known.summaries and is_alike:
            kept.append(cell)
        if (metric.pk, cell.pk) in known.steps:
            break
    found = known.summaries[metric, head.pk]
    if newest is None:
        answer = Inference("not_comparable", reasons=("not_measured",))
    elif judged.reasons:
        answer = Inference("not_comparable", reasons=judged.reasons)
    else:
        answer = _answer(metric, kept, head, known, 1 - (1 - SIGNIFICANCE) ** (1 / max(tables, 1)))
    answer = replace(answer, despite=judged.despite, differing=judged.differing)
    medians = [known.summaries[metric, cell.pk].median for cell in kept]
    return VerdictRow(
        {},
        metric,
        summarise(medians) if medians else None,
        found,
        known.runs.get(kept[0].pk, CellRuns()) if kept else CellRuns(),
        known.runs.get(head.pk, CellRuns()),
        answer,
        head_cell=head.pk,
    )


def _answer(
    metric: Metric, points: Sequence[Cell], head: Cell, known: _Known, level: float
) -> Inference:
    effect = known.asked.effect / 100
    if metrics.is_count(metric):
        return _of_counts(metric, points, head, known, effect, level)
    made = [_point(known.summaries[metric, cell.pk]) for cell in points]
    of_head = _point(known.summaries[metric, head.pk])
    if of_head is None or None in made:
        return Inference("not_comparable", reasons=("not_positive",))
    if len(made) < LEAST_POINTS:
        return Inference("too_few_runs", reasons=("few_points",))
    return judge_against(
        [point for point in made if point is not None],
        of_head,
        direction=metric.direction,  # type: ignore[arg-type]
        effect=effect,
        level=level,
    )


def _of_counts(
    metric: Metric, points: Sequence[Cell], head: Cell, known: _Known, effect: float, level: float
) -> Inference:
    """Counts of all points together: they are compared as counts."""
    base = [value for cell in points for value in known.counts.get((metric.pk, cell.pk), ())]
    of_head = known.counts.get((metric.pk, head.pk), [])
    cells = [Counted(len(each), None, None, counted=tuple(each)) for each in (base, of_head)]
    (found,) = judge(
        Model(cells),
        [Pair(0, 1)],
        direction=metric.direction,  # type: ignore[arg-type]
        effect=effect,
        significance=level,
        as_counts=True,
    )
    return found


def _point(found: Summary) -> Point | None:
    if found.log_mean is None:
        return None
    n = found.n or 1
    return Point(n, found.log_mean, found.log_variance if n > 1 else None)


def _summaries(cells: Sequence[int], names: Sequence[str]) -> dict[tuple[Metric, int], Summary]:
    rows = CellSummary.objects.filter(cell__in=cells).select_related("metric").order_by("cell")
    rows = (
        rows.filter(metric__name__in=names)
        if names
        else rows.exclude(metric__direction=Metric.Direction.NEUTRAL)
    )
    return {(row.metric, row.cell_id): metrics.summary_of(row) for row in rows}


def _counts(cells: Sequence[int], found: Sequence[Metric]) -> dict[tuple[int, int], list[float]]:
    """The runs' values of metrics that are counts, by (metric, cell)."""
    rows = Measurement.objects.filter(
        run__cell__in=cells,
        run__state=Run.State.FINISHED,
        metric__in=[metric.pk for metric in found if metrics.is_count(metric)],
    )
    counts: dict[tuple[int, int], list[float]] = defaultdict(list)
    for metric, cell, value in rows.order_by().values_list("metric_id", "run__cell_id", "value"):
        counts[metric, cell].append(value)
    return counts


def _steps(base: Side) -> frozenset[tuple[int, int]]:
    """(metric, cell) where the history changed its level: earlier points are not a baseline."""
    found = Change.objects.filter(cell__in=[cell.pk for cell in base.cells], kind=Change.Kind.STEP)
    gone = (Change.Decision.DISMISSED, Change.Decision.REFUTED)
    return frozenset(found.exclude(decision__in=gone).values_list("metric_id", "cell_id"))


def _is_asked_for(head: Side, cell: Cell, asked: Asked) -> bool:
    levels = head.levels[cell.pk]
    return all(level_text(levels.get(name, "")) == text for name, text in asked.levels)
