"""How the answer of a load is made: what its runs found, in pairs of rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, median
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis import slices, statements
from runs.analysis.statements import Judged
from runs.loads.selectors.answers import (
    ORDER,
    Caches,
    LoadAnswer,
    Row,
    WholeAnswer,
)
from runs.loads.selectors.causes import Cause, FoundTrial
from runs.statements import put_back
from runs.statements.found import (
    NO_VALUE,
    Found,
    FoundUnit,
    FoundWhole,
    WholeProblem,
)
from runs.statements.load import LeftOut, Unit
from runs.statements.plan_shape import PlanShape, difference

# Of an SQLSTATE the class that says most to a reader.
_CODES = {
    "57014": gettext_lazy("takes longer than the statement timeout"),
    "42501": gettext_lazy("needs rights that an ordinary role does not have"),
    "42P01": gettext_lazy("names a table that is not in the data"),
    "42703": gettext_lazy("names a column that is not in the data"),
    "42883": gettext_lazy("calls a function that is not in the data"),
    "42704": gettext_lazy("names a type or an object that is not in the data"),
    "42601": gettext_lazy("is no SQL for this version"),
    "42725": gettext_lazy("has parameters whose types the log does not say"),
    "23505": gettext_lazy("inserts a row that is there already"),
    "53400": gettext_lazy("needs more temporary space than it may"),
}
# Why the whole was not measured by several clients in a run (`runs.statements.found`).
_WHOLE_PROBLEMS: Mapping[WholeProblem, Any] = {
    "old_client": gettext_lazy("the server has no pgbench of 11 or later"),
    "nothing_left": gettext_lazy("none of its statements can be drawn"),
    "ended": gettext_lazy("pgbench ended early"),
}


@dataclass(frozen=True)
class Measured:
    """What one run found, and in which round."""

    version: str
    round: int
    found: Found
    is_invalid: bool = False

    @cached_property
    def units(self) -> dict[int, FoundUnit]:
        """What was found of each statement, by its number."""
        return {unit.number: unit for unit in self.found.units}


def answer(
    name: str,
    units: Sequence[Unit],
    left_out: Sequence[LeftOut],
    measured: Sequence[Measured],
    *,
    trials: Sequence[FoundTrial] = (),
    is_cold: bool = False,
    base: str = "",
    head: str = "",
) -> LoadAnswer | None:
    """The answer of a campaign, from the oldest version to the newest unless others are named.

    None while there are no two versions that were measured in one round.
    """
    by_version: dict[str, dict[int, Measured]] = {}
    for one in measured:
        by_version.setdefault(one.version, {})[one.round] = one
    versions = sorted(by_version, key=_place)
    if len(versions) < 2:
        return None
    base = base if base in by_version else versions[0]
    head = head if head in by_version else versions[-1]
    pairs = _Pairs(by_version[base], by_version[head])
    ratios = pairs.ratios(units)
    judged = statements.judge(ratios)
    whole = _whole(pairs, units)
    return LoadAnswer(
        name=name,
        base=base,
        head=head,
        versions=tuple(versions),
        rounds=len(pairs.rounds),
        rows=tuple(
            _add_cause(row, base, head, trials)
            for row in _ordered(_rows(units, pairs, judged))
        ),
        whole=whole,
        caches=Caches(
            is_cold=is_cold,
            base=base,
            head=head,
            base_bytes=pairs.median_read(pairs.base),
            head_bytes=pairs.median_read(pairs.head),
        ),
        left_out=tuple(left_out),
        whole_notes=tuple(_whole_notes(pairs, whole)),
        all_rounds=len(pairs.all_rounds),
        disturbed=len(pairs.disturbed),
        typical=statements.typical(ratios),
    )


def _place(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


class _Pairs:
    """What both versions have of each round.

    A round in which a run of them is invalid is left out, as elsewhere (`slices.counting`).
    """

    def __init__(
        self, base: Mapping[int, Measured], head: Mapping[int, Measured]
    ) -> None:
        self.runs = (base, head)
        self.versions = tuple(
            next(iter(run_of.values())).version for run_of in self.runs
        )
        self.base = {number: run.units for number, run in base.items()}
        self.head = {number: run.units for number, run in head.items()}
        self.all_rounds = sorted(base.keys() & head.keys())
        self.disturbed = [
            number
            for number in self.all_rounds
            if base[number].is_invalid or head[number].is_invalid
        ]
        self.rounds = slices.counting(
            self.all_rounds, self.disturbed, statements.LEAST_ROUNDS
        )

    def wholes(self, run_of: Mapping[int, Measured]) -> list[FoundWhole | None]:
        """What a version has of the load as a whole, by round."""
        return [run_of[number].found.whole for number in self.rounds]

    def ratios(self, units: Iterable[Unit]) -> dict[int, list[float]]:
        """By statement, the log of head by base of each round."""
        return {unit.number: self._ratios_of(unit.number) for unit in units}

    def _ratios_of(self, number: int) -> list[float]:
        ratios = []
        for one_round in self.rounds:
            before = self.time(self.base, one_round, number)
            after = self.time(self.head, one_round, number)
            if before and after:
                ratios.append(math.log(after / before))
        return ratios

    @staticmethod
    def time(
        side: Mapping[int, Mapping[int, FoundUnit]], one_round: int, number: int
    ) -> float | None:
        """The milliseconds of a statement in a round; None if it failed."""
        found_unit = side[one_round].get(number)
        return found_unit.milliseconds if found_unit else None

    def mean(
        self, side: Mapping[int, Mapping[int, FoundUnit]], number: int
    ) -> float | None:
        """Over the rounds, None if it failed in all."""
        times = [self.time(side, one_round, number) for one_round in self.rounds]
        known_times = [time for time in times if time is not None]
        return fmean(known_times) if known_times else None

    def median_read(self, side: Mapping[int, Mapping[int, FoundUnit]]) -> float | None:
        """The bytes that a cold execution read, of all statements and rounds; None if unknown."""
        reads = [
            unit.read_bytes
            for one_round in self.rounds
            for unit in side[one_round].values()
            if unit.read_bytes is not None
        ]
        return median(reads) if reads else None

    def whole_ratios(self, units: Sequence[Unit]) -> list[float]:
        """The logs of the whole load's time, at its calls, of what runs on both in each round."""
        ratios = []
        for one_round in self.rounds:
            before = after = 0.0
            for unit in units:
                old = self.time(self.base, one_round, unit.number)
                new = self.time(self.head, one_round, unit.number)
                if old is not None and new is not None:
                    before += unit.calls * old
                    after += unit.calls * new
            if before and after:
                ratios.append(math.log(after / before))
        return ratios

    def codes(self, number: int) -> list[str]:
        """The SQLSTATE of a statement on base and head; empty where it did not fail."""
        return [self._code(side, number) for side in (self.base, self.head)]

    def _code(self, side: Mapping[int, Mapping[int, FoundUnit]], number: int) -> str:
        found_units = [side[one_round].get(number) for one_round in self.rounds]
        return next(
            (unit.code for unit in found_units if unit and unit.milliseconds is None),
            "",
        )

    def shapes(
        self, side: Mapping[int, Mapping[int, FoundUnit]], number: int
    ) -> tuple[PlanShape, ...]:
        """The plan of the last round."""
        found_unit = side[self.rounds[-1]].get(number) if self.rounds else None
        return found_unit.shapes if found_unit else ()


