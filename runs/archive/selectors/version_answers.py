"""What is known from one PostgreSQL version to another: one answer for pages and API.

Steps are multiplied only where one machine measured them all. Where nobody has, the answer says so,
and which steps are known.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis.inference import Inference, Rule, Verdict
from runs.analysis.interval_words import TIMES
from runs.analysis.trend import Point
from runs.archive.selectors.version_line import MAJORS, READ, UPDATE, Line, Undocumented
from runs.archive.selectors.version_pairs import Pair
from runs.cells.selectors import versions
from runs.compare.selectors.describe import summary
from runs.compare.selectors.describe.verdict_words import (
    lacks_print,
    printed_size,
    size,
    verdict_word,
)
from runs.compare.selectors.judge.exit_codes import exit_code
from runs.models import Campaign
from runs.models.campaigns import Origin
from runs.queue.selectors import certificate_words
from runs.shared import formats
from runs.shared.formats import spoken, translate_field

# What is measured, not what it stands for: other reading loads go other ways.
LOADS = {
    READ: gettext_lazy("counting ranges of rows"),
    UPDATE: gettext_lazy("updating single rows"),
}
State = Literal["decided", "printed", "undecided", "words", "unknown"]
# Which of some answers to one question is said first.
RANK: tuple[State, ...] = ("decided", "printed", "undecided", "words", "unknown")
WITH_FIGURE: tuple[State, ...] = ("decided", "printed")
# A title of more parts than these is not read: it counts them.
MOST_PARTS = 3
HIGHER = Rule("higher")


@dataclass(frozen=True)
class Evidence:
    """What one machine, or one publication, says of `head` against `base` (major versions).

    `campaigns` are those that it follows from, the newest first. `clients` is None where several
    numbers of clients took part.
    """

    base: str
    head: str
    found: Inference
    campaigns: tuple[Campaign, ...]
    machine: str
    clients: int | None

    @property
    def state(self) -> State:
        """How sure it is."""
        if lacks_print(self.found):
            return "printed"
        if self.found.is_proven or self.found.verdict == "same":
            return "decided"
        return "undecided"

    @property
    def campaign(self) -> Campaign:
        """The newest of its campaigns."""
        return self.campaigns[0]

    @property
    def sentence(self) -> str:
        """The whole sentence, as the campaign's own page has it."""
        return summary.summary(
            f"PostgreSQL {self.head}", f"PostgreSQL {self.base}", [self.found]
        )

    @property
    def told(self) -> str:
        """The sentence where nothing else says what it rests on."""
        return _("%(where)s: %(sentence)s") % {
            "where": self.basis,
            "sentence": self.sentence,
        }

    @property
    def basis(self) -> str:
        """Who measured it, where, and at how many clients."""
        campaign = self.campaign
        if campaign.origin == Origin.PUBLISHED:
            printed = (
                _("printed %(year)s") % {"year": campaign.year}
                if campaign.year
                else _("printed")
            )
            who = f"{printed} · {translate_field(campaign, 'title')}"
        else:
            who = _("measured here")
        clients = ""
        if self.clients is not None:
            clients = ngettext(
                "%(number)s client", "%(number)s clients", self.clients
            ) % {"number": self.clients}
        doubts = certificate_words.mark(self.found.judged)
        return " · ".join(filter(None, (who, self.machine, clients, doubts)))


