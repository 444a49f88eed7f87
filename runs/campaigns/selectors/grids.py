"""The grid of a campaign: installations as rows, the levels of one factor as columns."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.translation import gettext as _

from runs.analysis import summary
from runs.analysis.inference.cells import CellValue
from runs.analysis.judged_runs import NOT_JUDGED, Judged
from runs.analysis.summary import Summary
from runs.cells.selectors import (
    factor_names,
    metrics,
    series_cells,
    value_words,
    versions,
)
from runs.models import Campaign, Cell, Measurement, Metric, Run
from runs.models.campaigns import Origin
from runs.models.runs import judgement
from runs.queue.selectors import certificate_words
from runs.shared.formats import change

# More marks than this in one cell are unreadable; its summary counts all of its runs.
MOST_MARKED = 100
# Runs on a page of the grid; a row is never split.
MOST_ON_PAGE = 300


@dataclass(frozen=True)
class GridRun:
    """A run as the grid shows it; where it is an outlier, its ratio to the median of its cell."""

    id: int
    repeat: int
    state: str
    validity: str = ""
    outlier: float | None = None

    @property
    def tone(self) -> str:
        """Its state, or its judgement where it is not valid."""
        return {"doubtful": "warning", "invalid": "error"}.get(
            self.validity, self.state
        )

    @property
    def words(self) -> str:
        """Its state and its judgement."""
        descriptions = [
            Run.State(self.state).label,
            certificate_words.LABELS[judgement(self.state, self.validity)],
        ]
        if self.outlier is not None:
            descriptions.append(
                _("an outlier, %(change)s") % {"change": change(self.outlier)}
            )
        return ", ".join(
            str(description) for description in descriptions if description
        )


@dataclass(frozen=True)
class GridCell:
    """A cell, its runs by repeat, and its summary of the grid's metric after a run has finished.

    `value` is what the model says of it, where that is known: the value that is compared.
    """

    cell: Cell
    runs: tuple[GridRun, ...]
    summary: Summary | None
    judged: Judged = NOT_JUDGED
    value: CellValue | None = None

    @property
    def shown(self) -> float | None:
        """The value that is compared; the median where the model says nothing."""
        if self.value is not None:
            return self.value.value
        return self.summary.median if self.summary else None

    @property
    def runs_shown(self) -> str:
        """The runs behind it, from the least to the greatest; empty without a value."""
        return value_words.runs_of(self.summary, self.value) if self.summary else ""

    @property
    def mark(self) -> str:
        """What certificates say of its runs."""
        return certificate_words.mark(self.judged)

    @property
    def outliers(self) -> int:
        """How many repeats lie far from the others. They count all the same."""
        return sum(run.outlier is not None for run in self.runs)


@dataclass(frozen=True)
class GridRow:
    """A version with the levels of every factor except the one across. None is a missing cell."""

    label: str
    major: str
    cells: tuple[GridCell | None, ...]


@dataclass(frozen=True)
class Grid:
    """Rows by version and the other factors; `columns` are the levels of `factor` (or None).

    The summaries are those of `metric`. `page` says which rows these are; without, they are the
    first of `total`.
    """

    factor: str | None
    columns: tuple[Any, ...]
    rows: tuple[GridRow, ...]
    metric: Metric | None
    page: "Page[Row] | None" = None
    total: int = 0


@dataclass(frozen=True)
class Measured:
    """The cells of a campaign's own tables in order, and their summaries of one metric by key."""

    cells: Sequence[Cell]
    summaries: Mapping[int, Summary]


@dataclass(frozen=True)
class Row:
    """Cells that differ only in the factor across; `words` know what all rows have in common."""

    levels: Mapping[str, Any]
    version: str
    cells: tuple[Cell, ...]
    words: factor_names.Words

    @property
    def label(self) -> str:
        """The version, and whatever else distinguishes this row from the others."""
        other_levels = [
            (self.words.names.get((name, level)) or self.words.named(name, level))
            for name, level in self.words.varied(self.levels).items()
            if name != "version"
        ]
        return " · ".join([self.version, *other_levels])

    @property
    def others(self) -> dict[str, Any]:
        """The levels that do not belong to the measured PostgreSQL."""
        return {
            name: level
            for name, level in self.levels.items()
            if name not in factor_names.SUBJECT
        }


def measured(
    campaign: Campaign, metric: Metric | None, *, cells: Sequence[Cell] = ()
) -> Measured:
    """What grid, chart and ratios are made of. Two queries, one with another metric's `cells`."""
    summaries = metrics.summaries(campaign, metric.name) if metric else {}
    return Measured(cells or tuple(series_cells.current(campaign)), summaries)


