"""What happens without anybody asking: lost runs are noticed, waiting servers get a worker."""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from runs import dispatch
from runs.models import PreparedCluster, Run, Schedule, Server
from runs.selectors.runs.runs import taking_part
from runs.services.errors import ServiceError
from runs.services.runs import clusters, leases, sweeping
from runs.services.schedules import schedules
from runs.services.schedules import servers as schedule_servers
from runs.services.servers import servers

# Between two looks at a server that is away; and at one for which only a schedule waits.
PAUSE = timedelta(seconds=30)
PAUSE_WITHOUT_WORK = timedelta(minutes=5)
# Between two looks at a server on which a schedule awaits new installations.
PAUSE_WHEN_READY = timedelta(minutes=15)

logger = logging.getLogger(__name__)


def supervise() -> None:
    """Give up silent workers' runs, fire schedules, and wake a worker where there is work."""
    leases.give_up_the_silent()
    schedules.fire_due()
    for server_id in sorted(_with_work()):
        dispatch.wake(server_id)


def look_again(*, server_id: int) -> None:
    """Inspect a server that could not be reached, or on which installations are awaited, in time.

    Of all who ask one looks, and the others go on: a host that does not answer takes its time.
    Raises nothing.
    """
    if _begin_to_look(_away_for(PAUSE).filter(pk=server_id)):
        _inspect(server_id)
    elif _begin_to_look(_awaiting_installations().filter(pk=server_id)):
        _inspect_while_idle(server_id)


@transaction.atomic
def _inspect_while_idle(server_id: int) -> None:
    """The lease's row stays locked meanwhile: nothing is measured beside an inspection."""
    if leases.idle_lease(server_id) is not None:
        _inspect(server_id)


def _inspect(server_id: int) -> None:
    try:
        servers.inspect(server=Server.objects.get(pk=server_id))
    except ServiceError as error:
        logger.warning("server %s cannot be inspected: %s", server_id, error)


def _begin_to_look(due: QuerySet[Server]) -> bool:
    """Whether the look is ours: whoever writes the time down first has it."""
    return bool(due.update(checked_at=Now()))


def _away_for(pause: timedelta) -> QuerySet[Server]:
    """Servers that could not be reached when they were looked at, so long ago or longer."""
    away = Server.objects.filter(state=Server.State.UNREACHABLE).exclude(host_key="")
    return away.filter(checked_at__lt=Now() - pause)


def _awaiting_installations() -> QuerySet[Server]:
    """Idle servers that are ready, and have to be looked at for new installations now."""
    awaiting = Schedule.objects.filter(enabled=True, kind=Schedule.Kind.INSTALLATION)
    # Whoever maintains a machine may be in the midst of installing something.
    is_over = Q(maintenance_since=None) | Q(maintenance_until__lt=Now())
    long_ago = Now() - PAUSE_WHEN_READY
    ready = Server.objects.filter(is_over, state=Server.State.READY, checked_at__lt=long_ago)
    # By a query of its own: what is updated by it must not be joined.
    busy = ready.filter(lease__run__isnull=False).values("pk")
    measured = schedule_servers.measured_by(awaiting)
    return ready.filter(pk__in=measured - leases.maybe_loaded()).exclude(pk__in=busy)


def _with_work() -> set[int]:
    busy = Run.objects.filter(state__in=Run.ACTIVE, server__isnull=False)
    waiting = leases.waiting_runs()
    left = PreparedCluster.objects.filter(removed_at=None, campaign__state__in=clusters.ENDED)
    ids = set(waiting.values_list("server_id", flat=True).distinct())
    ids |= set(left.values_list("server_id", flat=True).distinct())
    to_sweep = sweeping.due().exclude(state=Server.State.REFUSED).exclude(host_key="")
    ids |= set(to_sweep.values_list("pk", flat=True))
    ids |= _generators_away(waiting)
    ids |= _needed_by_schedules()
    return ids - set(busy.values_list("server_id", flat=True))


def _needed_by_schedules() -> set[int]:
    """Servers to be looked at now because a schedule measures on them, or loads from them."""
    active = Schedule.objects.filter(enabled=True)
    needed = schedule_servers.measured_by(active) | schedule_servers.loading_for(active)
    away = _away_for(PAUSE_WITHOUT_WORK).filter(pk__in=needed)
    return {server.pk for server in away | _awaiting_installations()}


def _generators_away(waiting: QuerySet[Run]) -> set[int]:
    """Servers out of reach from which the load of waiting runs is to come: nobody else looks."""
    away = Server.objects.filter(state=Server.State.UNREACHABLE).exclude(host_key="")
    return {
        server_id
        for server_id in away.values_list("pk", flat=True)
        if waiting.filter(taking_part(server_id)).exists()
    }
