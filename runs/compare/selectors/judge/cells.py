"""Two cells side by side: every metric of both, their runs, and how they differ."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference import MINIMUM_EFFECT, Inference
from runs.analysis.summary import Summary
from runs.cells.selectors import series_cells
from runs.cells.selectors.metrics import joined, sort_by_use, summary_of
from runs.cells.selectors.series_cells import SeriesKey, level_text
from runs.compare.selectors.describe.series_labels import (
    Difference,
    Wording,
    differences,
    labels,
)
from runs.compare.selectors.judge import judging
from runs.compare.selectors.load import series as series_selectors
from runs.compare.selectors.load import stored_cells
from runs.compare.selectors.load.series import Loaded, Series, SeriesCell
from runs.compare.selectors.load.stored_cells import CellRuns
from runs.grouping import group_by_key
from runs.models import Cell, CellSummary, Metric, Run

# Nobody reads more runs of a cell than this on a page.
MOST_RUNS = 200


@dataclass(frozen=True)
class MetricRow:
    """A metric of both cells; b against a."""

    metric: Metric
    a: Summary
    b: Summary
    comparison: Inference


@dataclass(frozen=True)
class Side:
    """A cell with its label and its runs, repeat by repeat."""

    cell: Cell
    label: str
    runs: Sequence[Run]


@dataclass(frozen=True)
class ComparedCells:
    """A and B. `rows` are the metrics with a better direction first; judged as everywhere."""

    a: Side
    b: Side
    rows: tuple[MetricRow, ...]
    differences: tuple[Difference, ...]


def compared_cells(
    a: int,
    b: int,
    *,
    reader: Reader,
    ignore: Collection[str] = (),
    effect: float = MINIMUM_EFFECT,
    wording: Wording | None = None,
) -> ComparedCells:
    """Compare two cells by their keys. Raises Cell.DoesNotExist. At most sixteen queries.

    `ignore` has the codes of differences that do not prevent the comparison.
    """
    visible_cells = projects.visible(Cell.objects.filter(pk__in={a, b}), to=reader)
    related = visible_cells.select_related(
        "campaign__scenario", "campaign__topology", "revision"
    )
    cells = {cell.pk: cell for cell in related}
    if a not in cells or b not in cells:
        raise Cell.DoesNotExist
    runs_of_cells = stored_cells.read_runs(cells)
    summaries = _summaries(cells)
    judge = judging.make_judge(cells, runs=runs_of_cells)
    of_a, of_b = summaries[a], summaries[b]
    common = sort_by_use(metric for metric in of_a if metric in of_b)
    answers = (
        judge.judge([(a, b)], metric, effect=effect, ignore=ignore)[0]
        for metric in common
    )
    rows = tuple(
        MetricRow(metric, of_a[metric], of_b[metric], inference)
        for metric, inference in zip(common, answers, strict=True)
    )
    loaded = _loaded([cells[a], cells[b]], runs_of_cells, rows)
    names = labels(loaded, wording)
    runs = _runs(cells)
    return ComparedCells(
        a=Side(cells[a], names[0], runs[a]),
        b=Side(cells[b], names[-1], runs[b]),
        rows=rows,
        differences=differences(loaded),
    )


def _summaries(cells: Collection[int]) -> dict[int, dict[Metric, Summary]]:
    summaries_of: dict[int, dict[Metric, Summary]] = {cell: {} for cell in cells}
    rows = list(CellSummary.objects.filter(cell__in=cells).select_related("metric"))
    one_of = joined(row.metric for row in rows)
    for row in rows:
        summaries_of[row.cell_id][one_of[row.metric_id]] = summary_of(row)
    return summaries_of


def _runs(cells: Collection[int]) -> Mapping[int, Sequence[Run]]:
    runs = Run.objects.filter(cell__in=cells).defer("plan").order_by("repeat")
    return group_by_key((run.cell_id, run) for run in runs[: 2 * MOST_RUNS])


def _loaded(
    cells: Sequence[Cell], runs: Mapping[int, CellRuns], rows: Sequence[MetricRow]
) -> Loaded:
    """Both cells as series of one point each, so that the same code names and compares them."""
    series = []
    for cell, side in zip(cells, ("a", "b"), strict=True):
        levels = series_cells.levels_of(cell)
        fixed = tuple((name, level_text(level)) for name, level in levels.items())
        summary = getattr(rows[0], side) if rows else Summary(0, 0, 0, 0, 0)
        point = SeriesCell(
            cell.pk, None, levels, summary, runs.get(cell.pk, CellRuns())
        )
        version = str(levels.get(series_cells.VERSION, ""))
        key = SeriesKey(cell.campaign.slug, fixed)
        series.append(Series(key, cell.campaign, version, levels, (point,)))
    return Loaded(series=tuple(series), **series_selectors.conditions_of(series))
