"""The states of a run: the table of transitions, the service that applies it, and its counts."""

from collections import Counter, defaultdict
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.services import audit
from runs.campaigns.services import repeats
from runs.cells.services import summaries
from runs.histories.services import webhooks
from runs.models import Campaign, Lease, Run, RunEvent, Server
from runs.models.campaigns import Origin
from runs.queue.selectors.runs import machines_of
from runs.seals.services import seals
from runs.shared import database, queries
from runs.shared.errors import ServiceError
from runs.wording import Wording, gettext_noop

S = Run.State


LEFT_THERE = gettext_noop(
    "The server is out of reach: processes and files of the run may be left there."
)
ENDINGS = {S.FAILED, S.ERRORED, S.CANCELLED, S.LOST}
TRANSITIONS: dict[str, set[str]] = {
    S.QUEUED: {S.CLAIMED, S.CANCELLED},
    # Straight to collecting: the previous worker had stored the result, but not yet cleaned up.
    S.CLAIMED: {S.PREPARING, S.COLLECTING, S.QUEUED} | ENDINGS,
    S.PREPARING: {S.MEASURING} | ENDINGS,
    S.MEASURING: {S.COLLECTING} | ENDINGS,
    S.COLLECTING: {S.FINISHED} | ENDINGS,
    S.LOST: {S.CLAIMED, S.CANCELLED},
    S.FAILED: {S.QUEUED},
    S.ERRORED: {S.QUEUED},
    S.CANCELLED: {S.QUEUED},
    S.FINISHED: {S.WITHDRAWN},
    S.WITHDRAWN: {S.FINISHED},
}


@transaction.atomic
def transition(
    *,
    run_id: int,
    to: str,
    code: str,
    message: str = "",
    remedy: str = "",
    wording: Wording | None = None,
    token: int | None = None,
    only_from: str | None = None,
    is_passing: bool = False,
    figures: str | None = None,
) -> bool:
    """Change a run's state by compare-and-swap and add an event; return whether it happened.

    `only_from` requires one particular state before. With `token`, only the holder of that lease
    may change it: a worker that was given up as lost and wakes up later changes nothing. A passing
    state is left again in the same transaction: it does not end the run's campaign. `figures` is
    the digest of those that the engine found, for the seal of a run that finishes.
    """
    if token is not None and not holds(run_id, token):
        return False
    run = Run.objects.defer("plan").get(pk=run_id)
    if to not in TRANSITIONS[run.state] or only_from not in {None, run.state}:
        return False
    fields: dict[str, Any] = {
        "state": to,
        "code": code,
        "message": message,
        "remedy": remedy,
    }
    fields["wording"] = wording or {}
    if to == S.PREPARING:
        fields |= {"code": "", "message": "", "remedy": ""}
    if not Run.objects.filter(pk=run_id, state=run.state).update(
        **fields, **_times(run, to)
    ):
        return False
    event_of(run, code, message, to, wording).save()
    _follow(run, to, is_passing=is_passing, figures=figures)
    return True


# Each report of a worker asks it: as a query set it took 1.3 ms of the worker's processor, 18 times
# a run, and so takes 0.1.
_LOCK_LEASE = """
SELECT run_id, set_config('idle_in_transaction_session_timeout', %s, true) FROM runs_lease
WHERE server_id = (SELECT server_id FROM runs_run WHERE id = %s) AND token = %s
FOR UPDATE
"""


def holds(run_id: int, token: int) -> bool:
    """Whether the lease `token` still has the run; locks the lease. Call it in a transaction.

    Of runs in turn, which end at the same time, one hands the lease over to the next meanwhile: who
    leads is read after it was locked.
    """
    limit = f"{database.IDLE_SECONDS:.0f}s"
    locked = queries.rows(_LOCK_LEASE, [limit, run_id, token])
    holder = locked[0][0] if locked else None
    if holder is None:
        return False
    return holder == run_id or Run.objects.filter(pk=run_id, led_by=holder).exists()


