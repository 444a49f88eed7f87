"""What a comparison says: made once of what is judged, and printed by every door.

The page, its files and its report print `answer_series`; the API, its Markdown and the badge print
`answer_sides`; the page of two cells prints `answer_cells`. None of them words or judges for
itself.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.utils.translation import gettext as _

from runs.access.selectors.projects import Reader
from runs.analysis.inference import RULES, Inference, Verdict, overall
from runs.analysis.inference.verdicts import PRECEDENCE, Direction
from runs.analysis.number_words import percent
from runs.analysis.summary import Summary
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors.address import head_and_base
from runs.compare.selectors.address.head_and_base import BadSide, NoBaseline, Side
from runs.compare.selectors.describe import job_words, summary
from runs.compare.selectors.describe.series_labels import PlainWording, Wording
from runs.compare.selectors.describe.verdict_words import (
    HEADLINES,
    VERDICTS,
    ErrorRow,
    error_row,
    lacks_print,
    missing,
    sentence,
    size,
    size_of_all,
    sized,
    verdict_word,
    worded,
)
from runs.compare.selectors.judge import against_history, gate_answers
from runs.compare.selectors.judge.cells import ComparedCells, MetricRow
from runs.compare.selectors.judge.comparisons import ComparedPage, ComparedRow
from runs.compare.selectors.judge.exit_codes import exit_code
from runs.compare.selectors.judge.gate import Criteria, SideVerdict, VerdictRow
from runs.compare.selectors.judge.gate_answers import EarlierAnswer
from runs.compare.selectors.load.stored_cells import CellRuns
from runs.grouping import group_by_key
from runs.models import Campaign, Metric, Revision
from runs.queue.selectors import certificate_words
from runs.shared import formats


@dataclass(frozen=True)
class Result:
    """Head against base as it was tested: the figures, and what they are in the reader's words."""

    inference: Inference

    @property
    def verdict(self) -> Verdict:
        """The code."""
        return self.inference.verdict

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return verdict_word(self.inference)

    @property
    def tone(self) -> str:
        """The name of its colour and sign."""
        return formats.tone(self.inference.verdict)

    @property
    def ratio(self) -> str:
        """Head / base with three decimals; a dash without one."""
        return formats.ratio(self.inference.ratio)

    @property
    def interval(self) -> str:
        """What bounds the ratio: "1.042 – 1.140"; a dash without both ends."""
        low, high = self.inference.low, self.inference.high
        return f"{low:.3f} – {high:.3f}" if low and high else "–"

    @property
    def p_value(self) -> str:
        """That of the table: "< 0.001"; a dash without one."""
        value = self.inference.adjusted_p_value
        if value is None:
            return "–"
        return "< 0.001" if value < 0.001 else f"{value:.3f}"

    @property
    def size(self) -> str:
        """How large the difference is, as an interval: "4.2 to 14 % slower". Empty without one."""
        return size(self.inference)

    @property
    def sized(self) -> str:
        """The size, and doubts about it."""
        return sized(self.inference)

    @property
    def why(self) -> str:
        """Why there is no verdict, or what an undecided one needs; empty for the others."""
        return sentence(self.inference.reasons) or missing(self.inference)

    @property
    def word_of_print(self) -> str:
        """The verdict, and what a publication does not print where that alone prevents one."""
        if lacks_print(self.inference):
            return f"{self.word}: {sentence(self.inference.reasons)}"
        return self.word

    @property
    def doubt(self) -> str:
        """The mark of runs that are doubtful, or invalid; empty without any."""
        return certificate_words.mark(self.inference.judged)


@dataclass(frozen=True)
class Figure:
    """One side of a row. `value` is the model's, else the median; None where nothing is known.

    `key` is the side as addresses name it, `cell` its cell where it has a single one.
    """

    label: str
    key: str
    campaign: Campaign
    cell: int | None
    value: float | None
    summary: Summary | None
    runs: CellRuns


