"""Prepared clusters: removed from their server once their campaign has ended."""

import logging

from asgiref.sync import async_to_sync
from django.utils import timezone

from runs.execution.base_dir import BaseDir
from runs.execution.errors import TargetProblem
from runs.models import Campaign, PreparedCluster, Run, Server
from runs.services import instances, servers, ssh_keys

logger = logging.getLogger(__name__)

ENDED = (Campaign.State.FINISHED, Campaign.State.INCOMPLETE, Campaign.State.CANCELLED)


def of_ended_campaigns(server_id: int) -> list[PreparedCluster]:
    """Clusters on a server that nobody needs any more."""
    needless = PreparedCluster.objects.filter(removed_at=None, campaign__state__in=ENDED)
    return list(needless.filter(server_id=server_id))


def remove_needless(*, server_id: int) -> None:
    """Remove what ended campaigns left, unless a run is being measured on that server."""
    needless = of_ended_campaigns(server_id)
    if not needless or Run.objects.filter(server_id=server_id, state__in=Run.ACTIVE).exists():
        return
    server = Server.objects.select_related("ssh_key").get(pk=server_id)
    try:
        async_to_sync(_remove)(
            server,
            ssh_keys.private_key(server.ssh_key),
            BaseDir(server.base_dir, instances.name()),
            [cluster.directory for cluster in needless],
        )
    except TargetProblem as problem:
        logger.warning("clusters on %s not removed yet: %s", server, problem.message)
        return
    ids = [cluster.pk for cluster in needless]
    PreparedCluster.objects.filter(pk__in=ids).update(removed_at=timezone.now())


async def _remove(server: Server, private_key: str, base: BaseDir, directories: list[str]) -> None:
    host = await servers.connect(
        servers.address_of(server), host_key=server.host_key, private_key=private_key
    )
    async with host:
        for directory in directories:
            await base.remove(host, directory)
