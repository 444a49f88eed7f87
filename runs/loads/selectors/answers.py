"""What versions mean for a load: the one value that the page, the API and the Markdown print."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis import statements
from runs.analysis.statements import Judged, Typical, Whole
from runs.loads.selectors.causes import Cause
from runs.shared import formats
from runs.statements import drawing
from runs.statements.load import LeftOut, Unit
from runs.statements.plan_shape import PlanDifference, PlanShape

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
