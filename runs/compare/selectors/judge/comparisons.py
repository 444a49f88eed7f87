"""Compares series: with a baseline, each with each, and which conditions differ."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference import PROVEN, Inference, Verdict
from runs.analysis.inference.cells import CellValue
from runs.analysis.scalability import MINIMUM_LEVELS, Fit, fitted
from runs.cells.selectors import versions
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors.address.state import CompareState
from runs.compare.selectors.describe.series_labels import (
    Difference,
    PlainWording,
    Wording,
    differences,
    facet,
    labels,
)
from runs.compare.selectors.judge import judging, known_noise
from runs.compare.selectors.judge.cell_values import cell_values
from runs.compare.selectors.judge.judging import Judge
from runs.compare.selectors.load import series as series_selectors
from runs.compare.selectors.load.series import Loaded, Series, SeriesCell
from runs.grouping import group_by_key
from runs.models import Campaign

MIRRORED: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}


@dataclass(frozen=True)
class ComparedRow:
    """Head against base at one level of the x axis (None: there is no axis)."""

    head: Series
    base: Series
    head_label: str
    base_label: str
    x: Any
    head_cell: SeriesCell
    base_cell: SeriesCell
    comparison: Inference

    @property
    def effect(self) -> float:
        """The distance of the two, the same in both directions; 0 if there is no ratio."""
        return abs(math.log(self.comparison.ratio)) if self.comparison.ratio else 0.0

    @property
    def matters(self) -> bool:
        """Proven: the interval excludes "no change"."""
        return self.comparison.verdict in PROVEN


@dataclass(frozen=True)
class Average:
    """The overall effect of a series against the baseline: that of all their common levels."""

    head_label: str
    base_label: str
    rows: int
    comparison: Inference


@dataclass(frozen=True)
class Step:
    """A version against the one before it: a result for each level, and one for all of them."""

    head_label: str
    base_label: str
    found: tuple[Inference, ...]
    together: Inference | None


@dataclass(frozen=True)
class HeatCell:
    """Two series at one level: `x` is the level, None if there is no axis."""

    x: Any
    comparison: Inference


@dataclass(frozen=True)
class Heat:
    """Each series (row) against each (column); None if they share no level.

    `level` is the text of the level; empty if each pair is compared where both do best together:
    at the level with the best mean of both. That favours neither of them.
    """

    level: str
    rows: tuple[tuple[HeatCell | None, ...], ...]


@dataclass(frozen=True)
class SeriesFit:
    """A scalability law fitted to a series."""

    series: Series
    label: str
    fit: Fit


@dataclass(frozen=True)
class ComparedPage:
    """A comparison as pages, programs and reports show it.

    `state` is the requested one with all series written out. `rows` are in the order of the series
    and their levels, `forest` the same sorted by effect, the greatest first, and only relevant rows
    if that was requested. `steps` are there where each of three or more series is another version.
    `facets` split the series into charts. `values` are what the model says of each cell.
    """

    state: CompareState
    loaded: Loaded
    labels: tuple[str, ...] = ()
    base: Series | None = None
    rows: tuple[ComparedRow, ...] = ()
    forest: tuple[ComparedRow, ...] = ()
    averages: tuple[Average, ...] = ()
    steps: tuple[Step, ...] = ()
    heat: Heat | None = None
    differences: tuple[Difference, ...] = ()
    facets: tuple[tuple[str, tuple[Series, ...]], ...] = ()
    fits: tuple[SeriesFit, ...] = ()
    values: Mapping[int, CellValue] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The codes of why rows are not comparable, each once."""
        rows = [row.comparison for row in self.rows]
        missing = (
            inference.reasons
            for inference in rows
            if inference.verdict == "not_comparable"
        )
        return tuple(dict.fromkeys(chain.from_iterable(missing)))

    @property
    def despite(self) -> tuple[str, ...]:
        """The codes of what differs or is unknown, although rows were compared."""
        despite = (row.comparison.despite for row in self.rows)
        return tuple(dict.fromkeys(chain.from_iterable(despite)))

    def label(self, one_series: Series) -> str:
        """The label of a series."""
        return self.labels[self.loaded.series.index(one_series)]


def seen_campaigns(state: CompareState, *, to: Reader) -> tuple[int, ...]:
    """The keys of the campaigns of a state that a reader may see, in their order."""
    slugs = {key.slug for key in state.series}
    named_campaigns = Campaign.objects.filter(slug__in=slugs).order_by("pk")
    return tuple(projects.visible(named_campaigns, to=to).values_list("pk", flat=True))