def leading(run_id: int) -> Subquery:
    """The run that has the lease: another one where it is measured in turn with that."""
    runs = Run.objects.filter(pk=run_id).order_by()
    return Subquery(runs.values_list(Coalesce("led_by", "pk"))[:1])


@transaction.atomic
def cancel(*, run: Run, by: object = None) -> Run:
    """Cancel a waiting run at once; ask the worker of an active one to stop it on its target.

    Raises ServiceError `run_has_ended`.
    """
    if not cancel_all(runs=Run.objects.filter(pk=run.pk), by=by):
        raise ServiceError("run_has_ended", _("This run has ended already."))
    refresh_campaign(campaign_id=run.campaign_id)
    record_act("run_cancelled", run)
    return run


def record_act(action: str, run: Run, *, reason: str = "") -> None:
    """Read a run again, and keep in the audit trail what somebody did to it."""
    before = run.state
    run.refresh_from_db()
    after = {"state": run.state, **({"reason": reason} if reason else {})}
    project = audit.find_project_id(run.campaign.project_id)
    audit.record(action, run, project=project, before={"state": before}, after=after)


def cancel_all(*, runs: QuerySet[Run], by: object = None) -> int:
    """Cancel the unfinished runs among these of one campaign; return how many. In a transaction.

    A waiting run is cancelled here. A run that is or was on its target is cancelled by a worker,
    after its processes have ended there. If the server is out of reach, nobody could ever do that,
    so it is cancelled here too: the event says what may be left, and the server is cleaned up
    later.
    """
    # Stored texts are in English, whoever asks; pages translate what they can.
    message = f"Cancelled by {by or 'BenchLab'}."
    # Always in the same order, so that two cancels do not deadlock.
    open_runs = list(
        runs.exclude(state__in=Run.ENDED)
        .select_for_update(of=("self",))
        .order_by("pk")
        .defer("plan")
    )
    now = timezone.now()
    at_once = [run for run in open_runs if _can_be_cancelled_here(run)]
    cancelled = {run.pk for run in at_once}
    requested = [run for run in open_runs if run.pk not in cancelled]
    Run.objects.filter(pk__in=[run.pk for run in open_runs]).update(
        cancel_requested_at=now
    )
    Run.objects.filter(pk__in=cancelled).update(
        state=S.CANCELLED,
        code="cancelled",
        message=message,
        remedy="",
        wording={},
        finished_at=now,
    )
    for run in at_once:
        if run.state == S.LOST:
            sweep_later(run)
    lost_message = f"{message} {LEFT_THERE}"
    RunEvent.objects.bulk_create(
        [
            event_of(
                run,
                "cancelled",
                lost_message if run.state == S.LOST else message,
                S.CANCELLED,
            )
            for run in at_once
        ]
        + [event_of(run, "cancel_requested", message) for run in requested]
    )
    return len(open_runs)


def _can_be_cancelled_here(run: Run) -> bool:
    if run.state == S.QUEUED:
        return True
    if run.state != S.LOST:
        return False
    away = Server.objects.filter(pk__in=machines_of(run)).exclude(
        state=Server.State.READY
    )
    return away.exists()


def sweep_later(run: Run) -> None:
    """Each machine of a run may have leftovers: clean it up as soon as it is free."""
    machines = Server.objects.filter(pk__in=machines_of(run))
    machines.update(needs_sweep=True, sweep_after=Now())


def event_of(
    run: Run, code: str, message: str, to: str = "", wording: Wording | None = None
) -> RunEvent:
    """A line of the run's history that is not stored yet; `to` is a state that it enters."""
    return RunEvent(
        run=run,
        from_state=run.state if to else "",
        to_state=to,
        code=code,
        message=message,
        wording=wording or {},
        attempt=run.attempt,
    )


@transaction.atomic
def cancel_where_asked(
    *, run_id: int, token: int, is_out_of_reach: bool = False
) -> bool:
    """Cancel a run that its worker lets go, if somebody asked for that; return whether it was.

    The run stays locked until the caller's transaction ends, so nobody asks in between. Leftovers
    on its machines are cleaned up when they are free.
    """
    if not holds(run_id, token):
        return False
    run = Run.objects.select_for_update(of=("self",)).defer("plan").get(pk=run_id)
    if run.cancel_requested_at is None:
        return False
    return _cancel_as_asked(run, token=token, is_out_of_reach=is_out_of_reach)


