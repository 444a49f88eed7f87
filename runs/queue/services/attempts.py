"""Further attempts of a run: automatic retries, and those that a person asks for.

A run is retried by itself if its target restarted under it, or if it has lost too many workers:
`start_again`, at most as often as its campaign says. Whatever else ends a run needs a person, who
asks for `retry`.
"""

from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.models import Measurement, Run, RunEvent
from runs.queue.services import transitions
from runs.queue.services.leases import Claim
from runs.shared.errors import ServiceError
from runs.wording import Wording

S = Run.State

# A worker that is lost costs no attempt: another one goes on with it, up to this many times.
MOST_TAKEOVERS = 20
# In the history of a run: an automatic attempt.
BEGUN_AGAIN = "begun_again"
# What a run that waits for its next attempt no longer shows.
_AS_NEW: dict[str, Any] = {
    **dict.fromkeys(("code", "message", "remedy"), ""),
    "wording": {},
    **dict.fromkeys(("started_at", "finished_at", "speed")),
}


@transaction.atomic
def start_again(
    *,
    run_id: int,
    token: int,
    code: str,
    message: str,
    remedy: str = "",
    wording: Wording | None = None,
) -> bool:
    """Fail an attempt because of the target, and queue the run again; return whether it was.

    A run whose cancel was asked for is cancelled instead. It is not queued again if as many
    attempts as its campaign allows were started automatically: the first one, and those that this
    function queued.
    """
    if transitions.cancel_where_asked(run_id=run_id, token=token):
        return False
    run = Run.objects.select_related("campaign").defer("plan").get(pk=run_id)
    again = 1 + run.events.filter(code=BEGUN_AGAIN).count() < run.campaign.most_attempts
    if not transitions.transition(
        run_id=run_id,
        to=S.FAILED,
        code=code,
        message=message,
        remedy=remedy,
        wording=wording,
        token=token,
        is_passing=again,
    ):
        return False
    if not again or not transitions.transition(
        run_id=run_id, to=S.QUEUED, code=BEGUN_AGAIN, message=message, wording=wording
    ):
        return False
    Measurement.objects.filter(run_id=run_id).delete()
    Run.objects.filter(pk=run_id).update(attempt=run.attempt + 1, **_AS_NEW)
    transitions.refresh_campaign(campaign_id=run.campaign_id)
    return True


def has_lost_too_many_workers(run: Run, claim: Claim) -> bool:
    """Whether an attempt loses one worker after the other; if so, it is given up and retried.

    The attempt itself may be what ends them. The server is cleaned up before the next attempt.
    """
    takeovers = run.events.filter(code="taken_over", attempt=run.attempt).count()
    if not claim.taken_over or takeovers <= MOST_TAKEOVERS:
        return False
    transitions.sweep_later(run)
    start_again(
        run_id=run.pk,
        token=claim.token,
        code="lost_for_good",
        message=_("This attempt has lost %(number)d workers.") % {"number": takeovers},
    )
    return True


@transaction.atomic
def retry(*, run: Run, by: object = None) -> Run:
    """Queue a run that did not finish again, as its next attempt. Raises `run_not_failed`."""
    if not retry_all(runs=Run.objects.filter(pk=run.pk), by=by):
        message = _(
            "Only a run that BenchLab executed and that did not finish can be queued again."
        )
        remedy = _("Wait for its end, or queue a new campaign for another kind of run.")
        raise ServiceError("run_not_failed", message, remedy=remedy)
    transitions.refresh_campaign(campaign_id=run.campaign_id)
    transitions.record_act("run_queued_again", run)
    return run


def retry_all(*, runs: QuerySet[Run], by: object = None) -> int:
    """Queue those of one campaign's runs again that ended without success; return how many.

    In a transaction. Their new attempt starts from nothing: a worker that takes it over must not
    use the leftovers of the previous attempt as its result.
    """
    message = f"Queued again by {by or 'BenchLab'}."
    ended = list(
        runs.filter(Run.RETRIABLE)
        .select_for_update(of=("self",))
        .order_by("pk")
        .defer("plan")
    )
    RunEvent.objects.bulk_create(
        transitions.event_of(run, "queued_again", message, S.QUEUED) for run in ended
    )
    # Runs kept after an error of BenchLab for a person to look at need not be kept any more.
    for run in Run.objects.filter(pk__in=[run.pk for run in ended], state=S.ERRORED):
        transitions.sweep_later(run)
    Measurement.objects.filter(run__in=ended).delete()
    Run.objects.filter(pk__in=[run.pk for run in ended]).update(
        state=S.QUEUED, attempt=F("attempt") + 1, cancel_requested_at=None, **_AS_NEW
    )
    for server_id in {run.server_id for run in ended if run.server_id is not None}:
        celery_messages.wake(server_id)
    return len(ended)
