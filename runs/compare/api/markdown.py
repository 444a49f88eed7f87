"""A verdict as Markdown: what a CI job posts to a pull request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.access.selectors.projects import Reader
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors import answers
from runs.compare.selectors.address.head_and_base import Side
from runs.compare.selectors.answers import AnswerRow, ComparisonAnswer, Figure
from runs.compare.selectors.describe.in_turn import once_more, suggest_command
from runs.compare.selectors.judge import trails
from runs.compare.selectors.judge.gate import Criteria, SideVerdict
from runs.compare.selectors.judge.gate_answers import EarlierAnswer
from runs.reports.markdown import defused
from runs.reports.tables import Table, as_markdown, shown
from runs.shared.hooks import Hook

SIGNS = {"slower": "🔴", "faster": "🟢", "same": "⚪", "different": "🔵"}
UNDECIDED = "🟡"
BARS = "▁▂▃▄▅▆▇█"
# GitHub takes comments of 65,536 characters.
MOST_ROWS = 200

Address = Callable[[str], str]
# What subjects above add to the comment on two sides, for this reader; empty: nothing.
AFTERWORDS: Hook[Callable[[SideVerdict, Criteria, Reader, Address], str]] = Hook()


def markdown(
    side_verdict: SideVerdict, address: Address, earlier: Sequence[EarlierAnswer] = ()
) -> str:
    """The verdict first, then what was compared, the table, and what the verdict rests on.

    `address` makes a path absolute; `earlier` are answers that were others. Rows that prove
    something come first.
    """
    answer = answers.answer_sides(side_verdict, earlier)
    rows = answer.sorted_rows
    paragraphs = [
        f"### {_sign(answer.verdict)} {answer.headline}",
        *(f"**{plain(sentence)}**" for sentence in answer.sentences),
        *(plain(note) for note in answer.notes),
        *_once_more(side_verdict, answer),
        *_tell_one_job(side_verdict, answer),
        _sides(side_verdict, address),
        *(plain(earlier_answer.text) for earlier_answer in answer.earlier),
    ]
    paragraphs += [
        _("On average over all rows, %(metric)s: **%(size)s**")
        % {"metric": plain(whole_answer.metric.name), "size": whole_answer.result.sized}
        for whole_answer in answer.wholes
        if any(row.is_asked for row in rows if row.metric == whole_answer.metric)
    ]
    if rows:
        common = answers.common_levels(rows)
        if common:
            levels = plain(answers.condition_of(common))
            paragraphs.append(_("In all rows: %(levels)s") % {"levels": levels})
        table = _table(rows[:MOST_ROWS], common, address)
        paragraphs.append(as_markdown(table, cell=_within_cell).rstrip())
    if len(rows) > MOST_ROWS:
        values = {"number": len(rows) - MOST_ROWS}
        paragraphs.append(
            _("%(number)d more rows are in the JSON of this comparison.") % values
        )
    if lines := _trails(side_verdict, address):
        paragraphs.append("\n".join(lines))
    notes = [answer.family, *(row.text for row in answer.evidence)]
    notes.append(_("Rules: version %(version)d.") % {"version": answer.rules})
    paragraphs.append(f"<sub>{' '.join(notes)}</sub>")
    return "\n\n".join(paragraphs) + "\n"


def fenced(text: str) -> str:
    """Somebody's output as a block of code that it cannot end by itself."""
    inner = text.replace("```", "` ` `")
    return f"```text\n{inner}\n```"


def _once_more(side_verdict: SideVerdict, answer: ComparisonAnswer) -> list[str]:
    """The command that runs the job of a suspicious head, or of its base, once more."""
    codes = {code for row in answer.rows for code in row.result.inference.reasons}
    if not codes & {"suspicious", "all_alike"}:
        return []
    branch = _branch_of_base(side_verdict)
    return [fenced(once_more(side_verdict.head.campaign, branch))]


def _tell_one_job(side_verdict: SideVerdict, answer: ComparisonAnswer) -> list[str]:
    """What tells the runner from the commit, where a loss was seen between jobs."""
    inferences = [row.result.inference for row in answer.rows if row.counts]
    if not any(
        inference.verdict == "slower" and inference.error_table in ("jobs", "few_jobs")
        for inference in inferences
    ):
        return []
    branch = _branch_of_base(side_verdict)
    command = suggest_command(side_verdict.head.campaign, branch)
    text = _(
        "Nothing in the commit explains it? Measure both sides in one job, in turn:"
    )
    return [text, fenced(command)]


def _branch_of_base(side_verdict: SideVerdict) -> str:
    revision = side_verdict.base.revision
    return trails.branch_of(side_verdict) or (revision.ref if revision else "")