@dataclass(frozen=True)
class AnswerRow:
    """Head against base in one condition: the figure that was tested, and its one interval.

    `x` is the condition's place on the axis, where there is one. A row that does not count is of a
    condition that the base lacks. `is_asked` is false for a metric next to those that decide.
    """

    metric: Metric
    condition: str
    levels: Mapping[str, Any]
    base: Figure
    head: Figure
    result: Result
    x: Any = None
    is_asked: bool = True

    @property
    def counts(self) -> bool:
        """Conditions missing in the base are new, and cannot be a regression."""
        return self.base.summary is not None

    @property
    def is_proven(self) -> bool:
        """The interval says that the sides differ."""
        return self.result.inference.is_proven


@dataclass(frozen=True)
class Whole:
    """The one interval for all rows of a metric that have the same head and base."""

    metric: Metric
    base: str
    head: str
    number: int
    result: Result


@dataclass(frozen=True)
class Count:
    """How many rows have a verdict."""

    tone: str
    word: str
    number: int


@dataclass(frozen=True)
class ComparisonAnswer:
    """What a comparison says, in the language of its reader.

    `question` says in words what is compared, and `sentences` what follows, the most important
    first; `notes` what it rests on. `rows` are in the order of the sides and their levels,
    `by_effect` those that are shown with the largest effect first. `wholes` are the intervals of
    all rows of a metric together. `effect` is the minimum effect in percent. `evidence` are the
    error rates that apply.
    `reasons` say why rows are not compared, `despite` what differs although they are, `ignored`
    what was overridden, and `faults` what was asked for and is not there. `earlier` are answers
    that CI jobs were given and that were others. `base` and `head` are the sides as they were
    named, where the whole has but one of each.
    """

    question: str
    rows: tuple[AnswerRow, ...]
    effect: float
    verdict: Verdict
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    by_effect: tuple[AnswerRow, ...] = ()
    wholes: tuple[Whole, ...] = ()
    evidence: tuple[ErrorRow, ...] = ()
    reasons: str = ""
    despite: str = ""
    ignored: str = ""
    faults: tuple[str, ...] = ()
    earlier: tuple[EarlierAnswer, ...] = ()
    base: Side | None = None
    head: Side | None = None

    @property
    def error_row(self) -> ErrorRow | None:
        """The evidence where it is one row: that of the rows that decide."""
        return self.evidence[0] if self.evidence else None

    @property
    def headline(self) -> str:
        """The verdict of the whole in a sentence."""
        return str(HEADLINES[self.verdict])

    @property
    def sentence(self) -> str:
        """The title of the page: the first of what follows, else the verdict of the whole."""
        return self.sentences[0] if self.sentences else self.headline

    @property
    def low(self) -> float | None:
        """What bounds the ratio that the sentence is about: of all rows, else of the only one."""
        inference = self._told
        return inference.low if inference else None

    @property
    def high(self) -> float | None:
        """The other end."""
        inference = self._told
        return inference.high if inference else None

    @property
    def exit_code(self) -> int:
        """The exit status of a CI job."""
        return exit_code(self.verdict)

    @property
    def tone(self) -> str:
        """The name of the whole's colour and sign."""
        return formats.tone(self.verdict)

    @property
    def short(self) -> str:
        """The whole in a few words: its size in the rows behind it, and how many these are."""
        behind = [row.result for row in self._behind]
        if not behind:
            return str(VERDICTS[self.verdict])
        if not behind[0].inference.is_proven:
            return behind[0].word
        word = worded(
            behind[0].inference, size_of_all([one.inference for one in behind])
        )
        if len(self.rows) == 1:
            return word
        values = {"size": word, "number": len(behind), "total": len(self.rows)}
        return _("%(size)s, %(number)d of %(total)d") % values

    @property
    def sorted_rows(self) -> list[AnswerRow]:
        """All rows, those that prove something first."""
        return sorted(self.rows, key=lambda row: PRECEDENCE.index(row.result.verdict))

    @property
    def counts(self) -> list[Count]:
        """How many rows have each verdict, the most first."""
        counted = Counter((row.result.tone, row.result.word) for row in self.rows)
        return [
            Count(tone, word, number) for (tone, word), number in counted.most_common()
        ]

    @property
    def rules(self) -> int:
        """The newest version of the rules by which a row was judged."""
        return max((row.result.inference.rules for row in self.rows), default=RULES)

    @property
    def family(self) -> str:
        """For what the intervals hold together, and what the words mean."""
        text = _(
            "Head against base by one model of all runs; the intervals hold together in 95 of 100 "
            "tables. The same: within %(effect)s %%."
        )
        return text % {"effect": f"{self.effect:g}"}

    @property
    def _told(self) -> Inference | None:
        """The whole where it is one, else the row where it is one."""
        if len(self.wholes) == 1:
            return self.wholes[0].result.inference
        return self.rows[0].result.inference if len(self.rows) == 1 else None

    @property
    def _behind(self) -> list[AnswerRow]:
        """The rows with the verdict of the whole that have a ratio, the largest effect first."""
        rows = [
            row
            for row in self.rows
            if row.result.verdict == self.verdict and row.result.inference.ratio
        ]
        return sorted(rows, key=_distance, reverse=True)


