"""Which cells of a campaign its ratio table compares: the pairs of its question.

If the campaign varies something with named levels (page checksums off and on), that is its
question: each of these levels is compared with the first, within each version. Otherwise each
version is compared with the baseline under the same levels. Several servers are also compared
with the first of them, under the same levels.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from runs.grouping import by_key
from runs.models import Cell
from runs.selectors.archive import versions
from runs.selectors.campaigns import grids
from runs.selectors.campaigns.factor_names import SUBJECT
from runs.selectors.compare.address.series_cells import SERVER, VERSION

# In place of a factor: from each version to the next.
STEPS = "steps"


@dataclass(frozen=True)
class RatioPair:
    """Two cells that differ only in the factor `subject`, under the same other levels."""

    subject: str
    levels: Mapping[str, Any]
    base: Cell
    head: Cell

    @cached_property
    def labels(self) -> tuple[str, str]:
        """What base and head are called: the levels of the subject, or the versions."""
        return self._label(self.base), self._label(self.head)

    def _label(self, cell: Cell) -> str:
        if self.subject != VERSION:
            return str(cell.levels.get(self.subject, ""))
        levels = [str(cell.levels[name]) for name in SUBJECT[1:] if name in cell.levels]
        return " · ".join([grids.version_of(cell), *levels])


def ratio_pairs(cells: Sequence[Cell], *, subject: str = "") -> list[RatioPair]:
    """The pairs that differ in `subject` alone; without one, of servers and the first question.

    STEPS are pairs of neighbouring versions.
    """
    if subject == STEPS:
        return [RatioPair(VERSION, *pair) for pair in _pairs(cells, in_steps=True)]
    if subject == VERSION:
        return [RatioPair(VERSION, *pair) for pair in _pairs(cells)]
    if subject:
        return [RatioPair(subject, *pair) for pair in _pairs_of_levels(cells, subject)]
    subject_names = subjects(cells)
    first = [name for name in subject_names if name != SERVER][:1] or [VERSION]
    every = [SERVER, *first] if SERVER in subject_names else first
    return [pair for name in every for pair in ratio_pairs(cells, subject=name)]


def subjects(cells: Sequence[Cell]) -> list[str]:
    """What a campaign asks about: servers, each factor with levels that are words, versions."""
    named = _named_factors(cells)
    named.sort(key=lambda name: name != SERVER)
    found = len({grids.version_of(cell) for cell in cells})
    return [*named, *((VERSION,) if found > 1 else ()), *((STEPS,) if found > 2 else ())]


def _named_factors(cells: Sequence[Cell]) -> list[str]:
    """The factors with levels that are words, if the campaign varies any besides the version."""
    levels: dict[str, set[Any]] = defaultdict(set)
    for cell in cells:
        for name, level in _conditions(cell).items():
            levels[name].add(level)
    return [
        name
        for name, found in levels.items()
        if len(found) > 1 and all(isinstance(level, str) for level in found)
    ]


def _pairs_of_levels(
    cells: Sequence[Cell], subject: str
) -> list[tuple[dict[str, Any], Cell, Cell]]:
    """(levels, base, head) within each version and the other levels; the first is the base."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[repr(sorted((n, v) for n, v in cell.levels.items() if n != subject))].append(cell)
    return [
        (levels, group[0], head)
        for group in groups.values()
        for levels in [{n: v for n, v in group[0].levels.items() if n != subject}]
        for head in group[1:]
    ]


def _pairs(
    cells: Sequence[Cell], *, in_steps: bool = False
) -> list[tuple[dict[str, Any], Cell, Cell]]:
    """(levels, base, head) for each combination of levels, in the order of the cells."""
    groups = by_key((repr(sorted(_conditions(cell).items())), cell) for cell in cells)
    pairs = []
    for group in groups.values():
        group.sort(key=lambda cell: versions.order(grids.version_of(cell)))
        levels = _conditions(group[0])
        steps = pairwise(group) if in_steps else ((group[0], head) for head in group[1:])
        pairs += [
            (levels if base is group[0] else _conditions(base), base, head) for base, head in steps
        ]
    return pairs


def _conditions(cell: Cell) -> dict[str, Any]:
    return {name: level for name, level in cell.levels.items() if name not in SUBJECT}