def _sides(side_verdict: SideVerdict, address: Address) -> str:
    sides = {
        "base": _link(side_verdict.base, address),
        "head": _link(side_verdict.head, address),
    }
    text = _("Base: %(base)s – head: %(head)s") % sides
    job = trails.job_of(side_verdict)
    return f"{text} – [{_('CI job')}]({escape_link(job)})" if job else text


def _trails(side_verdict: SideVerdict, address: Address) -> list[str]:
    """A line a row that decides: its last points up to the head, and its history."""
    page = reverse("campaign-history", args=[side_verdict.head.campaign.slug])
    lines = []
    for trail in trails.find_trails(side_verdict):
        row = trail.row
        query = [("metric", row.metric.name)]
        query += [
            ("level", f"{name}={level_text(level)}")
            for name, level in row.levels.items()
        ]
        link = f"[{_('history')}]({escape_link(address(f'{page}?{urlencode(query)}'))})"
        levels = answers.condition_of(row.levels)
        name = plain(f"{row.metric.name}, {levels}" if levels else row.metric.name)
        lines.append(
            f"- {name}: {sparkline(trail.values, side_verdict.effect / 100)} {link}"
        )
    return lines


def sparkline(values: Sequence[float], effect: float) -> str:
    """Values as bars of eight heights; what differs by less than the effect is drawn level."""
    low, high = min(values), max(values)
    middle = (low + high) / 2
    half = max((high - low) / 2, abs(middle) * effect)
    if half == 0:
        return BARS[3] * len(values)
    return "".join(
        BARS[round((value - middle + half) / (2 * half) * 7)] for value in values
    )


def _table(
    rows: Sequence[AnswerRow], common: Mapping[str, Any], address: Address
) -> Table:
    heads = (
        _("Verdict"),
        _("Metric"),
        _("Condition"),
        _("Base"),
        _("Head"),
        _("Ratio"),
    )
    return Table(
        (*heads, _("Interval"), pgettext("effect", "Size")),
        tuple(_line(row, common, address) for row in rows),
    )


def _line(
    row: AnswerRow, common: Mapping[str, Any], address: Address
) -> tuple[str, ...]:
    unit = f" ({_escape_cell(row.metric.unit)})" if row.metric.unit else ""
    return (
        _verdict(row),
        f"{_escape_cell(row.metric.name)}{unit}",
        _escape_cell(answers.condition_of(_exclude_common(row.levels, common))) or "–",
        _value(row.base, address),
        _value(row.head, address),
        row.result.ratio,
        row.result.interval,
        row.result.sized or "–",
    )


def _exclude_common(
    levels: Mapping[str, Any], common: Mapping[str, Any]
) -> dict[str, Any]:
    return {name: level for name, level in levels.items() if name not in common}


def _verdict(row: AnswerRow) -> str:
    if not row.counts:
        is_new = _("new")
        return f"{SIGNS['different']} {is_new}"
    word = f"{_sign(row.result.verdict)} {row.result.word}"
    return f"{word}: {row.result.why}" if row.result.why else word


def _value(figure: Figure, address: Address) -> str:
    """The value of a side and how often it was measured, with a link to its first run."""
    if figure.summary is None:
        return "–"
    n = "unknown" if figure.summary.n is None else figure.summary.n
    text = f"{shown(figure.value)} (n {n})"
    if figure.runs.first is None:
        return text
    return f"[{text}]({address(reverse('run-detail', args=[figure.runs.first]))})"


def _link(side: Side, address: Address) -> str:
    page = address(reverse("campaign-detail", args=[side.campaign.slug]))
    if side.revision is not None and side.revision.url:
        page = side.revision.url
    return f"[{plain(side.label)}]({escape_link(page)})"


def escape_link(address: str) -> str:
    """An address within a link of Markdown, which it cannot end."""
    return address.replace(")", "%29").replace(" ", "%20")


def plain(text: str) -> str:
    """A name of a branch is somebody's text: it must not become Markdown of its own."""
    words = defused(" ".join(text.split()))
    return "".join(
        f"\\{character}" if character in "\\`*_[]<>()#|!~" else character
        for character in words
    )


def _escape_cell(text: str) -> str:
    """The same for a table's cell, which has its backslashes escaped later."""
    return "".join(
        f"&#{ord(character)};" if character in "`*[]<>()#!~&" else character
        for character in defused(text)
    )


def _within_cell(markdown: str) -> str:
    return markdown.replace("\\", "\\\\").replace("|", r"\|")


def _sign(verdict: str) -> str:
    return SIGNS.get(verdict, UNDECIDED)
