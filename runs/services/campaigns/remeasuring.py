"""Runs that are in doubt are measured again, as often as their campaign asks for.

Only those whose doubt another run may be spared: foreign load, a drift, a checkpoint. The doubtful
one stays and counts, marked as what it is: leaving out what one does not like is no rule.
"""

from django.utils.translation import gettext as _

from runs.models import Campaign, Run
from runs.services.campaigns import further_runs

CODE = "measured_again"
MOST_REMEASURES = 10


def add(*, campaign: Campaign) -> int:
    """Queue the runs that are to be measured again; how many. Call it in a transaction.

    Only when all runs have ended, and not when somebody cancelled one of them.
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
    """How often the first of these was measured again already."""
    times, before = 0, run.again_of
    while before is not None:
        times, before = times + 1, before.again_of
    return times
