"""Prepared clusters: removed from their server once their campaign has ended."""

import logging

from asgiref.sync import async_to_sync, sync_to_async
from cryptography.fernet import InvalidToken
from django.db import transaction
from django.utils import timezone

from runs.execution.base_dir import BaseDir
from runs.execution.errors import CommandTimeout, ConnectionLost, TargetProblem
from runs.models import Campaign, PreparedCluster, Server
from runs.services import instances, leases, servers, ways

logger = logging.getLogger(__name__)

ENDED = (Campaign.State.FINISHED, Campaign.State.INCOMPLETE, Campaign.State.CANCELLED)


def of_ended_campaigns(server_id: int) -> list[PreparedCluster]:
    """Clusters on a server that nobody needs any more."""
    needless = PreparedCluster.objects.filter(removed_at=None, campaign__state__in=ENDED)
    return list(needless.filter(server_id=server_id))


def remove_needless(*, server_id: int) -> None:
    """Remove what ended campaigns left, unless a run has the server. Raises nothing.

    The lease's row stays locked meanwhile: a run that is measured must not share its disk with a
    removal. Nor must one that has lost its worker: its load goes on.
    """
    if not of_ended_campaigns(server_id):
        return
    with transaction.atomic():
        if leases.idle_lease(server_id) is None:
            return
        server = Server.objects.select_related("ssh_key").get(pk=server_id)
        try:
            removed = async_to_sync(_remove)(server, of_ended_campaigns(server_id))
        except TargetProblem as problem:
            servers.record_problem(server=server, problem=problem)
            return
        except InvalidToken:
            logger.exception("the private key for %s cannot be read", server)
            return
        PreparedCluster.objects.filter(pk__in=removed).update(removed_at=timezone.now())


async def _remove(server: Server, needless: list[PreparedCluster]) -> list[int]:
    """Remove each by itself; the ids of those that need no further try."""
    way, instance = await sync_to_async(_secrets)(server)
    base = BaseDir(server.base_dir, instance)
    host = await ways.connect_along(way)
    async with host:
        for cluster in needless:
            try:
                await base.remove(host, cluster.directory)
            except (ConnectionLost, CommandTimeout):
                raise
            except (TargetProblem, ValueError) as problem:
                # Not ours any more, or below another base directory: a further try changes nothing.
                logger.warning("%s on %s is left alone: %s", cluster.directory, server, problem)
    return [cluster.pk for cluster in needless]


def _secrets(server: Server) -> tuple[ways.Way, str]:
    return ways.way_to(server), instances.name()
