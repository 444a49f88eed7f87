"""The answer of a load for the report of its campaign."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.loads.selectors.answers import REASONS, LoadAnswer, Row
from runs.reports.report import Block, Bullets, Paragraph, Table
from runs.shared import formats


def blocks(answer: LoadAnswer) -> list[Block]:
    """The sentence, each statement, what differs in the plans of some, and what was left out."""
    return list(_blocks(answer))


def _blocks(answer: LoadAnswer) -> Iterator[Block]:
    yield Paragraph(f"{answer.sentence}\n\n{answer.family}")
    yield Bullets(tuple(answer.notes))
    heads = (
        _("Statement"),
        answer.base,
        answer.head,
        _("Time, head by base"),
        _("Answer"),
    )
    yield Table("", heads, tuple(map(_cells, answer.rows)), frozenset({1, 2, 3}))
    for row in answer.rows_that_changed:
        yield Paragraph(f"{row.verdict}: {row.short_text}")
        yield Bullets((*row.plan_sentences, *row.cause_sentences))
    if answer.left_out:
        yield Paragraph(_("Left out"))
        yield Bullets(
            tuple(
                f"{formats.capped(left_out.text, 160)}: {REASONS[left_out.reason]}"
                for left_out in answer.left_out
            )
        )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.short_text,
        formats.milliseconds(row.base_ms),
        formats.milliseconds(row.head_ms),
        row.interval,
        row.why_not or row.verdict,
    )
