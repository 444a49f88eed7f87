"""What other programs take of a server while no run has it: asked now and then, and before a run
of a campaign that waits until the machine is free.
"""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from runs.analysis.certificate import FOREIGN_DOUBTFUL
from runs.execution.errors import TargetProblem
from runs.execution.machine import busy
from runs.execution.machine.busy import Busy
from runs.models import HourlyLoad, Run, Server
from runs.queue.services import leases
from runs.servers.services import logins

PAUSE = timedelta(minutes=10)
# Where runs wait until it is free.
PAUSE_WHILE_AWAITED = timedelta(minutes=1)

logger = logging.getLogger(__name__)


def due() -> QuerySet[Server]:
    """Servers that have been inspected, have no run, and were not asked for a while.

    Nor is one asked that is under maintenance, or may have the load of a lost run.
    """
    waiting = Run.objects.filter(
        server=OuterRef("pk"), state=Run.State.QUEUED, campaign__waits_for_quiet=True
    )
    awaited = Q(Exists(waiting)) & Q(load_at__lt=Now() - PAUSE_WHILE_AWAITED)
    is_time = Q(load_at=None) | Q(load_at__lt=Now() - PAUSE) | awaited
    ready = Server.objects.filter(
        is_time, state=Server.State.READY, checked_at__isnull=False
    )
    busy_servers = Server.objects.filter(lease__run__isnull=False, pk=OuterRef("pk"))
    idle = (
        ready.exclude(base_dir="")
        .exclude(Exists(busy_servers))
        .filter(Server.not_maintained())
    )
    lost = Run.objects.filter(state=Run.State.LOST, server=OuterRef("pk"))
    return idle.exclude(Exists(lost))


def look(*, server_id: int) -> None:
    """Ask a server that is due. Raises nothing.

    The lease's row stays locked for that second: what was measured would be our own load.
    """
    # Whoever writes the time first does it.
    if not due().filter(pk=server_id).update(load_at=Now()):
        return
    with transaction.atomic():
        if leases.idle_lease(server_id) is None:
            return
        server = Server.objects.select_related("ssh_key").get(pk=server_id)
        try:
            keep(server=server, found=logins.ask(_read(logins.way_to(server)), server))
        except TargetProblem as problem:
            logger.info("what %s does is not known: %s", server, problem)
            unknown = Server.objects.filter(pk=server_id)
            unknown.update(load_share=None, load_programs=[], quiet_since=None)


def keep(*, server: Server, found: Busy) -> None:
    """Store it, and add it to what its hour was like. Hold the server's lease meanwhile.

    A server is free since the first of the looks that found it so in a row.
    """
    is_quiet = found.share <= FOREIGN_DOUBTFUL
    since = (server.quiet_since or timezone.now()) if is_quiet else None
    Server.objects.filter(pk=server.pk).update(
        load_share=found.share, load_programs=found.programs, quiet_since=since
    )
    _keep_hour(server, found.share)


def _keep_hour(server: Server, share: float) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    load, is_new = HourlyLoad.objects.get_or_create(
        server=server,
        hour=hour,
        defaults={"looks": 1, "share": share, "highest": share},
    )
    if is_new:
        server.hourly_loads.filter(hour__lt=hour - HourlyLoad.KEPT).delete()
        return
    load.share = (load.share * load.looks + share) / (load.looks + 1)
    load.highest = max(load.highest, share)
    load.looks += 1
    load.save()


async def _read(login_way: logins.Way) -> Busy:
    async with await logins.connect_along(login_way) as host:
        return await busy.read(host)
