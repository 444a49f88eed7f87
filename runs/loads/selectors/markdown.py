"""The answer of a load as Markdown."""

from django.utils.translation import gettext as _

from runs.loads.selectors.answers import REASONS, LoadAnswer, Row
from runs.shared import formats


def markdown(answer: LoadAnswer) -> str:
    """The sentence, what differs first, what could not be judged, and what was left out."""
    lines = [
        f"# {_cell(answer.name)}",
        "",
        f"**{answer.sentence}**",
        "",
        answer.family,
        "",
    ]
    for note in answer.notes:
        lines += [_cell(note), ""]
    lines += [
        "| {} | {} | {} | {} | {} |".format(
            _("Statement"),
            answer.base,
            answer.head,
            _("Time, head by base"),
            _("Answer"),
        ),
        "| --- | ---: | ---: | ---: | --- |",
    ]
    lines += [_line(row) for row in answer.rows]
    for row in answer.rows_that_changed:
        lines += ["", f"## {row.verdict}: `{_code(row.short_text)}`", ""]
        sentences = [*row.plan_sentences, *row.cause_sentences]
        lines += [f"- {_cell(sentence)}" for sentence in sentences]
    if answer.left_out:
        lines += ["", f"## {_('Left out')}", ""]
        for left_out in answer.left_out:
            lines.append(
                f"- `{_code(left_out.text[:160])}`: {REASONS[left_out.reason]}"
            )
    return "\n".join([*lines, ""])


def _line(row: Row) -> str:
    cells = (
        f"`{_code(row.short_text)}`",
        formats.milliseconds(row.base_ms),
        formats.milliseconds(row.head_ms),
        row.interval,
        row.why_not or row.verdict,
    )
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    return _cell(text).replace("`", "'")
