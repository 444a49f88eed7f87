"""Leases: which worker has which server, and who is given up for lost.

Times are those of the database's clock: the workers' own may differ.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Now

from runs.execution.watch import Order
from runs.models import Lease, Run, Server
from runs.services import runs


@dataclass(frozen=True)
class Claim:
    """A run that this worker now has. `token` proves it to every later write."""

    run_id: int
    server_id: int
    token: int
    taken_over: bool


def claim(*, server_id: int, holder: str) -> Claim | None:
    """Take the next waiting run of a server, if the server is free; lost runs go first.

    The lease row is locked with SKIP LOCKED: of two workers one claims, the other goes home.
    """
    try:
        return _claim(server_id, holder)
    except _TakenMeanwhile:
        return None


class _TakenMeanwhile(Exception):
    """The run was cancelled in the moment in which it was claimed."""


@transaction.atomic
def _claim(server_id: int, holder: str) -> Claim | None:
    lease = free_lease(server_id)
    run = _next_run(server_id) if lease else None
    if lease is None or run is None:
        return None
    lease.run, lease.token = run, lease.token + 1
    lease.holder = holder
    lease.save()
    Lease.objects.filter(pk=lease.pk).update(heartbeat_at=Now())
    taken_over = run.state == Run.State.LOST
    code = "taken_over" if taken_over else "claimed"
    claimed = runs.transition(
        run_id=run.pk, to=Run.State.CLAIMED, code=code, message=holder, token=lease.token
    )
    if not claimed:
        raise _TakenMeanwhile
    return Claim(run.pk, server_id, lease.token, taken_over)


def free_lease(server_id: int) -> Lease | None:
    """Lock the lease of a server that is ready and free; None when it is not. In a transaction."""
    return (
        Lease.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(server_id=server_id, run=None, server__state=Server.State.READY)
        .first()
    )


def pulse(*, run_id: int, token: int) -> Order:
    """Show a sign of life and take the order that waits for this run's worker."""
    alive = Lease.objects.filter(run_id=run_id, token=token).update(heartbeat_at=Now())
    if not alive:
        return "detach"
    asked = Run.objects.filter(pk=run_id).exclude(cancel_requested_at=None).exists()
    return "cancel" if asked else "go_on"


def give_up_the_silent() -> list[int]:
    """Declare runs lost whose worker shows no sign of life; return their ids."""
    limit = Now() - timedelta(seconds=settings.HEARTBEAT_TIMEOUT_SECONDS)
    silent = Lease.objects.filter(run__isnull=False, heartbeat_at__lt=limit)
    return [
        run_id
        for run_id, token, holder in silent.values_list("run_id", "token", "holder")
        if runs.transition(
            run_id=run_id,
            to=Run.State.LOST,
            code="no_heartbeat",
            message=f"No sign of life from {holder}.",
            token=token,
        )
    ]


def waiting_runs() -> QuerySet[Run]:
    """Runs that may begin now, if their server is free and ready.

    A lost run has begun already: it goes on, whether its campaign pauses or its server is being
    maintained.
    """
    is_over = Q(server__maintenance_since=None) | Q(server__maintenance_until__lt=Now())
    queued = Q(state=Run.State.QUEUED, campaign__paused_at=None) & is_over
    return Run.objects.filter(queued | Q(state=Run.State.LOST), server__isnull=False)


def _next_run(server_id: int) -> Run | None:
    """Lost runs first, then by their campaigns' priority, then the oldest."""
    lost_first = Case(
        When(state=Run.State.LOST, then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    waiting = waiting_runs().filter(server_id=server_id)
    return waiting.order_by(lost_first, "-campaign__priority", "pk").first()
