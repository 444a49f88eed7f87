"""Prepared clusters: removed from their server after their campaign has ended."""

import logging

from asgiref.sync import async_to_sync, sync_to_async
from cryptography.fernet import InvalidToken
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from runs.execution import leftovers
from runs.execution.base_dir import BaseDir
from runs.execution.errors import CommandTimeout, ConnectionLost, TargetProblem
from runs.execution.ssh import Host
from runs.models import Campaign, PreparedCluster, Server
from runs.services.access import instances
from runs.services.runs import leases
from runs.services.servers import logins as ways
from runs.services.servers import servers

logger = logging.getLogger(__name__)

# No longer ours: another try would not help.
IN_VAIN = ("not_ours", "leads_out")
ENDED = (Campaign.State.FINISHED, Campaign.State.INCOMPLETE, Campaign.State.CANCELLED)


def of_ended_campaigns(server_id: int) -> list[PreparedCluster]:
    """Clusters on a server that nobody needs any more."""
    needless = PreparedCluster.objects.filter(removed_at=None, campaign__state__in=ENDED)
    return list(needless.filter(server_id=server_id))


def remove_needless(*, server_id: int) -> None:
    """Remove what ended campaigns left, unless a run uses the server. Raises nothing.

    The lease's row stays locked for that time: a run that is being measured must not share its disk
    with a removal. Nor may a run that has lost its worker: its load goes on.
    """
    if not of_ended_campaigns(server_id):
        return
    with transaction.atomic():
        if leases.idle_lease(server_id) is None:
            return
        server = Server.objects.select_related("ssh_key").get(pk=server_id)
        needless = of_ended_campaigns(server_id)
        try:
            is_done = async_to_sync(_remove)(server, needless)
        except TargetProblem as problem:
            servers.record_problem(server=server, problem=problem)
            return
        except InvalidToken:
            logger.exception("the private key for %s cannot be read", server)
            return
        ids = [cluster.pk for cluster in needless]
        PreparedCluster.objects.filter(pk__in=ids).update(removed_at=timezone.now())
        if not is_done:
            # A later clean-up ends and removes the rest; it tries again and reports it.
            Server.objects.filter(pk=server_id).update(needs_sweep=True, sweep_after=Now())


async def _remove(server: Server, needless: list[PreparedCluster]) -> bool:
    """End what runs in each cluster and remove it; return whether all is done."""
    way, instance = await sync_to_async(_secrets)(server)
    base = BaseDir(server.base_dir, instance)
    host = await ways.connect_along(way)
    async with host:
        return all([await _is_done(host, base, cluster, server) for cluster in needless])


async def _is_done(host: Host, base: BaseDir, cluster: PreparedCluster, server: Server) -> bool:
    """Remove it; return whether no further try is needed."""
    try:
        await leftovers.remove(host, base, base.below(cluster.directory))
    except (ConnectionLost, CommandTimeout):
        raise
    except ValueError:
        logger.warning("%s on %s is below another base directory", cluster.directory, server)
    except TargetProblem as problem:
        logger.warning("%s on %s is left alone: %s", cluster.directory, server, problem)
        return problem.code in IN_VAIN
    return True


def _secrets(server: Server) -> tuple[ways.Way, str]:
    return ways.way_to(server), instances.name()