def _distance(row: AnswerRow) -> float:
    return abs(math.log(row.result.inference.ratio or 1.0))


def condition_of(levels: Mapping[str, Any]) -> str:
    """The levels that both sides of a row share: "clients 8, duration 60"."""
    return ", ".join(
        f"{name} {level_text(formats.format_level(level))}"
        for name, level in levels.items()
    )


# Fewer levels than these fit into the cell of each row.
MANY_LEVELS = 3


def common_levels(rows: Sequence[AnswerRow]) -> dict[str, Any]:
    """The levels that all rows share, where they are many: they are told once for all rows."""
    shared = [
        (name, level)
        for name, level in rows[0].levels.items()
        if all(name in row.levels and row.levels[name] == level for row in rows)
    ]
    return dict(shared) if len(shared) >= MANY_LEVELS else {}


def answer_series(
    page: ComparedPage, wording: Wording | None = None
) -> ComparisonAnswer:
    """What compared series say. One query, for a comparison of commits."""
    words = wording or PlainWording()
    row_of = {id(row): _row_of_series(row, page, words) for row in page.rows}
    rows = tuple(row_of.values())
    # Overridden differences are listed separately.
    despite = [code for code in page.despite if code not in page.state.ignored_codes]
    return ComparisonAnswer(
        question=_("Comparison: %(series)s") % {"series": ", ".join(page.labels)},
        rows=rows,
        effect=page.state.effect,
        verdict=overall(row.result.verdict for row in rows),
        sentences=tuple(summary.summarise_comparison(page)),
        notes=_notes_of_series(page),
        by_effect=tuple(row_of[id(row)] for row in page.forest),
        wholes=_wholes_of_series(page),
        evidence=_evidence_of_series(page),
        reasons=sentence(page.reasons),
        despite=sentence(despite),
        ignored=sentence(page.state.ignored_codes),
        faults=page.loaded.faults,
        earlier=tuple(gate_answers.list_earlier_answers(page)),
    )


def _notes_of_series(page: ComparedPage) -> tuple[str, ...]:
    proven = [row.comparison for row in page.rows if row.comparison.is_proven]
    note = job_words.judged_by(proven)
    return (note,) if note else ()


def _row_of_series(row: ComparedRow, page: ComparedPage, words: Wording) -> AnswerRow:
    x, metric = page.loaded.x, cast(Metric, page.loaded.metric)
    inference = row.comparison
    return AnswerRow(
        metric=metric,
        condition="" if x is None else words.level(x, row.x),
        levels={} if x is None else {x: row.x},
        base=Figure(
            label=row.base_label,
            key=str(row.base.key),
            campaign=row.base.campaign,
            cell=row.base_cell.id,
            value=_value(inference.base_value, row.base_cell.summary),
            summary=row.base_cell.summary,
            runs=row.base_cell.runs,
        ),
        head=Figure(
            label=row.head_label,
            key=str(row.head.key),
            campaign=row.head.campaign,
            cell=row.head_cell.id,
            value=_value(inference.head_value, row.head_cell.summary),
            summary=row.head_cell.summary,
            runs=row.head_cell.runs,
        ),
        result=Result(inference),
        x=row.x,
    )


