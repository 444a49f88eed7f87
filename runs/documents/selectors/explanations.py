"""What ablations explain of a campaign's differences, for its report."""

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.models import Ablation, Campaign
from runs.reports.report import Block, Paragraph, Table
from runs.why.selectors import ablations, answers


def explanations(campaign: Campaign) -> list[Block]:
    """Of the ablation that the campaign is, or of those between its cells. The newest of a pair."""
    return [block for ablation in ablations.about(campaign.pk) for block in _of(ablation)]


def _of(ablation: Ablation) -> list[Block]:
    answer = answers.of_ablation(ablation, ablations.answers(ablation))
    if not answer.sentences:
        return []
    rows = tuple((row.name, row.a or "–", row.b, row.time, row.cpu) for row in answer.rows)
    heads = (_("Suspect"), "A", "B", pgettext("per transaction", "Time"), _("Processor time"))
    paragraph = "\n\n".join((*answer.sentences, *answer.notes))
    return [Paragraph(paragraph), Table(ablation.campaign.title, heads, rows)]
