"""Series compared: against a baseline, each with each, and under which differing conditions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.analysis.comparison import Comparison, Direction, Verdict, adjust, compare
from runs.analysis.scalability import Fit, fit_amdahl, fit_usl
from runs.selectors.access.projects import Reader
from runs.selectors.compare import series as series_selectors
from runs.selectors.compare.condition_differences import Difference, differences
from runs.selectors.compare.series import Loaded, Series, SeriesCell
from runs.selectors.compare.series_keys import level_text
from runs.selectors.compare.series_labels import Wording, facet, labels
from runs.selectors.compare.state import CompareState

PROVEN = ("faster", "slower", "different")
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
    comparison: Comparison

    @property
    def effect(self) -> float:
        """How far apart the two are, alike in both directions; 0 where no ratio exists."""
        return abs(math.log(self.comparison.ratio)) if self.comparison.ratio else 0.0

    @property
    def matters(self) -> bool:
        """Proven, and at least the minimum effect."""
        return self.comparison.verdict in PROVEN


@dataclass(frozen=True)
class Heat:
    """Each series (row) against each (column). `cells` are those compared, None: not measured.

    `level` is the text of the level, empty where each stands at its own best.
    """

    level: str
    cells: tuple[SeriesCell | None, ...]
    rows: tuple[tuple[Comparison | None, ...], ...]


@dataclass(frozen=True)
class SeriesFit:
    """A law of scalability through a series."""

    series: Series
    label: str
    fit: Fit


@dataclass(frozen=True)
class ComparedPage:
    """A comparison as pages, programs and reports show it.

    `state` is the one asked for with every series named in full. `rows` are in the order of the
    series and their levels, `forest` the same by effect, the greatest first, and only what
    matters if that was asked for. `facets` part the series into charts.
    """

    state: CompareState
    loaded: Loaded
    labels: tuple[str, ...] = ()
    base: Series | None = None
    rows: tuple[ComparedRow, ...] = ()
    forest: tuple[ComparedRow, ...] = ()
    heat: Heat | None = None
    differences: tuple[Difference, ...] = ()
    facets: tuple[tuple[str, tuple[Series, ...]], ...] = ()
    fits: tuple[SeriesFit, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """The codes of why rows are not comparable, each once."""
        rows = [row.comparison for row in self.rows]
        return _once(
            code for each in rows if each.verdict == "not_comparable" for code in each.reasons
        )

    @property
    def despite(self) -> tuple[str, ...]:
        """The codes of what differs or is not known, although rows were compared."""
        return _once(code for row in self.rows for code in row.comparison.despite)

    def label(self, each: Series) -> str:
        """The label of a series."""
        return self.labels[self.loaded.series.index(each)]


def compared(
    state: CompareState, *, reader: Reader, wording: Wording | None = None
) -> ComparedPage:
    """Compare the series of a state. At most ten queries, however many series and levels.

    Verdicts against the baseline are adjusted over all rows, those of all against all over all
    pairs. `wording` gives the labels; without it they are in plain English.
    """
    loaded = series_selectors.load(state.series, metric=state.metric, x=state.x, reader=reader)
    if not loaded.series or loaded.metric is None:
        return ComparedPage(state, loaded)
    names = labels(loaded, wording)
    base = _base(state, loaded)
    rows = _rows(state, loaded, names, base)
    return ComparedPage(
        state=replace(state, series=tuple(each.key for each in loaded.series)),
        loaded=loaded,
        labels=names,
        base=base,
        rows=rows,
        forest=_forest(rows, only_what_matters=state.matters),
        heat=_heat(state, loaded),
        differences=differences(loaded),
        facets=_facets(state, loaded),
        fits=_fits(state, loaded, names),
    )


def _base(state: CompareState, loaded: Loaded) -> Series:
    return next((each for each in loaded.series if str(each.key) == state.base), loaded.series[0])


def _direction(loaded: Loaded) -> Direction:
    return loaded.metric.direction if loaded.metric else "neutral"  # type: ignore[return-value]


def _compare(
    state: CompareState,
    loaded: Loaded,
    base: SeriesCell,
    head: SeriesCell,
    *,
    by_ranks: bool = True,
) -> Comparison:
    both = (base.values, head.values) if by_ranks and base.values and head.values else None
    return compare(
        base.summary,
        head.summary,
        direction=_direction(loaded),
        minimum_effect=state.effect / 100,
        values=both,
        judgement=loaded.comparability.judgement(base.id, head.id, ignore=state.ignored_codes),
    )


def _rows(
    state: CompareState, loaded: Loaded, names: Sequence[str], base: Series
) -> tuple[ComparedRow, ...]:
    base_label = names[loaded.series.index(base)]
    at = {level_text(cell.x): cell for cell in base.cells}
    rows = [
        ComparedRow(
            head=head,
            base=base,
            head_label=label,
            base_label=base_label,
            x=cell.x,
            head_cell=cell,
            base_cell=at[level_text(cell.x)],
            comparison=_compare(state, loaded, at[level_text(cell.x)], cell),
        )
        for head, label in zip(loaded.series, names, strict=True)
        if head is not base
        for cell in head.cells
        if level_text(cell.x) in at
    ]
    adjusted = adjust([row.comparison for row in rows])
    return tuple(replace(row, comparison=each) for row, each in zip(rows, adjusted, strict=True))


def _forest(rows: Sequence[ComparedRow], *, only_what_matters: bool) -> tuple[ComparedRow, ...]:
    shown = [row for row in rows if row.matters or not only_what_matters]
    return tuple(sorted(shown, key=lambda row: row.effect, reverse=True))


def _heat(state: CompareState, loaded: Loaded) -> Heat | None:
    if len(loaded.series) < 2:
        return None
    levels = {level_text(cell.x) for each in loaded.series for cell in each.cells}
    level = state.at if state.at in levels else ""
    cells = tuple(_chosen(each, level, _direction(loaded)) for each in loaded.series)
    places = [(row, column) for row in range(len(cells)) for column in range(row) if cells[row]]
    # The lower half is computed: the upper one says the same the other way round.
    pairs = [
        (row, column, _compare(state, loaded, base, head, by_ranks=False))
        for row, column in places
        if (head := cells[row]) and (base := cells[column])
    ]
    found: dict[tuple[int, int], Comparison] = {}
    for (row, column, _each), each in zip(pairs, adjust([pair[2] for pair in pairs]), strict=True):
        found[row, column], found[column, row] = each, _mirrored(each)
    size = range(len(cells))
    return Heat(level, cells, tuple(tuple(found.get((r, c)) for c in size) for r in size))


def _chosen(each: Series, level: str, direction: Direction) -> SeriesCell | None:
    """The cell at the level; without one that with the best median."""
    if level:
        return next((cell for cell in each.cells if level_text(cell.x) == level), None)
    sign = -1 if direction == "lower" else 1
    return max(each.cells, key=lambda cell: sign * cell.summary.median)


def _mirrored(each: Comparison) -> Comparison:
    """Base against head of what is head against base."""
    return replace(
        each,
        verdict=MIRRORED.get(each.verdict, each.verdict),
        ratio=1 / each.ratio if each.ratio else None,
        low=1 / each.high if each.high else None,
        high=1 / each.low if each.low else None,
    )


def _facets(state: CompareState, loaded: Loaded) -> tuple[tuple[str, tuple[Series, ...]], ...]:
    if state.facet == "none":
        return (("", loaded.series),)
    parts: dict[str, list[Series]] = {}
    for each in loaded.series:
        parts.setdefault(facet(loaded, each, state.facet), []).append(each)
    return tuple((value, tuple(found)) for value, found in parts.items())


def _fits(state: CompareState, loaded: Loaded, names: Sequence[str]) -> tuple[SeriesFit, ...]:
    law = {"amdahl": fit_amdahl, "usl": fit_usl}.get(state.fit)
    if law is None:
        return ()
    found = []
    for each, label in zip(loaded.series, names, strict=True):
        points = [(cell.x, cell.summary.median) for cell in each.cells]
        if all(isinstance(x, int | float) and x >= 1 and y > 0 for x, y in points):
            fit = law([x for x, _y in points], [y for _x, y in points])
            if fit is not None:
                found.append(SeriesFit(each, label, fit))
    return tuple(found)


def _once(codes: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(codes))