def _wholes_of_series(page: ComparedPage) -> tuple[Whole, ...]:
    metric = page.loaded.metric
    if metric is None:
        return ()
    return tuple(
        Whole(
            metric,
            base=average.base_label,
            head=average.head_label,
            number=average.rows,
            result=Result(average.comparison),
        )
        for average in page.averages
    )


def _evidence_of_series(page: ComparedPage) -> tuple[ErrorRow, ...]:
    """The rows of the error table that apply to the series, each once."""
    evidence = {}
    for rows in group_by_key((id(row.head), row) for row in page.rows).values():
        sides = [side for row in rows for side in (row.base_cell, row.head_cell)]
        n = min(side.summary.n or 1 for side in sides)
        applying = error_row([row.comparison for row in rows], n)
        if applying is not None:
            evidence[applying.text] = applying
    return tuple(evidence.values())


def answer_sides(
    side_verdict: SideVerdict, earlier: Sequence[EarlierAnswer] = ()
) -> ComparisonAnswer:
    """What head against base says; `earlier` are answers that were others."""
    rows = tuple(_row_of_sides(row, side_verdict) for row in side_verdict.rows)
    sides = {"base": side_verdict.base.label, "head": side_verdict.head.label}
    applying = side_verdict.error_row
    return ComparisonAnswer(
        question=_("Base: %(base)s – head: %(head)s") % sides,
        rows=rows,
        effect=side_verdict.effect,
        verdict=side_verdict.overall,
        sentences=_sentences_of_sides(side_verdict),
        notes=_notes_of_sides(side_verdict),
        wholes=_wholes_of_sides(side_verdict),
        evidence=(applying,) if applying else (),
        earlier=tuple(earlier),
        base=side_verdict.base,
        head=side_verdict.head,
    )


def _row_of_sides(row: VerdictRow, side_verdict: SideVerdict) -> AnswerRow:
    base, head, inference = side_verdict.base, side_verdict.head, row.comparison
    return AnswerRow(
        metric=row.metric,
        condition=condition_of(row.levels),
        levels=row.levels,
        base=Figure(
            label=base.label,
            key=base.text,
            campaign=base.campaign,
            cell=None,
            value=_value(inference.base_value, row.base),
            summary=row.base,
            runs=row.base_runs,
        ),
        head=Figure(
            label=head.label,
            key=head.text,
            campaign=head.campaign,
            cell=row.head_cell,
            value=_value(inference.head_value, row.head),
            summary=row.head,
            runs=row.head_runs,
        ),
        result=Result(inference),
        is_asked=row.is_asked,
    )


def _wholes_of_sides(side_verdict: SideVerdict) -> tuple[Whole, ...]:
    return tuple(
        Whole(
            metric,
            base=side_verdict.base.label,
            head=side_verdict.head.label,
            number=sum(row.metric == metric for row in side_verdict.rows),
            result=Result(average),
        )
        for metric, average in side_verdict.together.items()
    )


def _sentences_of_sides(side_verdict: SideVerdict) -> tuple[str, ...]:
    """What pages say of the same rows: a sentence for each metric that decides."""
    sentences = []
    for metric in dict.fromkeys(
        row.metric for row in side_verdict.rows if row.is_asked and row.counts
    ):
        rows = [
            row.comparison
            for row in side_verdict.rows
            if row.metric == metric and row.counts
        ]
        text = summary.summary(
            side_verdict.head.label,
            side_verdict.base.label,
            rows,
            together=side_verdict.together.get(metric),
            direction=cast(Direction, metric.direction),
        )
        sentences.append(text)
    return tuple(dict.fromkeys(sentences))


