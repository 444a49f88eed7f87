"""What the histories of a campaign say: made once, and printed by page, API and lists."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.translation import gettext as _

from runs.cells.selectors.factor_names import constant
from runs.cells.selectors.level_texts import level
from runs.cells.selectors.metrics import metric_label
from runs.histories.selectors import causes
from runs.histories.selectors.causes import Cause
from runs.histories.selectors.histories import Histories, History
from runs.models import Change
from runs.shared import formats


@dataclass(frozen=True)
class HistoryRow:
    """One series: its levels in words, and the newest change that nobody took back."""

    history: History
    levels: str
    change: Change | None

    @property
    def verdict(self) -> str:
        """The code: slower, faster, different, or same."""
        return self.change.verdict if self.change else "same"

    @property
    def tone(self) -> str:
        """The name of its colour and sign."""
        return formats.tone(self.verdict)

    @property
    def size(self) -> str:
        """How large the change is, with its sign; empty without one."""
        return formats.change(self.change.ratio) if self.change else ""


@dataclass(frozen=True)
class HistoryAnswer:
    """Where the level of a metric changed, in the language of its reader.

    `rows` are all series: worse ones first, then better ones, others, and those that are the same.
    `causes` are the commits, or days, at which changes begin that stand, in the same order: those
    that a later change has overtaken come last.
    """

    question: str
    rows: tuple[HistoryRow, ...]
    causes: tuple[Cause, ...]
    points: int
    first: date | None
    last: date | None

    @property
    def cause(self) -> Cause | None:
        """The commit or day that the sentence is about."""
        return self.causes[0] if self.causes else None

    @property
    def sentence(self) -> str:
        """The whole: since when, how many of all series, and by how much."""
        if self.cause is not None:
            return self.cause.sentence
        if not self.rows:
            return _("No history yet")
        return _("No change of level")

    @property
    def others(self) -> tuple[str, ...]:
        """What else is to say of the first cause, and the sentences of the others."""
        further_lines = self.causes[0].further_lines if self.causes else []
        return (*further_lines, *(cause.sentence for cause in self.causes[1:]))

    @property
    def short(self) -> str:
        """How much changed, in a few words."""
        return self.cause.size if self.cause else self.sentence

    @property
    def low(self) -> float | None:
        """The least ratio of the sentence's changes, after by before."""
        return self.cause.low if self.cause else None

    @property
    def high(self) -> float | None:
        """The greatest of them."""
        return self.cause.high if self.cause else None

    @property
    def family(self) -> str:
        """What the figures are, and what holds for them."""
        return family()

    @property
    def tone(self) -> str:
        """The name of the whole's colour and sign."""
        return formats.tone(self.rows[0].verdict) if self.rows else "same"

    @property
    def exit_code(self) -> int:
        """1 where a change for the worse stands, else 0."""
        return int(any(row.verdict == "slower" for row in self.rows))


def family() -> str:
    """For what the ratios of changes hold."""
    return _(
        "From the least to the greatest ratio of levels, after by before; a change is a step of a "
        "level, or a run off it that a second job confirms."
    )


def answer_histories(found: Histories) -> HistoryAnswer:
    """What these histories say. One query where they have changes."""
    standing = [
        change
        for history in found.series
        for change in history.changes
        if change.decision not in Change.GONE
    ]
    same = (
        constant([history.levels for history in found.series])
        if len(found.series) > 1
        else ()
    )
    rows = [
        HistoryRow(history, _levels(history, same), _newest(history))
        for history in found.series
    ]
    points = [point for history in found.series for point in history.points]
    return HistoryAnswer(
        question=_question(found),
        rows=tuple(sorted(rows, key=_interest)),
        causes=tuple(
            causes.sort_by_interest(causes.find_causes(standing, by_decision=False))
        ),
        points=len({point.sha or point.at for point in points}),
        first=min((point.at for point in points), default=None),
        last=max((point.at for point in points), default=None),
    )


def _question(found: Histories) -> str:
    metric = metric_label(found.metric) if found.metric else "–"
    title = formats.translate_field(found.campaign, "title")
    return _("%(title)s: where did the level of %(metric)s change?") % {
        "title": title,
        "metric": metric,
    }


def _levels(history: History, same: Collection[str]) -> str:
    """What tells a series from the others."""
    varied = {name: value for name, value in history.levels.items() if name not in same}
    return ", ".join(level(value, name) for name, value in varied.items()) or _(
        "all runs"
    )


def _newest(history: History) -> Change | None:
    """Its newest change that nobody and nothing took back."""
    newest_first: Sequence[Change] = history.changes[::-1]
    return next(
        (change for change in newest_first if change.decision not in Change.GONE), None
    )


def _interest(row: HistoryRow) -> tuple[int, float]:
    return causes.place_of(row.verdict), -causes.size_of(
        row.change
    ) if row.change else 0.0
