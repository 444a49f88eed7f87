"""The ratio table of a campaign: each version against the baseline under the same levels.

Where the campaign varies something by name (page checksums off and on), that is its question:
then each of these levels stands against the first, within each version.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.analysis.comparison import Comparison, Direction, adjust, compare
from runs.analysis.summary import Summary
from runs.models import Campaign, Cell, Metric
from runs.selectors import grids, metrics, series_cells, versions


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
    are left out, since there is nothing to say of them yet. Raises Metric.DoesNotExist. Three
    queries.
    """
    metric = Metric.objects.get(name=metric_name)
    summaries = metrics.summaries(campaign, metric_name)
    cells = list(series_cells.current(campaign))
    subject = _named_factor(cells)
    found = _pairs_of_levels(cells, subject) if subject else _pairs(cells, baseline_version)
    pairs = [
        (levels, base, head)
        for levels, base, head in found
        if base.pk in summaries and head.pk in summaries
    ]
    direction: Direction = metric.direction  # type: ignore[assignment]
    compared = adjust(
        [
            compare(summaries[base.pk], summaries[head.pk], direction=direction)
            for _levels, base, head in pairs
        ]
    )
    return [
        RatioRow(
            subject or "version",
            levels,
            _label(base, subject),
            _label(head, subject),
            comparison,
            summaries[base.pk],
            summaries[head.pk],
        )
        for (levels, base, head), comparison in zip(pairs, compared, strict=True)
    ]


def _named_factor(cells: list[Cell]) -> str | None:
    """The factor whose levels are words, if the campaign varies one beside the version."""
    levels: dict[str, set[Any]] = defaultdict(set)
    for cell in cells:
        for name, level in _conditions(cell).items():
            levels[name].add(level)
    named = (
        name
        for name, found in levels.items()
        if len(found) > 1 and all(isinstance(level, str) for level in found)
    )
    return next(named, None)


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


def _label(cell: Cell, subject: str | None) -> str:
    if subject:
        return str(cell.levels.get(subject, ""))
    bindir = cell.levels.get("bindir")
    return f"{grids.version_of(cell)} · {bindir}" if bindir else grids.version_of(cell)