def compared(
    state: CompareState,
    *,
    reader: Reader,
    wording: Wording | None = None,
    seen: Collection[int] | None = None,
) -> ComparedPage:
    """Compare the series of a state. At most 18 queries for any number of series and levels.

    All rows are judged together, and so are all pairs; a pair that is also a row has its answer.
    `wording` gives the labels; without it they are in plain English. `seen` as for load().
    """
    loaded = series_selectors.load(
        state.series, metric=state.metric, x=state.x, reader=reader, seen=seen
    )
    if not loaded.series or loaded.metric is None:
        return ComparedPage(state, loaded)
    names = labels(loaded, wording)
    base = next(
        (
            one_series
            for one_series in loaded.series
            if str(one_series.key) == state.base
        ),
        loaded.series[0],
    )
    judge = judging.make_judge(
        [cell.id for one_series in loaded.series for cell in one_series.cells],
        [loaded.metric.name],
        runs={
            cell.id: cell.runs
            for one_series in loaded.series
            for cell in one_series.cells
        },
        under=loaded.comparability,
        scopes=known_noise.scopes(
            (one_series.campaign, cell.revision)
            for one_series in loaded.series
            for cell in one_series.cells
        ),
    )
    options: dict[str, Any] = {
        "effect": state.effect / 100,
        "ignore": state.ignored_codes,
    }
    judged = partial(judge.judge, metric=loaded.metric, **options)
    together = partial(judge.together, metric=loaded.metric, **options)
    rows = _rows(loaded, names, base, judged)
    rows_shown = [row for row in rows if row.matters or not state.matters]
    return ComparedPage(
        state=replace(
            state, series=tuple(one_series.key for one_series in loaded.series)
        ),
        loaded=loaded,
        labels=names,
        base=base,
        rows=rows,
        forest=tuple(sorted(rows_shown, key=lambda row: row.effect, reverse=True)),
        averages=_averages(rows, together),
        steps=_steps(loaded, names, judged, together),
        heat=_heat(state.at, loaded, rows, judged),
        differences=differences(loaded),
        facets=_facets(state, loaded, wording or PlainWording()),
        fits=_fits(state, loaded, names),
        values=_values(judge, loaded, rows),
    )


def _values(
    judge: Judge, loaded: Loaded, rows: Sequence[ComparedRow]
) -> Mapping[int, CellValue]:
    """What the model says of each cell, as the rows say it."""
    if loaded.metric is None:
        return {}
    tested: dict[int, float] = {}
    for row in rows:
        comparison = row.comparison
        sides = (
            (row.base_cell, comparison.base_value),
            (row.head_cell, comparison.head_value),
        )
        for cell, value in sides:
            if value is not None:
                tested.setdefault(cell.id, value)
    cells = [cell.id for one_series in loaded.series for cell in one_series.cells]
    return cell_values(judge, loaded.metric, cells, tested)


Pairs = Sequence[tuple[int, int]]
# A judge asked about pairs (base, head) of cells as the page wants them: each, or all together.
Judged = Callable[[Pairs], list[Inference]]
Together = Callable[[Pairs], Inference | None]


def _rows(
    loaded: Loaded, names: Sequence[str], base: Series, judged: Judged
) -> tuple[ComparedRow, ...]:
    base_label = names[loaded.series.index(base)]
    heads: list[tuple[Series, str]] = []
    cells: list[tuple[SeriesCell, SeriesCell]] = []
    for head, label in zip(loaded.series, names, strict=True):
        if head is base:
            continue
        for of_base, of_head in _pair_by_levels(base, head):
            heads.append((head, label))
            cells.append((of_base, of_head))
    comparisons = judged([(of_base.id, of_head.id) for of_base, of_head in cells])
    return tuple(
        ComparedRow(
            head, base, label, base_label, of_head.x, of_head, of_base, comparison
        )
        for (head, label), (of_base, of_head), comparison in zip(
            heads, cells, comparisons, strict=True
        )
    )


def _averages(rows: Sequence[ComparedRow], together: Together) -> tuple[Average, ...]:
    of_heads = group_by_key((str(row.head.key), row) for row in rows)
    return tuple(
        Average(
            rows_of_head[0].head_label,
            rows_of_head[0].base_label,
            len(rows_of_head),
            inference,
        )
        for rows_of_head in of_heads.values()
        if (
            inference := together(
                [(row.base_cell.id, row.head_cell.id) for row in rows_of_head]
            )
        )
    )


def _steps(
    loaded: Loaded, names: Sequence[str], judged: Judged, together: Together
) -> tuple[Step, ...]:
    """From version to version, all of them judged together."""
    by_version = {
        one_series.version: (one_series, name)
        for one_series, name in zip(loaded.series, names, strict=True)
    }
    if "" in by_version or not 2 < len(by_version) == len(loaded.series):
        return ()
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for older, newer in pairwise(sorted(by_version, key=versions.order)):
        (base, base_label), (head, head_label) = by_version[older], by_version[newer]
        if shared := [
            (base_cell.id, head_cell.id)
            for base_cell, head_cell in _pair_by_levels(base, head)
        ]:
            pairs[head_label, base_label] = shared
    inferences = iter(
        judged([pair for pairs_of_step in pairs.values() for pair in pairs_of_step])
    )
    return tuple(
        Step(
            *labels,
            tuple(islice(inferences, len(pairs_of_step))),
            together(pairs_of_step),
        )
        for labels, pairs_of_step in pairs.items()
    )


