"""What versions mean for a load: the one value that the page, the API and the Markdown print."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, median
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis import slices, statements
from runs.analysis.statements import Judged, Typical, Whole
from runs.loads.selectors.causes import Cause, FoundTrial
from runs.shared import formats
from runs.statements import drawing, put_back
from runs.statements.found import (
    NO_VALUE,
    Found,
    FoundUnit,
    FoundWhole,
    WholeProblem,
)
from runs.statements.load import LeftOut, Unit
from runs.statements.plan_shape import PlanDifference, PlanShape, difference

Word = Literal["slower", "faster", "same", "undecided", "not_judged"]
ORDER: tuple[Word, ...] = ("slower", "faster", "undecided", "not_judged", "same")
WORDS = {
    "slower": gettext_lazy("slower"),
    "faster": gettext_lazy("faster"),
    "same": gettext_lazy("the same"),
    "undecided": gettext_lazy("undecided"),
    "not_judged": gettext_lazy("not judged"),
}
# Why a statement of the load is not run (`runs.statements.load.Reason`).
REASONS = {
    "copy": gettext_lazy("COPY needs its rows, which no log has"),
    "ddl": gettext_lazy("it changes tables, indexes or rights"),
    "temporary": gettext_lazy("it makes a temporary object"),
    "utility": gettext_lazy("it is maintenance or a command, not a query"),
    "session": gettext_lazy("it only sets or shows the session"),
    "cursor": gettext_lazy("it uses a cursor"),
    "prepared": gettext_lazy("it prepares or executes by name, without the text"),
    "no_values": gettext_lazy("it has parameters without values"),
    "cut_value": gettext_lazy("a value is cut (log_parameter_max_length)"),
    "not_sql": gettext_lazy("it is cut, or no SQL"),
    "control": gettext_lazy("it only controls a transaction"),
}
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


@dataclass(frozen=True)
class Row:
    """A statement or transaction: its times by version in milliseconds, and the answer.

    `share` is its part of the whole load's time on the base, at its calls. `cause` is there of one
    that is slower: which setting puts it back.
    """

    unit: Unit
    base_ms: float | None
    head_ms: float | None
    share: float | None
    judged: Judged | None
    why_not: str
    plan: PlanDifference
    base_shapes: tuple[PlanShape, ...] = ()
    head_shapes: tuple[PlanShape, ...] = ()
    cause: Cause | None = None

    @property
    def word(self) -> Word:
        """The code of the answer."""
        return self.judged.word if self.judged else "not_judged"

    @property
    def verdict(self) -> str:
        """The answer in a word."""
        return str(WORDS[self.word])

    @property
    def tone(self) -> str:
        """The name of its colour."""
        return formats.tone("unknown" if self.word == "not_judged" else self.word)

    @property
    def short_text(self) -> str:
        """Its beginning."""
        return formats.capped(self.unit.text, 160)

    @property
    def interval(self) -> str:
        """The factor of time, head by base, and its interval."""
        if self.judged is None:
            return ""
        return _("%(ratio)s (%(low)s to %(high)s)") % {
            "ratio": formats.factor(self.judged.ratio),
            "low": formats.factor(self.judged.low),
            "high": formats.factor(self.judged.high),
        }

    @property
    def base_tree(self) -> str:
        """The plan on the base, a node a line."""
        return _tree(self.base_shapes)

    @property
    def head_tree(self) -> str:
        """The plan on the head."""
        return _tree(self.head_shapes)

    @property
    def cause_sentences(self) -> list[str]:
        """Which setting puts a slower one back, in words."""
        return self.cause.sentences if self.cause else []

    @property
    def plan_sentences(self) -> list[str]:
        """What differs in the plan, in words; that it does not where it does not."""
        return list(_plan_sentences(self.plan)) or (
            [_("The plan is the same.")] if self.judged else []
        )


def _tree(shapes: Sequence[PlanShape]) -> str:
    """In the words of EXPLAIN, which are not translated."""
    lines = []
    for shape in shapes:
        for node in shape.nodes:
            figures = [
                "" if node.estimated is None else f"estimated={node.estimated:.0f}",
                "" if node.rows is None else f"rows={node.rows:.0f}",
                "" if node.milliseconds is None else f"time={node.milliseconds:.3f} ms",
            ]
            lines.append(
                f"{'  ' * node.depth}{node.title} ({' '.join(filter(None, figures))})"
            )
        lines.append(f"buffers: hit={shape.blocks_hit} read={shape.blocks_read}")
    return "\n".join(lines)


def _plan_sentences(plan: PlanDifference) -> Iterator[str]:
    if plan.becomes_parallel:
        yield _("It becomes parallel.")
    if plan.becomes_serial:
        yield _("It is not parallel any more.")
    if plan.gains_jit:
        yield _("It is compiled (JIT).")
    if plan.loses_jit:
        yield _("It is not compiled (JIT) any more.")
    if plan.gains_spill:
        yield _("A sort or hash now uses the disk.")
    if plan.loses_spill:
        yield _("A sort or hash does not use the disk any more.")
    yield from _node_sentences(plan)
    for title, before, after in plan.estimates[:3]:
        yield _("%(node)s: %(before)s rows estimated before, now %(after)s.") % {
            "node": title,
            "before": formats.quantity(before),
            "after": formats.quantity(after),
        }


def _node_sentences(plan: PlanDifference) -> Iterator[str]:
    if plan.is_reordered:
        yield _("Parts of it stand in another order.")
    if plan.only_base and not plan.only_head:
        yield _("It does without %(nodes)s.") % {"nodes": _listed(plan.only_base)}
    elif plan.only_head and not plan.only_base:
        yield _("It has in addition %(nodes)s.") % {"nodes": _listed(plan.only_head)}
    elif plan.only_base:
        yield _("Instead of %(base)s it has %(head)s.") % {
            "base": _listed(plan.only_base),
            "head": _listed(plan.only_head),
        }


def _listed(titles: Sequence[str]) -> str:
    most = 4
    text = ", ".join(titles[:most])
    return _("%(text)s and more") % {"text": text} if len(titles) > most else text


# Why the whole was not measured by several clients in a run (`runs.statements.found`).
_WHOLE_PROBLEMS: Mapping[WholeProblem, Any] = {
    "old_client": gettext_lazy("the server has no pgbench of 11 or later"),
    "nothing_left": gettext_lazy("none of its statements can be drawn"),
    "ended": gettext_lazy("pgbench ended early"),
}
# From here on a factor says more than percent.
_FACTOR = 2.0


@dataclass(frozen=True)
class WholeAnswer:
    """The load as a whole at its calls, in time: head by base.

    By `clients` at once, or, with 0, as the sum of the statements one after the other. `rounds` are
    those that say it.
    """

    judged: Whole
    clients: int
    rounds: int

    @property
    def word(self) -> Word:
        """The code of the answer."""
        return self.judged.word

    @property
    def sentence(self) -> str:
        """Who did it, and the answer with its interval."""
        values = {"clients": self.clients, "answer": self._answer}
        if not self.clients:
            return (
                _("the load as a whole, one statement at a time: %(answer)s") % values
            )
        return (
            ngettext(
                "the load as a whole, %(clients)d client: %(answer)s",
                "the load as a whole, %(clients)d clients: %(answer)s",
                self.clients,
            )
            % values
        )

    @property
    def _answer(self) -> str:
        """Of speed: the inverse of time."""
        speed = 1 / self.judged.ratio
        ends = (1 / self.judged.high, 1 / self.judged.low)
        if 1 / _FACTOR < speed < _FACTOR:
            low, high = (formats.change(end) for end in ends)
        else:
            low, high = (formats.factor(end) for end in ends)
        values = {"low": low, "high": high, "percent": formats.percent(abs(speed - 1))}
        if self.word == "same":
            return _("the same (%(low)s to %(high)s)") % values
        if self.word == "undecided":
            return _("undecided (%(low)s to %(high)s)") % values
        if not 1 / _FACTOR < speed < _FACTOR:
            values["factor"] = formats.factor(speed)
            return _("%(factor)s times as fast (%(low)s to %(high)s)") % values
        if self.word == "faster":
            return _("%(percent)s faster (%(low)s to %(high)s)") % values
        return _("%(percent)s slower (%(low)s to %(high)s)") % values


@dataclass(frozen=True)
class Caches:
    """How executions found the caches; what a cold one read from storage on each version, in bytes.

    The bytes are the median of the statements, and None where the kernel does not count them.
    """

    is_cold: bool
    base: str
    head: str
    base_bytes: float | None = None
    head_bytes: float | None = None

    @property
    def word(self) -> Literal["cold", "warm"]:
        """The code of it."""
        return "cold" if self.is_cold else "warm"

    @property
    def sentence(self) -> str:
        """What was done before each execution."""
        if not self.is_cold:
            return _("Warm: in each run everything was executed once before.")
        return " ".join(filter(None, (self._cold_part, self._bytes_part)))

    @property
    def _cold_part(self) -> str:
        return _(
            "Cold: before each execution PostgreSQL was restarted, and its files were dropped from "
            "the machine's memory; the load as a whole began so."
        )

    @property
    def _bytes_part(self) -> str:
        if self.base_bytes is None or self.head_bytes is None:
            return _("How much was read from storage is not known.")
        return _(
            "For an execution and its session %(base)s read %(base_bytes)s from storage, and "
            "%(head)s %(head_bytes)s (medians of the statements)."
        ) % {
            "base": self.base,
            "head": self.head,
            "base_bytes": formats.bytesize(round(self.base_bytes)),
            "head_bytes": formats.bytesize(round(self.head_bytes)),
        }


@dataclass(frozen=True)
class LoadAnswer:
    """A load on `head` against `base`. `versions` are all that were measured.

    `whole_notes` say what the load as a whole leaves out, and why it was not measured.
    `disturbed` of `all_rounds` have a run that is invalid; `rounds` are those that count.
    """

    name: str
    base: str
    head: str
    versions: tuple[str, ...]
    rounds: int
    rows: tuple[Row, ...]
    whole: WholeAnswer | None
    caches: Caches
    left_out: tuple[LeftOut, ...]
    whole_notes: tuple[str, ...] = ()
    all_rounds: int = 0
    disturbed: int = 0
    typical: Typical | None = None

    def count(self, word: Word) -> int:
        """How many statements have this answer."""
        return sum(row.word == word for row in self.rows)

    @property
    def counts(self) -> list[tuple[Word, str, int]]:
        """How many have each answer, in the order in which they are listed."""
        return [(word, str(WORDS[word]), self.count(word)) for word in ORDER]

    @property
    def rows_that_differ(self) -> list[Row]:
        """Those that are not the same, as far as is known."""
        return [row for row in self.rows if row.word != "same"]

    @property
    def rows_that_changed(self) -> list[Row]:
        """Those that are called slower or faster."""
        return [row for row in self.rows if row.word in {"slower", "faster"}]

    @property
    def rows_alike(self) -> list[Row]:
        """Those that are the same."""
        return [row for row in self.rows if row.word == "same"]

    @property
    def judged(self) -> int:
        """How many statements have an answer."""
        return sum(row.judged is not None for row in self.rows)

    @property
    def sentence(self) -> str:
        """The title."""
        if not self.judged:
            return (
                _("From %(base)s to %(head)s: no statement can be judged yet.")
                % self._ends
            )
        text = ngettext(
            "From %(base)s to %(head)s, %(same)d of %(number)d statement the same, %(faster)d "
            "faster, %(slower)d slower",
            "From %(base)s to %(head)s, %(same)d of %(number)d statements the same, %(faster)d "
            "faster, %(slower)d slower",
            len(self.rows),
        ) % {
            **self._ends,
            "same": self.count("same"),
            "number": len(self.rows),
            "faster": self.count("faster"),
            "slower": self.count("slower"),
        }
        if undecided := self.count("undecided"):
            text = _("%(text)s, %(number)d undecided") % {
                "text": text,
                "number": undecided,
            }
        return _("%(text)s; %(whole)s.") % {"text": text, "whole": self.whole_part}

    @property
    def whole_part(self) -> str:
        """What the sentence says of the load as a whole."""
        if self.whole is None:
            return _("of the load as a whole nothing is known")
        return self.whole.sentence

    @property
    def family(self) -> str:
        """For what the intervals hold."""
        return " ".join(filter(None, (self._rule, self._typical_part)))

    @property
    def _typical_part(self) -> str:
        if self.typical is None:
            return ""
        values = {
            "ratio": formats.factor(self.typical.ratio),
            "low": formats.factor(self.typical.low),
            "high": formats.factor(self.typical.high),
        }
        if self.typical.is_proven:
            return _(
                "The typical statement takes %(ratio)s times as long (%(low)s to %(high)s)."
            ) % (values)
        return (
            _(
                "Statements are compared with the typical one, whose own change is not proven: "
                "%(ratio)s times as long (%(low)s to %(high)s)."
            )
            % values
        )

    @property
    def _rule(self) -> str:
        return _(
            "Of the statements that are called slower or faster, at most %(rate)s are expected to "
            "be neither (Benjamini and Hochberg); their intervals hold at that rate, those of the "
            "others are of 95 %%. The same: within %(margin)s. %(rounds)d rounds."
        ) % {
            "rate": formats.percent(statements.RATE),
            "margin": formats.percent(statements.MARGIN),
            "rounds": self.rounds,
        }

    @property
    def drawn_note(self) -> str:
        """Whose values were drawn, and from what; empty where the load had all."""
        drawn = [row.unit for row in self.rows if row.unit.drawn]
        units = [unit for unit in drawn if unit.drawn_from]
        columns = sorted({column for unit in units for column in unit.drawn_from})
        sentences = []
        if units:
            text = ngettext(
                "Values of %(number)d statement were not in the load: they are drawn from the "
                "data, as often as rows have them and the same for all versions (%(columns)s).",
                "Values of %(number)d statements were not in the load: they are drawn from the "
                "data, as often as rows have them and the same for all versions (%(columns)s).",
                len(units),
            )
            values = {"number": len(units), "columns": _listed(columns)}
            sentences.append(text % values)
        if any(parameter.value for unit in drawn for parameter in unit.drawn):
            text = _("A LIMIT without a value is %(limit)s.")
            sentences.append(text % {"limit": drawing.LIMIT})
        return " ".join(sentences)

    @property
    def caution(self) -> str:
        """What is done with rounds in which a run is invalid; empty where none is."""
        values = {"number": self.disturbed, "all": self.all_rounds}
        if not self.disturbed:
            return ""
        if self.rounds < self.all_rounds:
            return (
                ngettext(
                    "%(number)d of %(all)d rounds is left out: a run of it is invalid by its "
                    "certificate, as when others use the machine.",
                    "%(number)d of %(all)d rounds are left out: a run of each is invalid by its "
                    "certificate, as when others use the machine.",
                    self.disturbed,
                )
                % values
            )
        return (
            ngettext(
                "In %(number)d of %(all)d rounds a run is invalid by its certificate, as when "
                "others use the machine. It counts, since too few others are left: versions have "
                "a random order in each, so intervals are wider, and favour none.",
                "In %(number)d of %(all)d rounds a run is invalid by its certificate, as when "
                "others use the machine. They count, since too few others are left: versions have "
                "a random order in each, so intervals are wider, and favour none.",
                self.disturbed,
            )
            % values
        )

    @property
    def notes(self) -> list[str]:
        """What is to be known beside the figures, a sentence or more each."""
        notes = (
            self.caches.sentence,
            *self.whole_notes,
            self.caution,
            self.drawn_note,
        )
        return list(filter(None, notes))

    @property
    def _ends(self) -> dict[str, str]:
        return {"base": self.base, "head": self.head}


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
