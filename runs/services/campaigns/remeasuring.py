"""Measures doubtful runs again, as often as their campaign asks for.

Only if another run may avoid the doubt: foreign load, a drift, a checkpoint. The doubtful run
stays, counts, and is marked: dropping results that one does not like would bias the summary. It is
left out only if the campaign stated so beforehand.
"""

import logging
import random
from collections.abc import Mapping

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from runs import dispatch
from runs.models import Campaign, Run, RunEvent
from runs.services.campaigns import summaries
from runs.services.errors import ServiceError
from runs.services.runs import plans
from runs.services.seals import sealing
from runs.wording import gettext_noop


def queue(*, campaign: Campaign, like: Mapping[Run, str], code: str) -> list[Run]:
    """Queue a copy of each of these runs, with a reason, shuffled by the campaign's seed.

    Call it in a transaction that has locked the campaign. Raises `plan_of_other_version`.
    """
    last = campaign.runs.aggregate(Max("position"))["position__max"] or 0
    repeats = dict(
        campaign.runs.filter(cell__in={run.cell_id for run in like})
        .order_by()
        .values_list("cell")
        .annotate(Max("repeat"))
    )
    order = sorted(like, key=lambda run: run.pk)
    random.Random(f"{campaign.seed}/{last}").shuffle(order)  # noqa: S311 -- repeatable on purpose
    queued = []
    for place, run in enumerate(order, start=1):
        repeats[run.cell_id] += 1
        queued.append(_another(run, repeat=repeats[run.cell_id], position=last + place))
    Run.objects.bulk_create(queued)
    for made, run in zip(queued, order, strict=True):
        made.plan = plans.copied(of=run, to=made)
    Run.objects.bulk_update(queued, ["plan"], batch_size=500)
    RunEvent.objects.bulk_create(
        RunEvent(run=made, to_state=Run.State.QUEUED, code=code, message=like[run])
        for made, run in zip(queued, order, strict=True)
    )
    for server_id in {run.server_id for run in queued if run.server_id is not None}:
        dispatch.wake(server_id)
    return queued


def _another(run: Run, *, repeat: int, position: int) -> Run:
    return Run(
        campaign_id=run.campaign_id,
        cell_id=run.cell_id,
        repeat=repeat,
        position=position,
        server_id=run.server_id,
        hardware_id=run.hardware_id,
        environment_id=run.environment_id,
        again_of=run,
    )


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
            return len(queue(campaign=campaign, like=wanted, code=CODE))
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
