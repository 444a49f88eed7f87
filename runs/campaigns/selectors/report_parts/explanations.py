"""What explains a campaign's differences, for its report."""

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.campaigns.selectors import explanations as explanation_selectors
from runs.models import Campaign
from runs.reports.report import Block, Paragraph, Table


def explanations(campaign: Campaign) -> list[Block]:
    """Of each pair of cells that is explained: the sentences, and what was tried."""
    heads = (
        _("Suspect"),
        "A",
        "B",
        pgettext("per transaction", "Time"),
        _("Processor time"),
    )
    blocks: list[Block] = []
    for explanation in explanation_selectors.list_explanations(campaign):
        answer = explanation.answer
        if not answer.sentences:
            continue
        rows = tuple(
            (row.name, row.a or "–", row.b, row.time, row.cpu) for row in answer.rows
        )
        blocks.append(Paragraph("\n\n".join((*answer.sentences, *answer.notes))))
        blocks.append(Table(explanation.title, heads, rows))
    return blocks