def grid(
    campaign: Campaign,
    metric: Metric | None = None,
    *,
    page: str | int | None = None,
    among: Measured | None = None,
    most_rows: int | None = None,
    values: Mapping[int, CellValue] | None = None,
) -> Grid:
    """The cells of a campaign with the states of their runs. Five queries, whatever the size, two
    of them for what it is made `among`; one more each if the server or the configuration is a
    factor, or if repeats lie far apart.

    Shows `metric`, by default the campaign's primary one. With `page` only that page of rows, with
    at most about MOST_ON_PAGE runs; one query more. Without, of many rows the first. `values` are
    what the model says of cells.
    """
    metric = metric or metrics.primary(campaign)
    found_here = among or measured(campaign, metric)
    cells, summaries = found_here.cells, found_here.summaries
    factor = across(cells)
    columns = _levels(cells, factor)

    def shown(cell: Cell) -> GridCell:
        summary, judgement = summaries.get(cell.pk), judged.get(cell.pk, NOT_JUDGED)
        value = values.get(cell.pk) if values else None
        return GridCell(cell, tuple(runs[cell.pk]), summary, judgement, value)

    all_rows = rows(cells, factor_names.words(campaign))
    shown_rows = (
        None if page is None else _page(all_rows, campaign, cells, columns, page)
    )
    shown_on_page = all_rows[:most_rows] if shown_rows is None else list(shown_rows)
    of_rows = [cell for row in shown_on_page for cell in row.cells]
    runs = _runs(of_rows, summaries, metric)
    judged = certificate_words.judge_cells([cell.pk for cell in of_rows])
    grid_rows = []
    for row in shown_on_page:
        by_level = {_level(cell, factor): shown(cell) for cell in row.cells}
        places = tuple(by_level.get(level) for level in columns)
        grid_rows.append(GridRow(row.label, versions.major(row.version), places))
    return Grid(
        factor, tuple(columns), tuple(grid_rows), metric, shown_rows, len(all_rows)
    )


def rows(cells: Sequence[Cell], words: factor_names.Words) -> list[Row]:
    """The cells in rows: by the other factors in order, within them from the oldest version."""
    factor = across(cells)
    grouped: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        grouped[repr(sorted(_exclude_factor(cell.levels, factor).items()))].append(cell)
    levels = [_exclude_factor(group[0].levels, factor) for group in grouped.values()]
    own_words = replace(words, constant=factor_names.constant(levels))
    rows_made = [
        Row(of_row, version_of(group[0]), tuple(group), own_words)
        for of_row, group in zip(levels, grouped.values(), strict=True)
    ]
    places = {
        repr(row.others): position
        for position, row in reversed(list(enumerate(rows_made)))
    }
    return sorted(
        rows_made,
        key=lambda row: (places[repr(row.others)], versions.order(row.version)),
    )


def across(cells: Iterable[Cell]) -> str | None:
    """The factor for the columns and the x axis: clients, else the one with the most levels."""
    levels: dict[str, set[str]] = defaultdict(set)
    for cell in cells:
        for name, level in cell.levels.items():
            if name not in factor_names.SUBJECT:
                levels[name].add(str(level))
    return max(
        levels,
        key=lambda name: series_cells.fitness(name, len(levels[name])),
        default=None,
    )


def version_of(cell: Cell) -> str:
    """The version that a cell measures, as text; empty if unknown."""
    return cell.version or str(cell.levels.get("version", ""))


def _page(
    all_rows: Sequence[Row],
    campaign: Campaign,
    cells: Sequence[Cell],
    columns: Sequence[Any],
    page: str | int,
) -> "Page[Row]":
    # Of uploads some cells are history. All others are counted without a list of thousands.
    is_partial = campaign.origin == Origin.UPLOADED
    runs = (Run.objects.filter(cell__in=cells) if is_partial else campaign.runs).count()
    in_a_cell = min(runs / len(cells), MOST_MARKED) if cells else 0
    rows_of_page = MOST_ON_PAGE / max(1, len(columns) * in_a_cell)
    return Paginator(all_rows, max(1, int(rows_of_page))).get_page(page)


def _levels(cells: Iterable[Cell], factor: str | None) -> list[Any]:
    """The levels of the factor: numbers sorted, names in their given order."""
    levels_found = list(dict.fromkeys(_level(cell, factor) for cell in cells))
    if all(isinstance(level, int | float) for level in levels_found):
        return sorted(levels_found)
    return levels_found


def _level(cell: Cell, factor: str | None) -> Any:
    return cell.levels.get(factor) if factor else None


def _exclude_factor(levels: Mapping[str, Any], factor: str | None) -> dict[str, Any]:
    return {name: level for name, level in levels.items() if name != factor}


def _runs(
    cells: Sequence[Cell], summaries: Mapping[int, Summary], metric: Metric | None
) -> dict[int, list[GridRun]]:
    """The runs of each cell by repeat, with their outliers in the metric; only the first
    MOST_MARKED if a cell has more.
    """
    runs_of_cell: dict[int, list[GridRun]] = defaultdict(list)
    columns = ("cell_id", "id", "repeat", "state", "validity")
    campaign_runs = Run.objects.filter(cell__in=cells).order_by("repeat")
    for cell_id, *run in campaign_runs.values_list(*columns):
        if len(runs_of_cell[cell_id]) < MOST_MARKED:
            runs_of_cell[cell_id].append(GridRun(*run))
    spread = [
        runs
        for key, runs in runs_of_cell.items()
        if key in summaries and summaries[key].is_spread
    ]
    run_keys = [
        run.id for runs in spread for run in runs if run.state == Run.State.FINISHED
    ]
    measured = Measurement.objects.filter(metric=metric, run__in=run_keys).order_by()
    values = dict(measured.values_list("run", "value"))
    for runs in spread:
        repeats = [run for run in runs if run.id in values]
        for outlier in summary.flag([values[run.id] for run in repeats]):
            index = runs.index(repeats[outlier.index])
            runs[index] = replace(runs[index], outlier=outlier.ratio)
    return runs_of_cell
