"""Two cells side by side: every metric that both have, their runs, and how they differ."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runs.analysis.comparison import Comparison, adjust, compare
from runs.analysis.conditions import Judgement
from runs.analysis.mann_whitney import MINIMUM_RUNS
from runs.analysis.summary import Summary
from runs.models import Cell, CellSummary, Measurement, Metric, Run
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader
from runs.selectors.campaigns.metrics import summary_of
from runs.selectors.compare import cell_runs, comparability, series_cells
from runs.selectors.compare import series as series_selectors
from runs.selectors.compare.cell_runs import CellRuns
from runs.selectors.compare.condition_differences import Difference, differences
from runs.selectors.compare.series import Loaded, Series, SeriesCell
from runs.selectors.compare.series_keys import SeriesKey, level_text
from runs.selectors.compare.series_labels import Wording, labels


@dataclass(frozen=True)
class MetricRow:
    """A metric of both cells; b against a."""

    metric: Metric
    a: Summary
    b: Summary
    comparison: Comparison


@dataclass(frozen=True)
class Side:
    """A cell with its label and its runs, repeat by repeat."""

    cell: Cell
    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class ComparedCells:
    """A and B. `rows` have the metrics with a better end first; verdicts are adjusted over them."""

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
    effect: float = 0.03,
    wording: Wording | None = None,
) -> ComparedCells:
    """Compare two cells by their keys. Raises Cell.DoesNotExist. At most ten queries.

    `ignore` has the codes of differences that do not forbid the comparison.
    """
    shown = projects.visible(Cell.objects.filter(pk__in={a, b}), to=reader)
    related = shown.select_related("campaign__scenario", "campaign__topology", "revision")
    cells = {cell.pk: cell for cell in related}
    if a not in cells or b not in cells:
        raise Cell.DoesNotExist
    found = cell_runs.of_cells(cells)
    summaries = _summaries(cells)
    judgement = comparability.of_cells(cells, found).judgement(a, b, ignore=ignore)
    rows = _rows(summaries[a], summaries[b], _values(cells), (a, b), judgement, effect)
    loaded = _loaded([cells[a], cells[b]], found, rows)
    names = labels(loaded, wording)
    runs = _runs(cells)
    return ComparedCells(
        a=Side(cells[a], names[0], runs[a]),
        b=Side(cells[b], names[-1], runs[b]),
        rows=rows,
        differences=differences(loaded),
    )


def _summaries(cells: Collection[int]) -> dict[int, dict[Metric, Summary]]:
    found: dict[int, dict[Metric, Summary]] = {cell: {} for cell in cells}
    for row in CellSummary.objects.filter(cell__in=cells).select_related("metric"):
        found[row.cell_id][row.metric] = summary_of(row)
    return found


def _values(cells: Collection[int]) -> dict[tuple[int, int], list[float]]:
    """The single values by (cell, metric): two cells have few."""
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    single = Measurement.objects.filter(run__cell__in=cells, run__state=Run.State.FINISHED)
    for cell, metric, value in single.order_by("pk").values_list(
        "run__cell_id", "metric_id", "value"
    )[: 2 * 60 * series_selectors.MOST_RANKED]:
        found[cell, metric].append(value)
    return found


def _rows(
    of_a: Mapping[Metric, Summary],
    of_b: Mapping[Metric, Summary],
    values: Mapping[tuple[int, int], list[float]],
    pair: tuple[int, int],
    judgement: Judgement,
    effect: float,
) -> tuple[MetricRow, ...]:
    common = [metric for metric in of_a if metric in of_b]
    common.sort(key=lambda each: (each.name != "tps", each.direction == "neutral", each.name))
    compared = adjust(
        [
            compare(
                of_a[metric],
                of_b[metric],
                direction=metric.direction,  # type: ignore[arg-type]
                minimum_effect=effect,
                values=_ranked(values, pair, metric, (of_a[metric].n, of_b[metric].n)),
                judgement=judgement,
            )
            for metric in common
        ]
    )
    return tuple(
        MetricRow(metric, of_a[metric], of_b[metric], comparison)
        for metric, comparison in zip(common, compared, strict=True)
    )


def _ranked(
    values: Mapping[tuple[int, int], list[float]],
    pair: tuple[int, int],
    metric: Metric,
    counts: tuple[int, int],
) -> tuple[list[float], list[float]] | None:
    a, b = (values.get((cell, metric.pk), []) for cell in pair)
    if (len(a), len(b)) != counts or min(counts) < MINIMUM_RUNS:
        return None
    return (a, b) if max(counts) <= series_selectors.MOST_RANKED else None


def _runs(cells: Collection[int]) -> dict[int, tuple[Run, ...]]:
    found: dict[int, list[Run]] = {cell: [] for cell in cells}
    listed = Run.objects.filter(cell__in=cells).defer("plan").order_by("repeat")
    for run in listed[: 2 * series_selectors.MOST_RANKED]:
        found[run.cell_id].append(run)
    return {cell: tuple(runs) for cell, runs in found.items()}


def _loaded(
    cells: Sequence[Cell], runs: Mapping[int, CellRuns], rows: Sequence[MetricRow]
) -> Loaded:
    """Both cells as series of one point each, so that they are named and differ as series do."""
    series = []
    for cell, side in zip(cells, ("a", "b"), strict=True):
        levels = series_cells.levels_of(cell)
        fixed = tuple((name, level_text(level)) for name, level in levels.items())
        summary = getattr(rows[0], side) if rows else Summary(0, 0, 0, 0, 0)
        point = SeriesCell(cell.pk, None, levels, summary, runs.get(cell.pk, CellRuns()))
        version = str(levels.get(series_cells.VERSION, ""))
        key = SeriesKey(cell.campaign.slug, fixed)
        series.append(Series(key, cell.campaign, version, levels, (point,)))
    return Loaded(series=tuple(series), **series_selectors.conditions_of(series))
