"""Measures doubtful runs again, as often as their campaign asks for.

Only if another run may avoid the doubt: foreign load, a drift, a checkpoint. The doubtful run
stays, counts, and is marked: dropping results that one does not like would bias the summary.
"""

from django.utils.translation import gettext as _

from runs.models import Campaign, Run
from runs.services.campaigns import further_runs

CODE = "measured_again"
MOST_REMEASURES = 10


def add(*, campaign: Campaign) -> int:
    """Queue the runs that must be measured again; return how many. Call it in a transaction.

    Only when all runs have ended and nobody cancelled one of them.
    """
    if not campaign.remeasures or campaign.runs.filter(state=Run.State.CANCELLED).exists():
        return 0
    doubtful = campaign.runs.filter(
        state=Run.State.FINISHED,
        validity__in=Run.DOUBTED,
        certificate__is_curable=True,
        plan__isnull=False,
        again=None,
    )
    wanted = {
        run: _("Run %(id)d is in doubt, and is measured again.") % {"id": run.pk}
        for run in doubtful.select_related("again_of")
        if _times_before(run) < campaign.remeasures
    }
    if wanted:
        further_runs.queue(campaign=campaign, like=wanted, code=CODE)
    return len(wanted)


def _times_before(run: Run) -> int:
    """How often the first of these has already been measured again."""
    times, before = 0, run.again_of
    while before is not None:
        times, before = times + 1, before.again_of
    return times
