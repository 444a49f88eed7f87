"""What ablations explain of a campaign's differences, for its report."""

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.models import Ablation, Campaign
from runs.reports.report import Block, Paragraph, Table
from runs.why.selectors import ablation_words, ablations


def explanations(campaign: Campaign) -> list[Block]:
    """Of the ablation that the campaign is, or of those between its cells. The newest of a pair."""
    return [block for ablation in ablations.about(campaign.pk) for block in _of(ablation)]


def _of(ablation: Ablation) -> list[Block]:
    answers_found = ablations.answers(ablation)
    proofs = {_("time"): answers_found.time, _("processor time"): answers_found.cpu}
    sentences = [
        f"{title}: {' '.join(ablation_words.proof_sentences(proof))}"
        for title, proof in proofs.items()
        if proof is not None
    ]
    if not sentences:
        return []
    shares = [
        {share.name: ablation_words.answer(share) for share in proof.suspects} if proof else {}
        for proof in proofs.values()
    ]
    rows = tuple(
        (
            suspect["name"],
            suspect["a"] or "–",
            suspect["b"],
            *(answers.get(suspect["name"], "") for answers in shares),
        )
        for suspect in ablation.suspects
    )
    heads = (_("Suspect"), "A", "B", pgettext("per transaction", "Time"), _("Processor time"))
    return [Paragraph("\n\n".join(sentences)), Table(ablation.campaign.title, heads, rows)]
