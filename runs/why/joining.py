"""What ablations add to subjects below: explanations of a campaign, and when it needs more runs."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.campaigns.selectors.explanations import EXPLAINERS, Explanation
from runs.campaigns.services.repeats import CONTINUATIONS, Continuation
from runs.models import Campaign
from runs.why.selectors import ablations, answers
from runs.why.services import put_back


@EXPLAINERS.join
def explanations(campaign: Campaign) -> Iterator[Explanation]:
    """Of the ablation that the campaign is, or of those between its cells; the newest of a pair."""
    for ablation in ablations.about(campaign.pk):
        yield Explanation(
            base=ablation.base,
            head=ablation.head,
            title=ablation.campaign.title,
            answer=answers.answer_ablation(ablation, ablations.answers(ablation)),
        )


@CONTINUATIONS.join
def continuation(campaign: Campaign) -> Continuation | None:
    """An ablation has two looks only, and gets all rounds up to the second if the first is open."""
    ablation = ablations.find_ablation(campaign.pk)
    if ablation is None:
        return None
    put_back.note_unchanged(ablation=ablation)
    is_open = ablations.is_open(ablation)
    reason = _("Added: the first six rounds did not decide.") if is_open else ""
    return Continuation(reason, takes_all_rounds=True)
