"""What happens without anybody asking: lost runs are noticed, waiting servers get a worker."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from runs import dispatch
from runs.models import PreparedCluster, Run, Server
from runs.services import clusters, leases, schedules, servers, sweeping

SECONDS_BETWEEN_INSPECTIONS = 30


def supervise() -> None:
    """Give up silent workers' runs, fire schedules, and wake a worker where there is work."""
    leases.give_up_the_silent()
    schedules.fire_due()
    for server_id in sorted(_with_work()):
        dispatch.wake(server_id)


def look_again(*, server_id: int) -> None:
    """See whether a server that could not be reached answers again, if runs wait for it."""
    limit = timezone.now() - timedelta(seconds=SECONDS_BETWEEN_INSPECTIONS)
    waiting = Server.objects.filter(
        pk=server_id, state=Server.State.UNREACHABLE, checked_at__lt=limit
    ).exclude(host_key="")
    server = waiting.first()
    if server is not None:
        servers.inspect(server=server)


def _with_work() -> set[int]:
    busy = Run.objects.filter(state__in=Run.ACTIVE, server__isnull=False)
    waiting = leases.waiting_runs()
    left = PreparedCluster.objects.filter(removed_at=None, campaign__state__in=clusters.ENDED)
    ids = set(waiting.values_list("server_id", flat=True).distinct())
    ids |= set(left.values_list("server_id", flat=True).distinct())
    to_sweep = sweeping.due().exclude(state=Server.State.REFUSED).exclude(host_key="")
    ids |= set(to_sweep.values_list("pk", flat=True))
    ids |= _generators_away(waiting)
    return ids - set(busy.values_list("server_id", flat=True))


def _generators_away(waiting: QuerySet[Run]) -> set[int]:
    """Servers out of reach from which the load of waiting runs is to come: nobody else looks."""
    away = Server.objects.filter(state=Server.State.UNREACHABLE).exclude(host_key="")
    return {
        server_id
        for server_id in away.values_list("pk", flat=True)
        if waiting.filter(plan__generators__contains=[{"server_id": server_id}]).exists()
    }
