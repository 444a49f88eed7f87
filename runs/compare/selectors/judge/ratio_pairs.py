"""Which cells of a campaign its ratio table compares: the pairs of its question.

If the campaign varies something with named levels (page checksums off and on), that is its
question: each of these levels is compared with the first, within each version. Otherwise each
version is compared with the baseline under the same levels. Several servers are also compared
with the first of them, under the same levels.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from runs.campaigns.selectors import grids
from runs.cells.selectors import versions
from runs.cells.selectors.factor_names import SUBJECT
from runs.cells.selectors.series_cells import SERVER, VERSION
from runs.grouping import group_by_key
from runs.models import Cell

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
    if subject:
        return _pairs(cells, subject)
    subject_names = subjects(cells)
    first_subject = [name for name in subject_names if name != SERVER][:1] or [VERSION]
    every = [SERVER, *first_subject] if SERVER in subject_names else first_subject
    return [pair for name in every for pair in ratio_pairs(cells, subject=name)]


def subjects(cells: Sequence[Cell]) -> list[str]:
    """What a campaign asks about: servers, each factor with levels that are words, versions."""
    word_factors = _named_factors(cells)
    word_factors.sort(key=lambda name: name != SERVER)
    number_of_versions = len({grids.version_of(cell) for cell in cells})
    return [
        *word_factors,
        *((VERSION,) if number_of_versions > 1 else ()),
        *((STEPS,) if number_of_versions > 2 else ()),
    ]


def _named_factors(cells: Sequence[Cell]) -> list[str]:
    """The factors with levels that are words, if the campaign varies any besides the version."""
    levels: dict[str, set[Any]] = defaultdict(set)
    for cell in cells:
        for name, level in _exclude_names(SUBJECT, cell).items():
            levels[name].add(level)
    return [
        name
        for name, values_of_factor in levels.items()
        if len(values_of_factor) > 1
        and all(isinstance(level, str) for level in values_of_factor)
    ]


def _pairs(cells: Sequence[Cell], subject: str) -> list[RatioPair]:
    """For each combination of other levels, in the order of the cells; the first is the base."""
    is_of_versions = subject in (VERSION, STEPS)
    apart = SUBJECT if is_of_versions else (subject,)
    groups = group_by_key(
        (repr(sorted(_exclude_names(apart, cell).items())), cell) for cell in cells
    )
    ratio_pairs_found = []
    for group in groups.values():
        if is_of_versions:
            group.sort(key=lambda cell: versions.order(grids.version_of(cell)))
        levels = _exclude_names(apart, group[0])
        pairs = (
            pairwise(group)
            if subject == STEPS
            else ((group[0], head) for head in group[1:])
        )
        name = VERSION if is_of_versions else subject
        ratio_pairs_found += [
            RatioPair(name, levels, base, head) for base, head in pairs
        ]
    return ratio_pairs_found


def _exclude_names(names: Collection[str], cell: Cell) -> dict[str, Any]:
    return {name: level for name, level in cell.levels.items() if name not in names}
