"""What ablations explain of a campaign's differences, for its report."""

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.models import Ablation, Campaign
from runs.reports.report import Block, Paragraph, Table
from runs.why.selectors import ablation_words, ablations


def explanations(campaign: Campaign) -> list[Block]:
    """Of the ablation that the campaign is, or of those between its cells. The newest of a pair."""
    return [block for each in ablations.about(campaign.pk) for block in _of(each)]


def _of(ablation: Ablation) -> list[Block]:
    found = ablations.answers(ablation)
    proofs = {_("time"): found.time, _("processor time"): found.cpu}
    sentences = [
        f"{title}: {' '.join(ablation_words.proof_sentences(proof))}"
        for title, proof in proofs.items()
        if proof is not None
    ]
    if not sentences:
        return []
    shares = [
        {each.name: ablation_words.answer(each) for each in proof.suspects} if proof else {}
        for proof in proofs.values()
    ]
    rows = tuple(
        (
            each["name"],
            each["a"] or "–",
            each["b"],
            *(answers.get(each["name"], "") for answers in shares),
        )
        for each in ablation.suspects
    )
    heads = (_("Suspect"), "A", "B", pgettext("per transaction", "Time"), _("Processor time"))
    return [Paragraph("\n\n".join(sentences)), Table(ablation.campaign.title, heads, rows)]
