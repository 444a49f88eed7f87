"""The states of a run: the one table of transitions, and the one service that changes a state."""

from collections import Counter

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import dispatch
from runs.models import Campaign, Lease, Run, RunEvent
from runs.services import summaries
from runs.services.errors import ServiceError

S = Run.State

ENDINGS = {S.FAILED, S.ERRORED, S.CANCELLED, S.LOST}
TRANSITIONS: dict[str, set[str]] = {
    S.QUEUED: {S.CLAIMED, S.CANCELLED},
    S.CLAIMED: {S.PREPARING, S.QUEUED} | ENDINGS,
    S.PREPARING: {S.MEASURING} | ENDINGS,
    S.MEASURING: {S.COLLECTING} | ENDINGS,
    S.COLLECTING: {S.FINISHED} | ENDINGS,
    S.LOST: {S.CLAIMED},
    S.FAILED: {S.QUEUED},
    S.ERRORED: set(),
    S.CANCELLED: set(),
    S.FINISHED: set(),
}


@transaction.atomic
def transition(
    *,
    run_id: int,
    to: str,
    code: str,
    message: str = "",
    remedy: str = "",
    token: int | None = None,
    only_from: str | None = None,
) -> bool:
    """Change a run's state by compare-and-swap and leave an event; say whether it happened.

    `only_from` narrows the states that it may come from to one. With `token` only the holder of
    that lease may: a worker that was given up for lost, and wakes again, changes nothing any more.
    """
    if token is not None and not _holds(run_id, token):
        return False
    run = Run.objects.only("state", "attempt", "cell_id", "campaign_id", "server_id").get(pk=run_id)
    if to not in TRANSITIONS[run.state] or only_from not in {None, run.state}:
        return False
    fields = {"state": to, "code": code, "message": message, "remedy": remedy}
    if to == S.PREPARING:
        fields |= {"code": "", "message": "", "remedy": ""}
    changed = Run.objects.filter(pk=run_id, state=run.state).update(**fields, **_times(run, to))
    if not changed:
        return False
    record_event(
        run_id=run_id, code=code, message=message, attempt=run.attempt, from_to=(run.state, to)
    )
    _after(run, to)
    return True


def record_event(
    *, run_id: int, code: str, message: str, attempt: int, from_to: tuple[str, str] = ("", "")
) -> None:
    """Leave a line in the run's history."""
    RunEvent.objects.create(
        run_id=run_id,
        from_state=from_to[0],
        to_state=from_to[1],
        code=code,
        message=message,
        attempt=attempt,
    )


@transaction.atomic
def cancel(*, run: Run, by: object = None) -> Run:
    """Cancel a waiting run at once; ask the worker of an active one to stop it on its target.

    Raises ServiceError `run_has_ended`.
    """
    asked = Run.objects.filter(pk=run.pk).exclude(state__in=Run.ENDED)
    if not asked.update(cancel_requested_at=timezone.now()):
        raise ServiceError("run_has_ended", _("This run has ended already."))
    message = _("Cancelled by %(user)s.") % {"user": by or "BenchLab"}
    # An active run is cancelled by its worker, once its processes have ended on the target.
    waiting = transition(
        run_id=run.pk, to=S.CANCELLED, code="cancelled", message=message, only_from=S.QUEUED
    )
    if not waiting:
        record_event(run_id=run.pk, code="cancel_requested", message=message, attempt=run.attempt)
    run.refresh_from_db()
    return run


@transaction.atomic
def start_again(*, run_id: int, token: int, code: str, message: str, most: int) -> bool:
    """Fail an attempt for the target's sake, and queue the run anew unless `most` were made."""
    if not transition(run_id=run_id, to=S.FAILED, code=code, message=message, token=token):
        return False
    run = Run.objects.get(pk=run_id)
    if run.attempt >= most:
        return False
    if not transition(run_id=run_id, to=S.QUEUED, code="queued_again", message=message):
        return False
    Run.objects.filter(pk=run_id).update(attempt=run.attempt + 1, code="", message="", remedy="")
    refresh_campaign(campaign_id=run.campaign_id)
    return True


def refresh_campaign(*, campaign_id: int) -> None:
    """Derive a campaign's state from those of its runs. Call it in a transaction."""
    campaign = Campaign.objects.select_for_update().get(pk=campaign_id)
    states = Counter(Run.objects.filter(campaign_id=campaign_id).values_list("state", flat=True))
    campaign.state = campaign_state(states)
    campaign.save(update_fields=["state"])


def campaign_state(states: Counter[str]) -> str:
    """What the states of its runs make of a campaign."""
    total = sum(states.values())
    ended = sum(states[state] for state in Run.ENDED)
    if ended < total:
        untouched = states[S.QUEUED] == total
        return Campaign.State.QUEUED if untouched else Campaign.State.RUNNING
    if states[S.CANCELLED]:
        return Campaign.State.CANCELLED
    return Campaign.State.FINISHED if states[S.FINISHED] == total else Campaign.State.INCOMPLETE


def _holds(run_id: int, token: int) -> bool:
    lease = Lease.objects.select_for_update().filter(run_id=run_id, token=token)
    return lease.first() is not None


def _times(run: Run, to: str) -> dict[str, object]:
    now = timezone.now()
    if to == S.PREPARING and run.state == S.CLAIMED:
        return {"started_at": now, "finished_at": None}
    return {"finished_at": now} if to in Run.ENDED else {}


def _after(run: Run, to: str) -> None:
    if to in Run.ENDED or to in {S.LOST, S.QUEUED}:
        Lease.objects.filter(run_id=run.pk).update(run=None, holder="", heartbeat_at=None)
    if to in Run.ENDED:
        summaries.refresh(cell_id=run.cell_id)
    if to in Run.ENDED or to == S.CLAIMED:
        refresh_campaign(campaign_id=run.campaign_id)
    if run.server_id is not None and to not in Run.ACTIVE:
        dispatch.wake(run.server_id)
