"""Sweeping a server: what runs that were given up left there is ended and removed."""

import logging

from asgiref.sync import async_to_sync
from cryptography.fernet import InvalidToken
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from runs.execution import sweep as leftover
from runs.execution.base_dir import BaseDir
from runs.execution.errors import CommandTimeout, ConnectionLost, TargetProblem
from runs.execution.set_back import NOT_SET_BACK
from runs.models import PreparedCluster, Run, Server
from runs.services import clusters, instances, leases, servers, ways
from runs.services.errors import ServiceError

logger = logging.getLogger(__name__)


@transaction.atomic
def sweep(*, server: Server) -> list[str]:
    """Remove every folder of this BenchLab on a server that belongs to no open run; their paths.

    The lease's row stays locked meanwhile: nothing is measured beside it, and nothing begins.
    Raises ServiceError `server_busy`, and TargetProblem when the server cannot be reached, or when
    a run has left it set otherwise (`not_set_back`): what is measured on it would say nothing.
    """
    if leases.free_lease(server.pk) is None:
        raise ServiceError(
            "server_busy",
            _("%(server)s is measuring, or not ready.") % {"server": server.name},
            remedy=_("Sweep it when its run has ended, and when it can be reached."),
        )
    base = BaseDir(server.base_dir, instances.name())
    way, live = ways.way_to(server), live_folders(server.pk)
    removed = async_to_sync(_sweep)(server, way, base, live)
    Server.objects.filter(pk=server.pk).update(needs_sweep=False)
    return removed


def sweep_where_needed(*, server_id: int) -> None:
    """Sweep a server on which a run was given up, once it can be reached. Raises nothing."""
    server = Server.objects.filter(pk=server_id, needs_sweep=True, state=Server.State.READY).first()
    if server is None:
        return
    try:
        sweep(server=server)
    except ServiceError:
        logger.info("%s is swept later", server)
    except TargetProblem as problem:
        servers.record_problem(server=server, problem=problem)
    except InvalidToken:
        logger.exception("the private key for %s cannot be read", server)


def live_folders(server_id: int) -> set[str]:
    """The folders, relative to the base directory, that open runs and campaigns need."""
    generates = Q(plan__generators__contains=[{"server_id": server_id}])
    here = Run.objects.filter(Q(server_id=server_id) | generates)
    open_runs = here.exclude(state__in=Run.ENDED)
    keys = ("pk", "attempt", "plan__cluster_key", "plan__template_key")
    live: set[str] = set()
    for run_id, attempt, cluster_key, template_key in open_runs.values_list(*keys):
        live |= {f"runs/{run_id}-{attempt}", f"clusters/run-{run_id}"}
        live |= {f"clusters/{key}" for key in (cluster_key, template_key) if key}
    kept = PreparedCluster.objects.filter(server_id=server_id, removed_at=None)
    needed = kept.exclude(campaign__state__in=clusters.ENDED)
    return live | {f"clusters/{key}" for key in needed.values_list("key", flat=True)}


async def _sweep(server: Server, way: ways.Way, base: BaseDir, live: set[str]) -> list[str]:
    host = await ways.connect_along(way)
    removed = []
    not_set_back: TargetProblem | None = None
    async with host:
        for path in await leftover.leftovers(host, base, live):
            try:
                await leftover.remove(host, base, path)
            except (ConnectionLost, CommandTimeout):
                raise
            except TargetProblem as problem:
                logger.warning("%s on %s is left alone: %s", path, server, problem)
                if problem.code == NOT_SET_BACK:
                    not_set_back = problem
            else:
                removed.append(path)
    if not_set_back is not None:
        raise not_set_back
    return removed