def _heat(
    level_asked: str, loaded: Loaded, rows: Sequence[ComparedRow], judged: Judged
) -> Heat | None:
    if len(loaded.series) < 2:
        return None
    levels = {level_text(cell.x) for series in loaded.series for cell in series.cells}
    level = level_asked if level_asked in levels else ""
    is_less_better = bool(loaded.metric and loaded.metric.direction == "lower")
    size = range(len(loaded.series))
    # Only the lower half is judged: the upper half says the same in reverse.
    chosen = {
        (row, column): cells_together
        for row in size
        for column in range(row)
        if (
            cells_together := _together(
                loaded.series[column], loaded.series[row], level, is_less_better
            )
        )
    }
    comparison_of = {
        (compared_row.base_cell.id, compared_row.head_cell.id): compared_row.comparison
        for compared_row in rows
    }
    open_pairs = [
        (base.id, head.id)
        for base, head in chosen.values()
        if (base.id, head.id) not in comparison_of
        and (head.id, base.id) not in comparison_of
    ]
    comparison_of |= dict(zip(open_pairs, judged(open_pairs), strict=True))
    heat_cells: dict[tuple[int, int], HeatCell] = {}
    for (row, column), (base, head) in chosen.items():
        inference = comparison_of.get((base.id, head.id)) or _mirrored(
            comparison_of[head.id, base.id]
        )
        heat_cells[row, column] = HeatCell(head.x, inference)
        heat_cells[column, row] = HeatCell(head.x, _mirrored(inference))
    return Heat(level, tuple(tuple(heat_cells.get((r, c)) for c in size) for r in size))


def _together(
    base: Series, head: Series, level: str, is_less_better: bool
) -> tuple[SeriesCell, SeriesCell] | None:
    """The cells of both at the level; without one, where both together do best."""
    shared = _pair_by_levels(base, head)
    if level:
        shared = [
            series_cells
            for series_cells in shared
            if level_text(series_cells[1].x) == level
        ]
    sign = -1 if is_less_better else 1
    return max(
        shared,
        key=lambda series_cells: sign * _mean_of_both(*series_cells),
        default=None,
    )


def _pair_by_levels(base: Series, head: Series) -> list[tuple[SeriesCell, SeriesCell]]:
    base_at = {level_text(cell.x): cell for cell in base.cells}
    return [
        (base_at[text], cell)
        for cell in head.cells
        if (text := level_text(cell.x)) in base_at
    ]


def _mean_of_both(base: SeriesCell, head: SeriesCell) -> float:
    """On logs, where both sides count the same; medians if a value has no logarithm."""
    base_log, head_log = base.summary.log_mean, head.summary.log_mean
    if base_log is None or head_log is None:
        return base.summary.median + head.summary.median
    return base_log + head_log


def _mirrored(inference: Inference) -> Inference:
    """The same result in reverse: base against head."""
    return replace(
        inference,
        verdict=MIRRORED.get(inference.verdict, inference.verdict),
        ratio=1 / inference.ratio if inference.ratio else None,
        low=1 / inference.high if inference.high else None,
        high=1 / inference.low if inference.low else None,
        base_value=inference.head_value,
        head_value=inference.base_value,
    )


def _facets(
    state: CompareState, loaded: Loaded, words: Wording
) -> tuple[tuple[str, tuple[Series, ...]], ...]:
    if state.facet == "none":
        return (("", loaded.series),)
    series_of_value = group_by_key(
        (facet(loaded, series, state.facet, words), series) for series in loaded.series
    )
    return tuple(
        (value, tuple(series_there)) for value, series_there in series_of_value.items()
    )


def _fits(
    state: CompareState, loaded: Loaded, names: Sequence[str]
) -> tuple[SeriesFit, ...]:
    law = next((law for law in MINIMUM_LEVELS if law == state.fit), None)
    if law is None:
        return ()
    series_fits = []
    for series, label in zip(loaded.series, names, strict=True):
        points = [(cell.x, cell.summary.median) for cell in series.cells]
        if all(isinstance(x, int | float) and x >= 1 and y > 0 for x, y in points):
            fit = fitted(law, [x for x, _y in points], [y for _x, y in points])
            if fit is not None:
                series_fits.append(SeriesFit(series, label, fit))
    return tuple(series_fits)
