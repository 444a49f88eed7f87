"""Measures doubtful runs again, as often as their campaign asks for.

Only if another run may avoid the doubt: foreign load, a drift, a checkpoint. The doubtful run
stays, counts, and is marked: dropping results that one does not like would bias the summary. It is
left out only if the campaign stated so beforehand.
"""

import logging

from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Campaign, Run, RunEvent
from runs.services.campaigns import further_runs, summaries
from runs.services.errors import ServiceError
from runs.services.seals import sealing
from runs.wording import gettext_noop

logger = logging.getLogger(__name__)

CODE = "measured_again"
LEFT_OUT = gettext_noop("In doubt: this campaign leaves out what is, by its own rule.")
MOST_REMEASURES = 10


def add(*, campaign: Campaign) -> int:
    """Queue the runs that must be measured again; return how many. Call it in a transaction.

    Only when all runs have ended and nobody cancelled one of them.
    """
    if not campaign.remeasures or campaign.runs.filter(state=Run.State.CANCELLED).exists():
        return 0
    doubtful = campaign.runs.filter(
        Run.DOUBTFUL,
        certificate__is_curable=True,
        plan__isnull=False,
        again=None,
    )
    wanted = {
        run: _("Run %(id)d is in doubt, and is measured again.") % {"id": run.pk}
        for run in doubtful.select_related("again_of")
        if _times_before(run) < campaign.remeasures
    }
    if not wanted:
        return 0
    try:
        with transaction.atomic():
            return len(further_runs.queue(campaign=campaign, like=wanted, code=CODE))
    except ServiceError as error:
        logger.warning("campaign %s measures nothing again: %s", campaign.slug, error.message)
        return 0


def leave_out(*, campaign: Campaign) -> int:
    """Withdraw doubtful runs, if the campaign says so; return how many. In a transaction."""
    if not campaign.leaves_out_doubtful:
        return 0
    doubtful = campaign.runs.filter(Run.DOUBTFUL)
    left = list(doubtful.select_for_update().order_by("pk").defer("plan"))
    state, reason = Run.State.WITHDRAWN, str(LEFT_OUT)
    Run.objects.filter(pk__in=[run.pk for run in left]).update(
        state=state, code=state, message=reason
    )
    for run in left:
        RunEvent.objects.create(
            run=run,
            from_state=Run.State.FINISHED,
            to_state=state,
            code=state,
            message=reason,
            attempt=run.attempt,
        )
        sealing.request(run=run.pk, kind="withdrawn", reason=reason)
    for cell_id in sorted({run.cell_id for run in left}):
        summaries.refresh(cell_id=cell_id)
    return len(left)


def _times_before(run: Run) -> int:
    """How often the first of these has already been measured again."""
    times, before = 0, run.again_of
    while before is not None:
        times, before = times + 1, before.again_of
    return times