def _whole(pairs: _Pairs, units: Sequence[Unit]) -> WholeAnswer | None:
    """By several clients where enough rounds have it, with the same statements on both."""
    ratios = []
    clients = 0
    for base, head in zip(*map(pairs.wholes, pairs.runs), strict=True):
        if base is None or head is None or base.drawn != head.drawn:
            continue
        if base.calls_per_second and head.calls_per_second:
            clients = base.clients
            ratios.append(math.log(base.calls_per_second / head.calls_per_second))
    if (judged := statements.whole(ratios)) is not None:
        return WholeAnswer(judged, clients, len(ratios))
    ratios = pairs.whole_ratios(units)
    judged = statements.whole(ratios)
    return WholeAnswer(judged, 0, len(ratios)) if judged else None


def _whole_notes(pairs: _Pairs, whole: WholeAnswer | None) -> Iterator[str]:
    """What of the load as a whole cannot be run by several clients, and why."""
    wholes = [pairs.wholes(run_of) for run_of in pairs.runs]
    for version, found_wholes in zip(pairs.versions, wholes, strict=True):
        problems = [one for one in found_wholes if one is not None and one.problem]
        if problems:
            yield _problem(version, problems[-1])
    known_wholes = [one for one in wholes[-1] if one is not None]
    if known_wholes:
        yield from _left_out_of_whole(known_wholes[-1])
    if whole is not None and whole.clients and whole.rounds < len(pairs.rounds):
        yield _(
            "The load as a whole is of %(rounds)d rounds: in the others it was not measured, or "
            "not with the same statements."
        ) % {"rounds": whole.rounds}