def _notes_of_sides(side_verdict: SideVerdict) -> tuple[str, ...]:
    """What a proven answer of few jobs rests on, and where a loss began that is not the head's."""
    proven = [row.comparison for row in side_verdict.rows if row.comparison.is_proven]
    notes = [job_words.judged_by(proven), *_began(side_verdict)]
    if side_verdict.base.is_by_time:
        notes.append(
            _(
                "No known parents of the commit lead to the base: it was found by its time."
            )
        )
    return tuple(dict.fromkeys(filter(None, notes)))


def _began(side_verdict: SideVerdict) -> list[str]:
    """Where a loss began that the head still has: it is not the head's."""
    sentences = []
    for row in side_verdict.rows:
        if row.began is None or not row.is_asked or row.metric.direction == "neutral":
            continue
        is_worse = (row.began.ratio < 1) == (row.metric.direction == "higher")
        share = abs(1 - row.began.ratio)
        if is_worse and 100 * share > side_verdict.effect:
            values = {
                "size": percent(share),
                "commit": _commit_at(row.began.sha, side_verdict),
            }
            sentences.append(
                _("The loss of %(size)s %% began at %(commit)s, not here.") % values
            )
    return sentences


def _commit_at(sha: str, side_verdict: SideVerdict) -> str:
    """A commit as a sentence names it: "4f1c09d2a7be (“Drop the index”, Jane Doe)". One query."""
    head = side_verdict.head.revision
    project = head.project_id if head else side_verdict.head.campaign.project_id
    commit = Revision.objects.filter(project=project, sha=sha).first()
    described = commit.described if commit else ""
    return f"{sha[:12]} ({described})" if described else sha[:12]


def answer_newest(
    campaign: Campaign, *, base: str = "", metric: str = "", reader: Reader
) -> ComparisonAnswer | None:
    """The newest revision against `base` (as in a comparison), else its branch's last points.

    None if there is nothing to compare: a badge is shown elsewhere, and says so.
    """
    try:
        sides = head_and_base.find_newest(base, campaign=campaign, reader=reader)
    except (BadSide, NoBaseline):
        return None
    criteria = Criteria(metrics=(metric,) if metric else ())
    return answer_sides(against_history.compared(*sides, criteria))


def answer_cells(cells: ComparedCells, effect: float) -> ComparisonAnswer:
    """What two cells say: a row for each metric that both have."""
    rows = tuple(_row_of_cells(row, cells) for row in cells.rows)
    codes = dict.fromkeys(code for row in cells.rows for code in row.comparison.despite)
    sides = {"base": cells.a.label, "head": cells.b.label}
    return ComparisonAnswer(
        question=_("Base: %(base)s – head: %(head)s") % sides,
        rows=rows,
        effect=effect,
        verdict=overall(row.result.verdict for row in rows),
        despite=sentence(codes),
    )


def _row_of_cells(row: MetricRow, cells: ComparedCells) -> AnswerRow:
    a, b, inference = cells.a.cell, cells.b.cell, row.comparison
    return AnswerRow(
        metric=row.metric,
        condition="",
        levels={},
        base=Figure(
            label=cells.a.label,
            key=str(a.pk),
            campaign=a.campaign,
            cell=a.pk,
            value=_value(inference.base_value, row.a),
            summary=row.a,
            runs=CellRuns(),
        ),
        head=Figure(
            label=cells.b.label,
            key=str(b.pk),
            campaign=b.campaign,
            cell=b.pk,
            value=_value(inference.head_value, row.b),
            summary=row.b,
            runs=CellRuns(),
        ),
        result=Result(inference),
    )


def _value(value: float | None, measured: Summary | None) -> float | None:
    """What the model says of a side, so that both give the ratio; else the median."""
    if measured is None:
        return None
    return measured.median if value is None else value
