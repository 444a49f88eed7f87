"""The ratio table of a campaign: each version against the baseline under the same levels.

Where the campaign varies something by name (page checksums off and on), that is its question:
then each of these levels stands against the first, within each version. Where it has several
servers, these stand against the first of them as well, under the same levels.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.analysis.comparison import Comparison, Direction, adjust, compare
from runs.analysis.summary import Summary
from runs.models import Campaign, Cell, Metric
from runs.selectors.archive import versions
from runs.selectors.campaigns import grids, metrics
from runs.selectors.compare import comparability, series_cells
from runs.selectors.compare.series_cells import SERVER, VERSION


@dataclass(frozen=True)
class RatioRow:
    """Two levels of the factor `subject` under the same other levels, head against base."""

    subject: str
    levels: Mapping[str, Any]
    base_label: str
    head_label: str
    comparison: Comparison
    base: Summary
    head: Summary


def ratios(
    campaign: Campaign, metric_name: str, *, baseline_version: str | None = None
) -> list[RatioRow]:
    """Each head against its baseline under the same levels, with verdicts for the whole table.

    The baseline is the lowest version, unless given, or the first of the levels that have names.
    Pairs of which a side has no finished run
    are left out, since there is nothing to say of them yet. Raises Metric.DoesNotExist. Five
    queries.
    """
    metric = Metric.objects.get(name=metric_name)
    summaries = metrics.summaries(campaign, metric_name)
    cells = list(series_cells.current(campaign))
    pairs = [
        pair
        for pair in _all_pairs(cells, baseline_version)
        if pair.base.pk in summaries and pair.head.pk in summaries
    ]
    direction: Direction = metric.direction  # type: ignore[assignment]
    under = comparability.of_cells({cell.pk for pair in pairs for cell in (pair.base, pair.head)})
    compared = adjust(
        [
            compare(
                summaries[pair.base.pk],
                summaries[pair.head.pk],
                direction=direction,
                judgement=under.judgement(pair.base.pk, pair.head.pk),
            )
            for pair in pairs
        ]
    )
    return [
        RatioRow(
            pair.subject,
            pair.levels,
            _label(pair.base, pair.subject),
            _label(pair.head, pair.subject),
            comparison,
            summaries[pair.base.pk],
            summaries[pair.head.pk],
        )
        for pair, comparison in zip(pairs, compared, strict=True)
    ]


@dataclass(frozen=True)
class _Pair:
    subject: str
    levels: Mapping[str, Any]
    base: Cell
    head: Cell


def _all_pairs(cells: list[Cell], baseline_version: str | None) -> list[_Pair]:
    """The servers against the first, then the levels with names, else the versions."""
    named = _named_factors(cells)
    found = []
    if SERVER in named:
        named.remove(SERVER)
        found = [_Pair(SERVER, *pair) for pair in _pairs_of_levels(cells, SERVER)]
    if named:
        return [*found, *(_Pair(named[0], *pair) for pair in _pairs_of_levels(cells, named[0]))]
    return [*found, *(_Pair(VERSION, *pair) for pair in _pairs(cells, baseline_version))]


def _named_factors(cells: list[Cell]) -> list[str]:
    """The factors whose levels are words, if the campaign varies any beside the version."""
    levels: dict[str, set[Any]] = defaultdict(set)
    for cell in cells:
        for name, level in _conditions(cell).items():
            levels[name].add(level)
    return [
        name
        for name, found in levels.items()
        if len(found) > 1 and all(isinstance(level, str) for level in found)
    ]


def _pairs_of_levels(cells: list[Cell], subject: str) -> list[tuple[dict[str, Any], Cell, Cell]]:
    """(levels, base, head) within each version and the other levels; the first is the base."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[repr(sorted((n, v) for n, v in cell.levels.items() if n != subject))].append(cell)
    return [
        ({n: v for n, v in group[0].levels.items() if n != subject}, group[0], head)
        for group in groups.values()
        for head in group[1:]
    ]


def _pairs(
    cells: list[Cell], baseline_version: str | None
) -> list[tuple[dict[str, Any], Cell, Cell]]:
    """(levels, base, head) for each combination of levels, in the order of the cells."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[repr(sorted(_conditions(cell).items()))].append(cell)
    pairs = []
    for group in groups.values():
        group.sort(key=lambda cell: versions.order(grids.version_of(cell)))
        base = _baseline(group, baseline_version)
        if base is not None:
            pairs += [(_conditions(base), base, head) for head in group if head is not base]
    return pairs


def _baseline(group: list[Cell], version: str | None) -> Cell | None:
    if version is None:
        return group[0]
    return next((cell for cell in group if grids.version_of(cell) == version), None)


def _conditions(cell: Cell) -> dict[str, Any]:
    return {name: level for name, level in cell.levels.items() if name not in grids.SUBJECT}


def _label(cell: Cell, subject: str) -> str:
    if subject != VERSION:
        return str(cell.levels.get(subject, ""))
    told = [str(cell.levels[name]) for name in grids.SUBJECT[1:] if name in cell.levels]
    return " · ".join([grids.version_of(cell), *told])