@dataclass(frozen=True)
class Step:
    """From one version to another: all that is known, the surest and newest first.

    `pictures` are publications that show it without numbers.
    """

    base: str
    head: str
    evidence: tuple[Evidence, ...]
    pictures: tuple[Undocumented, ...] = ()

    @property
    def best(self) -> Evidence | None:
        """What is said of it."""
        return self.evidence[0] if self.evidence else None

    @property
    def printed(self) -> tuple[Evidence, ...]:
        """Where print is all there is, and several tables print it: none of them is the answer."""
        if self.state != "printed":
            return ()
        tables = tuple(
            evidence for evidence in self.evidence if evidence.state == "printed"
        )
        return tables if len(tables) > 1 else ()

    @property
    def untested(self) -> tuple[Evidence, ...]:
        """What else is printed where one printed table has repeats and is the answer."""
        if self.best is None or self.state == "printed":
            return ()
        if self.best.campaign.origin != Origin.PUBLISHED:
            return ()
        return tuple(
            evidence for evidence in self.evidence if evidence.state == "printed"
        )

    @property
    def undecided(self) -> tuple[Evidence, ...]:
        """Where print is the answer: the tables and machines with repeats that decide nothing."""
        if self.state != "printed":
            return ()
        return tuple(
            evidence for evidence in self.evidence if evidence.state == "undecided"
        )

    @property
    def is_several(self) -> bool:
        """Whether its figure alone hides what other tables print."""
        return bool(self.printed or self.untested)

    @property
    def printed_ratios(self) -> list[float]:
        """Of several tables that print it, the ratio of each, head by base."""
        return [evidence.found.ratio or 1 for evidence in self.printed]

    @property
    def state(self) -> State:
        """How much is known."""
        if self.best is not None:
            return self.best.state
        return "words" if self.pictures else "unknown"

    @property
    def tone(self) -> str:
        """The name of its colour: only what was tested has one."""
        if self.best is not None and self.state == "decided":
            return formats.tone(self.best.found.verdict)
        return formats.tone(self.state)

    @property
    def campaign(self) -> Campaign | None:
        """Where its figure, or its picture, is."""
        if self.best is not None:
            return self.best.campaign
        return self.pictures[0].campaign if self.pictures else None

    @property
    def short(self) -> str:
        """What a cell of the strip says."""
        if self.best is None:
            return _("in words") if self.pictures else "?"
        if self.state == "undecided":
            return _("too noisy to tell")
        if self.printed:
            return formats.change_range(self.printed_ratios)
        return formats.change(self.best.found.ratio)

    @property
    def basis(self) -> str:
        """Who says so; else that nobody does."""
        if self.printed:
            text = _("%(number)d printed tables · not tested")
            tables = text % {"number": len(self.printed)}
            return " · ".join(filter(None, (tables, self.undecided_words)))
        if self.best is not None:
            tested = _("not tested") if self.state == "printed" else ""
            return " · ".join(filter(None, (self.best.basis, tested)))
        if self.pictures:
            return _("published as a picture, without numbers")
        return _("nobody has measured it")

    @property
    def undecided_words(self) -> str:
        """How many others have repeats and decide nothing; empty where none has."""
        if not self.undecided:
            return ""
        number = len(self.undecided)
        text = ngettext(
            "%(number)d with repeats is undecided",
            "%(number)d with repeats are undecided",
            number,
        )
        return text % {"number": number}

    @property
    def printed_words(self) -> dict[str, Any]:
        """How many tables print it, and from the least to the greatest."""
        size_of_all = printed_size(self.printed_ratios, "higher")
        return {"number": len(self.printed), "size": size_of_all}

    @property
    def part(self) -> str:
        """What a title says of it, as a part of a sentence."""
        names = {"base": self.base, "head": self.head}
        if self.best is None:
            return self._picture_words % names
        if self.printed:
            text = _("%(head)s against %(base)s: %(size)s by %(number)d printed tables")
            return text % (names | self.printed_words)
        inference = self.best.found
        if self.state == "printed" and inference.ratio:
            values = names | {"size": printed_size([inference.ratio], "higher")}
            if 1 / TIMES < inference.ratio < TIMES and inference.ratio != 1:
                return _("as printed, %(head)s is %(size)s than %(base)s") % values
            return _("as printed, %(head)s against %(base)s: %(size)s") % values
        if self.state == "undecided":
            sized = size(inference) or verdict_word(inference)
            text = _("whether %(head)s differs from %(base)s is not decided (%(size)s)")
            return text % (names | {"size": sized})
        values = names | {"size": size(inference)}
        if inference.verdict == "same":
            return _("%(head)s and %(base)s are the same, %(size)s") % values
        if (
            inference.low
            and inference.high
            and 1 / TIMES < inference.low <= inference.high < TIMES
        ):
            return _("%(head)s is %(size)s than %(base)s") % values
        return _("%(head)s against %(base)s: %(size)s") % values

    @property
    def _picture_words(self) -> str:
        """What its publication says of a picture without numbers; the versions' names are left."""
        findings = [text for picture in self.pictures for text in picture.findings]
        if not findings:
            return _(
                "%(head)s against %(base)s is printed as a picture, without numbers"
            )
        told = spoken(findings[0]).rstrip(".。").replace("%", "%%")
        return _("%(head)s against %(base)s is printed as a picture:") + " " + told