def _cancel_as_asked(run: Run, *, token: int | None, is_out_of_reach: bool) -> bool:
    request = run.events.filter(code="cancel_requested").last()
    messages = [
        request.message if request else "",
        LEFT_THERE if is_out_of_reach else "",
    ]
    sweep_later(run)
    return transition(
        run_id=run.pk,
        to=S.CANCELLED,
        code="cancelled",
        message=" ".join(filter(None, messages)),
        token=token,
        only_from=run.state,
    )


def cancel_the_unreachable() -> None:
    """Cancel the lost runs that somebody asked to cancel and that no worker can reach any more.

    As `cancel_all` does at once where the server is out of reach already.
    """
    asked = Run.objects.filter(state=S.LOST, cancel_requested_at__isnull=False)
    for run_id in list(asked.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            locked = asked.select_for_update(of=("self",), skip_locked=True)
            run = locked.defer("plan").filter(pk=run_id).first()
            if run is not None and _can_be_cancelled_here(run):
                _cancel_as_asked(run, token=None, is_out_of_reach=True)


def refresh_campaign(*, campaign_id: int) -> None:
    """Derive a campaign's state from its runs. Call it in a transaction.

    When all have ended, runs that are not valid are measured again, and doubtful ones left out if
    the campaign says so; then cells that need further repeats get them, and the campaign continues.
    """
    campaign = Campaign.objects.select_for_update().get(pk=campaign_id)
    # Most ends of runs are not the last one: which states there are is asked of the index, in as
    # many steps however many runs there are. Only at the end are they counted.
    present = {state for (state,) in queries.rows(PRESENT, [[*S.values], campaign_id])}
    states = Counter(present)
    if present <= set(Run.ENDED):
        counted = Run.objects.filter(campaign_id=campaign_id).order_by().values("state")
        states = Counter(dict(counted.values_list("state", Count("pk"))))
        again = repeats.add_remeasured(campaign=campaign)
        number_left_out = repeats.leave_out(campaign=campaign)
        states.update({S.WITHDRAWN: number_left_out, S.FINISHED: -number_left_out})
        states[S.QUEUED] += again or repeats.add_round(campaign=campaign)
    is_cancelled = campaign.cancelled_at is not None
    before, campaign.state = (
        campaign.state,
        campaign_state(states, is_cancelled=is_cancelled),
    )
    if campaign.state != before:
        campaign.save(update_fields=["state"])
    if before in Campaign.LIVE and campaign.state not in Campaign.LIVE:
        webhooks.finished(campaign=campaign)


PRESENT = """
SELECT state FROM unnest(%s::text[]) AS state
WHERE EXISTS (
    SELECT FROM runs_run WHERE campaign_id = %s AND runs_run.state = state.state)
"""


def campaign_state(states: Counter[str], *, is_cancelled: bool) -> str:
    """The campaign's state that follows from the states of its runs.

    While some are open, which states there are is enough; then how many runs each has decides.

    A run that was cancelled alone is a repeat that one cell does not have: the campaign is
    cancelled where somebody cancelled all of it, or each of its runs.
    """
    total = sum(states.values())
    ended = sum(states[state] for state in Run.ENDED)
    if ended < total:
        untouched = states[S.QUEUED] == total
        return Campaign.State.QUEUED if untouched else Campaign.State.RUNNING
    if states[S.CANCELLED] and (is_cancelled or states[S.CANCELLED] == total):
        return Campaign.State.CANCELLED
    is_complete = (
        states[S.FINISHED] + states[S.WITHDRAWN] + states[S.CANCELLED] == total
    )
    return Campaign.State.FINISHED if is_complete else Campaign.State.INCOMPLETE


def _times(run: Run, to: str) -> dict[str, object]:
    if run.has_ended and to in Run.ENDED:
        return {}
    now = timezone.now()
    if to == S.PREPARING and run.started_at is None:
        return {"started_at": now, "finished_at": None}
    return {"finished_at": now} if to in Run.ENDED else {}


def _follow(run: Run, to: str, *, is_passing: bool, figures: str | None) -> None:
    if to == S.PREPARING and run.started_at is None:
        # The load shown by the previous attempt would be mistaken for that of this one.
        run.series.all().delete()
    if to in Run.ENDED or to in {S.LOST, S.QUEUED}:
        _let_go(run)
    if to in Run.ENDED:
        summaries.refresh(cell_id=run.cell_id)
    if run.has_ended and to in Run.ENDED:
        return
    if to == S.FINISHED:
        seals.request(run=run.pk, figures=figures)
        is_invalid = (
            run.validity == Run.Validity.INVALID and run.origin == Origin.EXECUTED
        )
        if is_invalid and settings.LEAVE_OUT_INVALID:
            repeats.leave_out_invalid(run)
    if to in Run.ENDED and not is_passing:
        refresh_campaign(campaign_id=run.campaign_id)
    if to == S.CLAIMED:
        # What `campaign_state` says of any with such a run; a claim does not count the others.
        running = Campaign.State.RUNNING
        Campaign.objects.filter(pk=run.campaign_id).exclude(state=running).update(
            state=running
        )
    if run.server_id is not None and to not in Run.ACTIVE:
        celery_messages.wake(run.server_id)


def _let_go(run: Run) -> None:
    """Its servers are free for the next run, or go on to the runs that are in turn with it."""
    remaining = Run.objects.filter(led_by=run.pk, state__in=Run.ACTIVE).order_by("pk")
    next_run = remaining.values_list("pk", flat=True).first()
    if next_run is None:
        Lease.objects.filter(run_id=run.pk).update(
            run=None, holder="", heartbeat_at=None
        )
        return
    Run.objects.filter(pk=next_run).update(led_by=None)
    remaining.update(led_by=next_run)
    Lease.objects.filter(run_id=run.pk).update(run=next_run)


# What another one has taken meanwhile is not deleted here, and so not added up twice.
ADD_UP = """
WITH gone AS (
    DELETE FROM runs_runcount
    WHERE campaign IN (SELECT campaign FROM runs_runcount WHERE NOT is_sum)
    RETURNING campaign, origin, state, number
)
INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
SELECT campaign, origin, state, sum(number), true FROM gone
GROUP BY campaign, origin, state HAVING sum(number) <> 0
RETURNING campaign, number
"""
# One statement has one snapshot: runs that are stored meanwhile are in neither part.
DRIFT = """
SELECT campaign, origin, state, sum(number) AS number
FROM (SELECT coalesce(campaign_id, 0) AS campaign, coalesce(origin, '') AS origin, state,
             count(*) AS number FROM runs_run
      GROUP BY GROUPING SETS ((campaign_id, state), (origin, state))
      UNION ALL SELECT campaign, origin, state, -number FROM runs_runcount) AS found
GROUP BY campaign, origin, state HAVING sum(number) <> 0
"""
# Rows as the triggers add them: a difference may be added while others store runs.
RECOUNT = f"""
INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
SELECT campaign, origin, state, number, false FROM ({DRIFT}) AS missing
"""  # noqa: S608 -- made of constants only


@transaction.atomic
def add_up_counts() -> dict[int, int]:
    """Let each campaign with new rows have one for each state; how many runs each has by now.

    Locks nothing that uploads need.
    """
    number_of: dict[int, int] = defaultdict(int)
    for campaign, number in queries.rows(ADD_UP):
        number_of[campaign] += number
    number_of.pop(0, None)  # which stands for all
    return number_of


def drift_of_counts() -> int:
    """How many stored numbers differ from the rows. Reads all runs, and changes nothing."""
    return int(queries.rows(f"SELECT count(*) FROM ({DRIFT}) AS missing")[0][0])  # noqa: S608


@transaction.atomic
def recount() -> int:
    """Correct the stored numbers that differ from the rows; return how many. Reads all runs."""
    with connection.cursor() as cursor:
        cursor.execute(RECOUNT)
        return int(cursor.rowcount)