def _problem(version: str, found: FoundWhole) -> str:
    why = str(_WHOLE_PROBLEMS[found.problem]) if found.problem else ""
    if found.message:
        why = f"{why} ({found.message})"
    text = ngettext(
        "By %(clients)d client it was not measured on %(version)s in every round: %(why)s.",
        "By %(clients)d clients it was not measured on %(version)s in every round: %(why)s.",
        found.clients,
    )
    return text % {"clients": found.clients, "version": version, "why": why}


def _left_out_of_whole(found: FoundWhole) -> Iterator[str]:
    if failed := len(found.failed):
        yield ngettext(
            "%(number)d statement is left out of the load as a whole on all versions, since it "
            "fails on one.",
            "%(number)d statements are left out of the load as a whole on all versions, since they "
            "fail on one.",
            failed,
        ) % {"number": failed}
    if unsafe := len(found.unsafe):
        yield ngettext(
            "%(number)d statement is left out of the load as a whole, since pgbench would read a "
            "part of it as its own: a backslash, or :scale.",
            "%(number)d statements are left out of the load as a whole, since pgbench would read a "
            "part of them as its own: a backslash, or :scale.",
            unsafe,
        ) % {"number": unsafe}


def _rows(
    units: Sequence[Unit], pairs: _Pairs, judged: Mapping[int, Judged]
) -> Iterator[Row]:
    weights = {
        unit.number: unit.calls * (pairs.mean(pairs.base, unit.number) or 0.0)
        for unit in units
    }
    total = sum(weights.values())
    for unit in units:
        number = unit.number
        base_shapes = pairs.shapes(pairs.base, number)
        head_shapes = pairs.shapes(pairs.head, number)
        yield Row(
            unit=unit,
            base_ms=pairs.mean(pairs.base, number),
            head_ms=pairs.mean(pairs.head, number),
            share=weights[number] / total if total else None,
            judged=judged.get(number),
            why_not="" if number in judged else _why_not(pairs, number),
            plan=difference(base_shapes, head_shapes),
            base_shapes=base_shapes,
            head_shapes=head_shapes,
        )


def _add_cause(row: Row, base: str, head: str, trials: Iterable[FoundTrial]) -> Row:
    if row.word != "slower":
        return row
    own_trials = [
        trial
        for trial in trials
        if (trial.statement, trial.base, trial.head) == (row.unit.number, base, head)
    ]
    cause = Cause(
        settings=put_back.settings(row.plan, base, head),
        is_inlined=put_back.is_inlined(row.plan),
        trial=own_trials[0] if own_trials else None,
    )
    return replace(row, cause=cause)


def _why_not(pairs: _Pairs, number: int) -> str:
    codes = pairs.codes(number)
    if not any(codes):
        return _("It was measured in fewer than %(number)d rounds.") % {
            "number": statements.LEAST_ROUNDS
        }
    text = _say_failure(next(filter(None, codes)))
    if all(codes):
        return text
    version = next(
        version for version, code in zip(pairs.versions, codes, strict=True) if code
    )
    return _("On %(version)s: %(text)s") % {"version": version, "text": text}


def _say_failure(code: str) -> str:
    if code == NO_VALUE:
        return _("It has a parameter for which the data give no value.")
    if code in _CODES:
        return _("It %(why)s (%(code)s).") % {"why": _CODES[code], "code": code}
    return _("It failed with SQLSTATE %(code)s.") % {"code": code}


def _ordered(rows: Iterable[Row]) -> list[Row]:
    """The slower first, of these what costs the load most."""

    def cost(row: Row) -> float:
        if row.judged is None:
            return -row.unit.calls
        return -abs(math.log(row.judged.ratio)) * (row.share or 0.0)

    return sorted(rows, key=lambda row: (ORDER.index(row.word), cost(row)))
