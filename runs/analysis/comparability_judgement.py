"""The conditions of two cells, and whether they allow a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Literal

from runs.analysis import fact_readers
from runs.analysis.comparability_rules import (
    FACTS,
    KINDS,
    SETTINGS,
    Fact,
    Kind,
    Raw,
    Value,
    Weight,
)

Difference = Literal[
    "hardware_differs",
    "environment_differs",
    "build_differs",
    "settings_differs",
    "workload_differs",
]
Unknown = Literal[
    "hardware_unknown",
    "environment_unknown",
    "build_unknown",
    "settings_unknown",
    "workload_unknown",
]
# Facts that both sides hardly ever state: a missing one is reported only if one side states it.
_ALWAYS_TOLD: tuple[Kind, ...] = ("hardware", "environment")
# The facts that are judged, in the order in which differences are listed.
_ORDER = {
    fact: position
    for position, fact in enumerate((*FACTS, *SETTINGS.values()))
    if fact.weight != "ignored"
}
# What the facts of a workload are read from: the levels that declare them have the same names.
WORKLOAD = frozenset(
    name for fact in FACTS if fact.kind == "workload" for name in fact.declared_by
)
_OF_KIND: dict[Kind, list[Fact]] = {
    kind: [fact for fact in FACTS if fact.kind == kind and fact.weight != "ignored"]
    for kind in KINDS
}


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of some kinds: the values of each fact, several if the runs differ.

    `defaults` are the settings that were left at their version's default. Most cells of a campaign
    share it with others.
    """

    facts: Mapping[Fact, frozenset[Value]]
    defaults: frozenset[str]
    _apart: dict[Known, tuple[tuple[Fact, Differing], ...]] = field(
        default_factory=dict
    )

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of which anything is known."""
        return frozenset(fact.kind for fact in self.facts)

    def apart(self, head: Known) -> tuple[tuple[Fact, Differing], ...]:
        """The facts that differ, declared or not; found once for all pairs of cells with both."""
        if head not in self._apart:
            self._apart[head] = tuple(_apart(self, head))
        return self._apart[head]


@dataclass(frozen=True)
class Conditions:
    """What is known about how a cell was measured.

    Each of the `parts` has other kinds than the others; those of two cells that are compared are
    divided alike. `levels` are those of the cell.
    """

    parts: tuple[Known, ...] = ()
    levels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known(self) -> frozenset[Kind]:
        """The kinds of which anything is known."""
        return frozenset().union(*(facts_of_kind.kinds for facts_of_kind in self.parts))


@dataclass(frozen=True)
class Differing:
    """A fact that differs, with the values of both sides. `is_declared`: it is being compared."""

    kind: Kind
    name: str
    weight: Weight
    base: tuple[Value, ...]
    head: tuple[Value, ...]
    is_declared: bool = False


@dataclass(frozen=True)
class Judgement:
    """`reasons` forbid the comparison; without reasons it is made, `despite` these differences.

    `differing` are the facts behind both.
    """

    reasons: tuple[Difference, ...] = ()
    despite: tuple[Difference | Unknown, ...] = ()
    differing: tuple[Differing, ...] = ()


def known(
    rows: Mapping[Kind, Iterable[Raw]],
    *,
    settings: Iterable[Raw] = (),
    version: str = "",
) -> Known:
    """Read all facts from the stored rows of each kind, and from snapshots of `pg_settings`."""
    values_of: dict[Fact, set[Value]] = {}
    for kind, stored_rows in rows.items():
        for row in stored_rows:
            for fact in _OF_KIND[kind]:
                if (value := fact.read(row)) is not None:
                    values_of.setdefault(fact, set()).add(value)
    defaults: dict[str, bool] = {}
    for snapshot in settings:
        for name, fact in SETTINGS.items():
            if name in snapshot and (value := fact.read(snapshot)) is not None:
                values_of.setdefault(fact, set()).add(value)
                is_default = fact_readers.is_default(name, snapshot, version)
                defaults[name] = defaults.get(name, True) and is_default
    return Known(
        facts={fact: frozenset(fact_values) for fact, fact_values in values_of.items()},
        defaults=frozenset(name for name, is_default in defaults.items() if is_default),
    )


def judge(
    base: Conditions, head: Conditions, ignore: Collection[str] = ()
) -> Judgement:
    """Separate differences that forbid a comparison from those that do not, and from unknowns.

    A fact that forbids does not count if the cells' levels declare the difference, or if `ignore`
    has the code of its kind. What one side does not state is not a difference, since published
    results seldom state everything; but it is reported, so that readers know what was assumed.
    """
    differing = tuple(_differing(base, head))
    forbidden = _codes(
        differing
        for differing in differing
        if differing.weight == "forbids" and not differing.is_declared
    )
    reasons = tuple(code for code in forbidden if code not in ignore)
    despite = tuple(code for code in _codes(differing) if code not in reasons)
    return Judgement(reasons, (*despite, *_unknown(base.known, head.known)), differing)


def _differing(base: Conditions, head: Conditions) -> Iterator[Differing]:
    if not (base.parts and head.parts):
        return
    apart = chain.from_iterable(
        base_part.apart(head_part)
        for base_part, head_part in zip(base.parts, head.parts)
    )
    for fact, differing in sorted(apart, key=lambda facts: _ORDER[facts[0]]):
        if any(
            name in base.levels
            and name in head.levels
            and base.levels[name] != head.levels[name]
            for name in fact.declared_by
        ):
            yield replace(differing, is_declared=True)
        elif _is_of_versions(fact, differing, base, head):
            yield replace(differing, weight="warns")
        else:
            yield differing


def _apart(base: Known, head: Known) -> Iterator[tuple[Fact, Differing]]:
    for fact, base_values in base.facts.items():
        head_values = head.facts.get(fact)
        if (
            head_values is None
            or fact not in _ORDER
            or _is_same(fact, base_values, head_values)
        ):
            continue
        if fact.last_resort and _is_told_otherwise(fact, base, head):
            continue
        if fact.kind == "settings" and fact.name in base.defaults & head.defaults:
            continue  # Two versions, each with its own default: that is part of the versions.
        values = (_listed(base_values), _listed(head_values))
        yield fact, Differing(fact.kind, fact.name, fact.weight, *values)


def _is_told_otherwise(fact: Fact, base: Known, head: Known) -> bool:
    """Whether both state another fact of its kind, which is no last resort."""
    return any(
        other_fact.kind == fact.kind
        and not other_fact.last_resort
        and other_fact in head.facts
        and other_fact in _ORDER
        for other_fact in base.facts
    )


def _is_same(fact: Fact, base: frozenset[Value], head: frozenset[Value]) -> bool:
    if base == head and not fact.spoils:
        return True
    return all(
        any(fact.is_same(base_value, other_value) for other_value in other_values)
        for ones, other_values in ((base, head), (head, base))
        for base_value in ones
    )


def _is_of_versions(
    fact: Fact, differing: Differing, base: Conditions, head: Conditions
) -> bool:
    """Whether two versions are compared, and it is a difference that only warns between them."""
    warns, of_both = fact.warns_between_versions, (base.levels, head.levels)
    versions = [levels.get("version") for levels in of_both]
    if warns is None or None in versions or versions[0] == versions[1]:
        return False
    return all(
        warns(base_value, head_value)
        for base_value in differing.base
        for head_value in differing.head
    )


def _codes(differing: Iterable[Differing]) -> tuple[Difference, ...]:
    kinds = {differing.kind for differing in differing}
    return tuple(f"{kind}_differs" for kind in KINDS if kind in kinds)  # type: ignore[misc]


@lru_cache(maxsize=256)
def _unknown(base: frozenset[Kind], head: frozenset[Kind]) -> tuple[Unknown, ...]:
    codes = []
    for kind in KINDS:
        is_known = (kind in base, kind in head)
        if not all(is_known) and (any(is_known) or kind in _ALWAYS_TOLD):
            codes.append(f"{kind}_unknown")
    return tuple(codes)  # type: ignore[arg-type]


def _listed(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(sorted(values, key=str))
