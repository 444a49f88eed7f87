"""Further runs of cells that have been measured: the same plan, for the next repeat."""

import random
from collections.abc import Mapping

from django.db.models import Max

from runs import dispatch
from runs.models import Campaign, Run, RunEvent
from runs.services.runs import plans


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