@dataclass(frozen=True)
class VersionAnswer:
    """What is known of `head` against `base`.

    `whole` is the step from one to the other: what measured both on one machine. `every_step` is
    each step of the line from a version to the next, `every_jump` what was measured over several.
    `spans`, where nobody measured the whole: the longest part of it that one machine measured.
    """

    theme: str
    clients: int | None
    whole: Step
    every_step: tuple[Step, ...]
    every_jump: tuple[Step, ...] = ()
    spans: tuple[Step, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those from the one version to the other."""
        return tuple(step for step in self.every_step if self._has_inside(step))

    @property
    def jumps(self) -> tuple[Step, ...]:
        """What was measured over several of these steps, without the whole."""
        return tuple(
            jump
            for jump in self.every_jump
            if self._has_inside(jump) and jump != self.whole
        )

    def _has_inside(self, step: Step) -> bool:
        first, last = MAJORS.index(self.base), MAJORS.index(self.head)
        return first <= MAJORS.index(step.base) and MAJORS.index(step.head) <= last

    @property
    def base(self) -> str:
        """The version that one has."""
        return self.whole.base

    @property
    def head(self) -> str:
        """The version that one may go to."""
        return self.whole.head

    @property
    def versions(self) -> tuple[str, ...]:
        """All from one to the other."""
        return (self.base, *(step.head for step in self.steps))

    @property
    def question(self) -> str:
        """What is asked."""
        values = {"base": self.base, "head": self.head, "load": str(LOADS[self.theme])}
        if self.clients is None:
            return (
                _("From %(base)s to %(head)s, %(load)s: what do I gain or lose?")
                % values
            )
        text = ngettext(
            "From %(base)s to %(head)s, %(load)s, at %(clients)d client: what do I gain or lose?",
            "From %(base)s to %(head)s, %(load)s, at %(clients)d clients: what do I gain or lose?",
            self.clients,
        )
        return text % (values | {"clients": self.clients})

    @property
    def is_known(self) -> bool:
        """Whether a machine measured both versions."""
        return self.whole.best is not None

    @property
    def sentence(self) -> str:
        """The title: the figure, or that there is none and what is known in between."""
        names = {"base": self.base, "head": self.head}
        if self.whole.printed:
            words = names | self.whole.printed_words
            words |= {"load": self.load, "undecided": self.whole.undecided_words}
            if self.whole.undecided:
                text = _(
                    "PostgreSQL %(head)s against %(base)s, %(load)s: %(size)s in %(number)d "
                    "printed tables without spread, which are not tested; %(undecided)s."
                )
                return text % words
            text = _(
                "PostgreSQL %(head)s against %(base)s, %(load)s: %(size)s in %(number)d printed "
                "tables; they print no spread, so nothing is tested."
            )
            return text % words
        if self.whole.best is not None and self.whole.untested:
            return self._add_untested(self.whole.best.found)
        if self.whole.best is not None:
            return self.whole.best.sentence
        if len(self.steps) == 1 and self.whole.state == "unknown":
            return (
                _("Nobody has measured PostgreSQL %(head)s against %(base)s.") % names
            )
        if all(step.state == "unknown" for step in (*self.steps, *self.jumps)):
            return (
                _("Nobody has measured any step from PostgreSQL %(base)s to %(head)s.")
                % names
            )
        parts = self._parts()
        text = _("PostgreSQL %(base)s to %(head)s, %(load)s: %(parts)s.")
        return text % (names | {"load": self.load, "parts": "; ".join(parts)})

    @property
    def load(self) -> str:
        """What is measured, and with how many clients where that was chosen."""
        load = str(LOADS[self.theme])
        if self.clients is None:
            return load
        text = ngettext(
            "%(load)s with %(clients)d client",
            "%(load)s with %(clients)d clients",
            self.clients,
        )
        return text % {"load": load, "clients": self.clients}

    def otherwise_than(self, base: str, head: str) -> str:
        """Why it is not about the versions that were asked for, if any; else empty."""
        ends = (base, head)
        if not any(ends) or ends == (self.base, self.head):
            return ""
        if ends == (self.head, self.base):
            text = _(
                "%(base)s is newer than %(head)s, so this is the way up, from %(head)s to "
                "%(base)s: what it gains is lost on the way back."
            )
            return text % {"base": base, "head": head}
        return _(
            "Choose an older and a newer version. Until then this is the newest known step."
        )

    @property
    def short(self) -> str:
        """The same in a few words."""
        if self.whole.best is None:
            return _("not measured")
        if self.whole.printed:
            return printed_size(self.whole.printed_ratios, "higher")
        return size(self.whole.best.found) or verdict_word(self.whole.best.found)

    @property
    def others(self) -> tuple[Evidence, ...]:
        """What the title does not say by itself: all of several printed tables."""
        return self.whole.evidence[0 if self.whole.is_several else 1 :]

    @property
    def details(self) -> tuple[str, ...]:
        """What else is to say: other machines and publications, and the steps in between."""
        return (*(evidence.told for evidence in self.others), *self.partial_answers)

    @property
    def partial_answers(self) -> tuple[str, ...]:
        """Where nobody measured the whole: what was measured over several steps, and why it is not
        multiplied.
        """
        if self.is_known or len(self.steps) == 1:
            return ()
        over_several = tuple(
            jump.best.told for jump in self.jumps if jump.best is not None
        )
        at_others = _(
            "With other numbers of clients more may be known: choose none to see it."
        )
        return (
            *over_several,
            *([] if self.clients is None else [at_others]),
            _(
                "There is no figure for the whole: steps are multiplied only where one machine "
                "measured them all."
            ),
        )

    @property
    def verdict(self) -> Verdict:
        """The code of the whole."""
        return self.whole.best.found.verdict if self.whole.best else "too_few_runs"

    @property
    def low(self) -> float | None:
        """The least ratio that fits, head by base."""
        return self.whole.best.found.low if self.whole.best else None

    @property
    def high(self) -> float | None:
        """The greatest."""
        return self.whole.best.found.high if self.whole.best else None

    @property
    def family(self) -> str:
        """For what the interval holds."""
        if self.low is None:
            return _("Not tested.")
        return _("The ratio of throughputs on one machine, 95 %.")

    @property
    def exit_code(self) -> int:
        """The exit status of a CI job."""
        return exit_code(self.verdict)

    def _add_untested(self, found: Inference) -> str:
        """One printed table has repeats and others have not: what both say, with the load."""
        ratios = [evidence.found.ratio or 1 for evidence in self.whole.untested]
        text = ngettext(
            "PostgreSQL %(head)s against %(base)s, %(load)s: %(tested)s in the table that prints "
            "repeats, %(size)s in %(number)d other, which is not tested.",
            "PostgreSQL %(head)s against %(base)s, %(load)s: %(tested)s in the table that prints "
            "repeats, %(size)s in %(number)d others, which are not tested.",
            len(ratios),
        )
        return text % {
            "base": self.base,
            "head": self.head,
            "load": str(LOADS[self.theme]),
            "tested": size(found) or verdict_word(found),
            "size": printed_size(ratios, "higher"),
            "number": len(ratios),
        }

    def _parts(self) -> list[str]:
        """The known steps, and the versions between which nothing is known, in their order."""
        runs_of_steps = [
            (is_unknown, list(steps))
            for is_unknown, steps in groupby(
                self._way(), lambda step: step.state == "unknown"
            )
        ]
        known_runs = [steps for is_unknown, steps in runs_of_steps if not is_unknown]
        gaps = len(runs_of_steps) - len(known_runs)
        if sum(map(len, known_runs)) + gaps > MOST_PARTS:
            number = sum(step.state != "unknown" for step in self.steps)
            text = ngettext(
                "%(known)d of %(number)d step is known",
                "%(known)d of %(number)d steps are known",
                len(self.steps),
            )
            counted = text % {"known": number, "number": len(self.steps)}
            return [counted, *self._longest_part()]
        parts: list[str] = []
        for is_unknown, steps in runs_of_steps:
            if not is_unknown:
                parts += [step.part for step in steps]
                continue
            ends = {"base": steps[0].base, "head": steps[-1].head}
            parts.append(_("nobody has measured %(base)s to %(head)s") % ends)
        return parts

    def _longest_part(self) -> list[str]:
        """What one machine measured over the most of the way, of several the newest."""

        def length(span: Step) -> tuple[int, int]:
            first, last = MAJORS.index(span.base), MAJORS.index(span.head)
            return last - first, last

        measured_spans = [span for span in self.spans if span.state in WITH_FIGURE]
        over_several = [span for span in measured_spans if length(span)[0] > 1]
        return [max(over_several, key=length).part] if over_several else []

    def _way(self) -> list[Step]:
        """From the one version to the other over the fewest unknown steps, by the fewest known."""
        measured_steps = [
            step for step in (*self.spans, *self.jumps) if step.state in WITH_FIGURE
        ]
        ways: dict[str, tuple[int, list[Step]]] = {self.base: (0, [])}
        for step in self.steps:
            cost, way = ways[step.base]
            # More than all known steps of a line together.
            further = 1 if step.state != "unknown" else 1 + len(MAJORS)
            choices = [(cost + further, [*way, step])]
            choices += [
                (ways[jump.base][0] + 1, [*ways[jump.base][1], jump])
                for jump in measured_steps
                if jump.head == step.head
            ]
            ways[step.head] = min(choices, key=lambda choice: choice[0])
        return ways[self.head][1]


def step(line: Line, base: str, head: str) -> Step:
    """All that this line knows of `head` against `base`, major versions."""
    # Of one year the last by name: the names of publications end with month and number.
    by_name = sorted(
        _evidence(line, base, head),
        key=lambda evidence: evidence.campaign.slug,
        reverse=True,
    )
    evidence = sorted(by_name, key=_rank)
    pictures = [
        picture
        for picture in line.undocumented
        if {base, head} <= {versions.major(version) for version in picture.versions}
    ]
    return Step(base, head, tuple(evidence), tuple(pictures))


def steps(line: Line) -> tuple[Step, ...]:
    """Each step from a version to the next."""
    return tuple(step(line, *ends) for ends in pairwise(MAJORS))


def jumps(line: Line) -> tuple[Step, ...]:
    """What was measured over several versions at once, and no step from a version to the next."""
    neighbours = set(pairwise(MAJORS))
    ends_of = {pair.ends for pair in line.pairs if pair.ends not in neighbours}
    known_ends = {
        ends
        for ends in ends_of
        if set(ends) <= set(MAJORS) and MAJORS.index(ends[0]) < MAJORS.index(ends[1])
    }
    return tuple(
        step(line, *ends)
        for ends in sorted(
            known_ends, key=lambda ends: [MAJORS.index(end) for end in ends]
        )
    )


def is_upwards(base: str, head: str) -> bool:
    """Whether one goes from an older version to a newer one."""
    return MAJORS.index(base) < MAJORS.index(head)


def answer(line: Line, theme: str, *, base: str = "", head: str = "") -> VersionAnswer:
    """The answer of a line from `base` to `head`, or from `head` to `base` where that is upwards.

    Without them: from the base of the newest step that is known to the newest version.
    """
    every, over_several = steps(line), jumps(line)
    if base and head and is_upwards(head, base):
        base, head = head, base
    if not base or not head or base == head:
        newest = _newest([*every, *over_several])
        base, head = newest.base, MAJORS[-1]
    known_steps = (*every, *over_several)
    whole = next(
        (
            known_step
            for known_step in known_steps
            if (known_step.base, known_step.head) == (base, head)
        ),
        None,
    )
    whole = whole or step(line, base, head)
    parts = spans(line, base, head) if whole.best is None else ()
    return VersionAnswer(theme, line.clients, whole, every, over_several, parts)


def spans(line: Line, base: str, head: str) -> tuple[Step, ...]:
    """Of each machine the first and the last version in between that it measured, as a step."""
    between = MAJORS[MAJORS.index(base) : MAJORS.index(head) + 1]
    ends_of_machines = set()
    for pairs in _group_by_machine(line.pairs):
        measured = {end for pair in pairs for end in pair.ends}
        measured_majors = [major for major in between if major in measured]
        if len(measured_majors) > 1:
            ends_of_machines.add((measured_majors[0], measured_majors[-1]))
    return tuple(step(line, *ends) for ends in sorted(ends_of_machines))


def _newest(known_steps: Sequence[Step]) -> Step:
    """The newest that has a figure, of these the shortest; else what is not decided; else the last
    step of all.
    """

    def place(step: Step) -> tuple[int, int]:
        return MAJORS.index(step.head), MAJORS.index(step.base)

    for states in (WITH_FIGURE, ("undecided",)):
        steps_in_state = [
            known_step for known_step in known_steps if known_step.state in states
        ]
        if steps_in_state:
            return max(steps_in_state, key=place)
    return max(known_steps, key=place)


def _rank(evidence: Evidence) -> tuple[int, bool, int]:
    """The surest first, of these what was executed here, then the newest.

    What is printed is as new as its year, whenever it was loaded.
    """
    campaign = evidence.campaign
    is_printed = campaign.origin == Origin.PUBLISHED
    age = -(campaign.year or 0) if is_printed else -campaign.pk
    return RANK.index(evidence.state), is_printed, age


# Of the steps of a line so many are said in words.
MOST_SAID = 3


def sentences(pairs: Sequence[Pair]) -> list[str]:
    """MOST_SAID steps with what they rest on, the largest proven ones first, then the newest
    printed ones; last how many more are proven.
    """
    proven = [
        pair for pair in pairs if pair.comparison.is_proven and pair.comparison.ratio
    ]
    proven.sort(key=lambda pair: -abs(math.log(pair.comparison.ratio or 1)))
    printed = [pair for pair in pairs if lacks_print(pair.comparison)]
    lines = [
        _build_evidence(pair, *pair.ends).told
        for pair in [*proven, *printed[::-1]][:MOST_SAID]
    ]
    if (further_count := len(proven) - MOST_SAID) > 0:
        text = ngettext(
            "%(number)d further step is proven.",
            "%(number)d further steps are proven.",
            further_count,
        )
        lines.append(text % {"number": further_count})
    return lines


def _evidence(line: Line, base: str, head: str) -> Iterable[Evidence]:
    for pairs in _group_by_machine(line.pairs):
        ends = {end for pair in pairs for end in pair.ends}
        if not {base, head} <= ends:
            continue
        direct = [pair for pair in pairs if pair.ends == (base, head)]
        if len(direct) == 1:
            yield _build_evidence(direct[0], base, head)
        elif evidence := _chained(line, pairs, base, head):
            yield evidence


def _group_by_machine(pairs: Sequence[Pair]) -> Iterable[list[Pair]]:
    """Those of each machine here, and of each published campaign by itself."""
    groups: dict[tuple[str, str, int], list[Pair]] = {}
    for pair in pairs:
        origin = pair.campaign.origin
        campaign = pair.campaign.pk if origin == Origin.PUBLISHED else 0
        groups.setdefault((origin, pair.base.machine, campaign), []).append(pair)
    return groups.values()


def _build_evidence(pair: Pair, base: str, head: str) -> Evidence:
    return Evidence(
        base,
        head,
        pair.comparison,
        (pair.campaign,),
        pair.base.machine,
        pair.base.clients,
    )


def _chained(
    line: Line, pairs: Sequence[Pair], base: str, head: str
) -> Evidence | None:
    """The figure of a machine's whole line; None where its pairs do not join both versions."""
    origin = pairs[0].campaign.origin
    chains = replace(line, pairs=tuple(pairs)).trend(origin, base).chains
    points = {point.version: point for chain in chains[:1] for point in chain.points}
    if base not in points or head not in points:
        return None
    campaigns = {pair.campaign for pair in pairs if pair.link is not None}
    clients = {pair.base.clients for pair in pairs}
    return Evidence(
        base,
        head,
        _inference(points[head]),
        tuple(sorted(campaigns, key=lambda campaign: -campaign.pk)),
        pairs[0].base.machine,
        clients.pop() if len(clients) == 1 else None,
    )


def _inference(point: Point) -> Inference:
    """An index as an answer: its word by the rule of every answer."""
    if point.low is None or point.high is None:
        return Inference("too_few_runs", ratio=point.index, reasons=("spread_unknown",))
    word = HIGHER.word(math.log(point.low), math.log(point.high))
    return Inference(word, ratio=point.index, low=point.low, high=point.high)
