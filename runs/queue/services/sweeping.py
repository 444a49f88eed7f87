"""Cleaning up a server: ending and removing what runs that were given up left there.

Until that is done no new run takes the server, neither as database nor as load generator.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.execution.clusters import leftovers
from runs.execution.errors import (
    CommandTimeout,
    ConnectionLost,
    TargetProblem,
    classify_worker_error,
)
from runs.execution.machine.treating import NOT_SET_BACK
from runs.execution.nodes import PLACED, folder_of
from runs.execution.ssh.hosts import Host
from runs.execution.steps.base_dir import BaseDir
from runs.execution.steps.fence import Fence, LeaseLost
from runs.models import (
    Campaign,
    Instance,
    Lease,
    PreparedCluster,
    Run,
    Server,
    ServerEvent,
)
from runs.queue.selectors.runs import match_server
from runs.queue.services import leases
from runs.servers.services import logins, servers
from runs.shared import copies
from runs.shared.errors import ServiceError

logger = logging.getLogger(__name__)

# No longer ours: another try would not help.
IN_VAIN = ("not_ours", "leads_out")


def needless_clusters(server_id: int) -> list[PreparedCluster]:
    """Clusters on a server that go: nobody needs them, and they are not kept for a next campaign.

    Those of ended campaigns are kept for some hours after their last use, and the newest ones
    within a limit of their sizes (BENCHLAB_KEPT_CLUSTERS_HOURS and _GB).
    """
    kept_bytes, limit = 0, settings.KEPT_CLUSTERS_GB * 10**9
    outlived = set(
        outlived_clusters().filter(server_id=server_id).values_list("pk", flat=True)
    )
    needless = []
    for cluster in kept_clusters(server_id).order_by("-used_at", "-pk"):
        kept_bytes += cluster.bytes
        if cluster.pk in outlived or kept_bytes > limit:
            needless.append(cluster)
    return needless


def outlived_clusters() -> QuerySet[PreparedCluster]:
    """Clusters that nobody has used for longer than they are kept."""
    since = timezone.now() - timedelta(hours=settings.KEPT_CLUSTERS_HOURS)
    return PreparedCluster.objects.filter(removed_at=None, used_at__lt=since)


def kept_clusters(server_id: int) -> QuerySet[PreparedCluster]:
    """Clusters on a server that no open run and no open campaign needs."""
    there = PreparedCluster.objects.filter(server_id=server_id, removed_at=None)
    ended = there.filter(campaign__state__in=Campaign.ENDED)
    return ended.exclude(key__in=_shared_keys(_open_runs(server_id)))


def servers_with_needless_clusters() -> set[int]:
    """The servers from which clusters are to be removed."""
    there = PreparedCluster.objects.filter(removed_at=None).order_by()
    server_ids = there.values_list("server_id", flat=True).distinct()
    return {server_id for server_id in server_ids if needless_clusters(server_id)}


def remove_needless_clusters(*, server_id: int) -> None:
    """Remove clusters that are not kept any longer, unless a run is there. Raises nothing.

    The lease's row stays locked for that time: a run that is being measured must not share its disk
    with a removal. Nor may a run that has lost its worker: its load goes on.
    """
    if not needless_clusters(server_id):
        return
    try:
        _remove_needless(server_id)
    except LeaseLost:
        slug = Server.objects.values_list("slug", flat=True).get(pk=server_id)
        copies.hold(Instance.Hold.BEHIND, slug)


def _remove_needless(server_id: int) -> None:
    with transaction.atomic():
        lease = leases.idle_lease(server_id)
        if lease is None:
            return
        server = Server.objects.select_related("ssh_key").get(pk=server_id)
        needless = needless_clusters(server_id)
        try:
            is_done = async_to_sync(_remove)(server, lease, needless)
        except TargetProblem as problem:
            servers.record_problem(server=server, problem=problem)
            return
        ids = [cluster.pk for cluster in needless]
        PreparedCluster.objects.filter(pk__in=ids).update(removed_at=timezone.now())
        if not is_done:
            # A later clean-up ends and removes the rest; it tries again and reports it.
            Server.objects.filter(pk=server_id).update(
                needs_sweep=True, sweep_after=Now()
            )


async def _remove(
    server: Server, lease: Lease, needless: list[PreparedCluster]
) -> bool:
    login_way = await sync_to_async(logins.way_to)(server)
    base = BaseDir(server.base_dir, await sync_to_async(logins.instance_name)())
    async with await logins.connect_along(login_way) as host:
        if fence := _fence(base, lease):
            await fence.check(host)
        return all(
            [await _is_done(host, base, cluster, server) for cluster in needless]
        )


async def _is_done(
    host: Host, base: BaseDir, cluster: PreparedCluster, server: Server
) -> bool:
    try:
        await leftovers.remove(host, base, base.join(cluster.directory))
    except (ConnectionLost, CommandTimeout):
        raise
    except ValueError:
        logger.warning(
            "%s on %s is below another base directory", cluster.directory, server
        )
    except TargetProblem as problem:
        logger.warning("%s on %s is left alone: %s", cluster.directory, server, problem)
        return problem.code in IN_VAIN
    return True


PAUSE = timedelta(minutes=5)
# Leftovers with one of these codes may still be running, as nobody looked at them where no command
# was started. Others just take space, or are not ours.
STILL_AT_WORK = (
    "step_does_not_end",
    "postgres_does_not_stop",
    "no_report",
    "too_few_sessions",
)
SWEPT, NOT_SWEPT = "swept", "not_swept"


@dataclass(frozen=True)
class Swept:
    """The folders that were removed, and why others were left."""

    removed: tuple[str, ...]
    left: tuple[TargetProblem, ...]


def sweep(*, server: Server, keeps_errored: bool = False) -> Swept:
    """Remove every folder of this BenchLab on a server that belongs to no open run: also clusters
    that are kept for a next campaign.

    In other folders, such as clusters that later runs need, only processes that still run are
    ended. The same holds for runs that ended in an error of BenchLab: with `keeps_errored` their
    folders stay too, for a person to look at, until the runs are queued again.

    The lease's row stays locked for that time: nothing is measured and nothing starts. An event
    reports what could not be removed. If that may still be running, the server must be cleaned up
    again, and no new run starts on it before. Raises ServiceError `server_busy`, `held` if a copy
    of this results database uses the server, and TargetProblem when the server cannot be reached,
    or when a run has left its settings changed (`not_set_back`): measurements on it would mean
    nothing.
    """
    try:
        return _swept(server, keeps_errored=keeps_errored)
    except LeaseLost:
        copies.hold(Instance.Hold.BEHIND, server.slug)
        copies.require_not_held()
        raise


@transaction.atomic
def _swept(server: Server, *, keeps_errored: bool) -> Swept:
    lease = leases.idle_lease(server.pk)
    if lease is None:
        copies.require_not_held()
        message = _("%(server)s is measuring, or not ready.") % {"server": server.name}
        remedy = _("Clean it up when its run has ended and the server can be reached.")
        raise ServiceError("server_busy", message, remedy=remedy)
    sweep_after = Server.objects.values_list("sweep_after", flat=True).get(pk=server.pk)
    base = BaseDir(server.base_dir, logins.instance_name())
    login_way, live_paths = logins.way_to(server), live_folders(server.pk)
    if keeps_errored:
        live_paths |= errored_folders(server.pk)
    swept = async_to_sync(_sweep)(login_way, base, _fence(base, lease), live_paths)
    there = PreparedCluster.objects.filter(server=server, removed_at=None)
    there.filter(directory__in=swept.removed).update(removed_at=timezone.now())
    _conclude(server, sweep_after, swept)
    return swept


def due() -> QuerySet[Server]:
    """Servers that are due for a clean-up."""
    is_time = Q(sweep_after=None) | Q(sweep_after__lte=Now())
    return Server.objects.filter(is_time, needs_sweep=True)


def sweep_where_needed(*, server_id: int) -> None:
    """Clean up a server on which a run was given up, when it can be reached. Raises nothing."""
    server = due().filter(pk=server_id, state=Server.State.READY).first()
    if server is None:
        return
    try:
        sweep(server=server, keeps_errored=True)
    except ServiceError:
        logger.info("%s is cleaned up later", server)
    except TargetProblem as problem:
        servers.record_problem(server=server, problem=problem)
    except OSError as error:
        servers.record_problem(server=server, problem=classify_worker_error(error))


def live_folders(server_id: int) -> set[str]:
    """The folders, relative to the base directory, that open runs and campaigns need."""
    open_runs = _open_runs(server_id)
    live = {f"clusters/{key}" for key in _shared_keys(open_runs)}
    for run in open_runs.values("pk", "attempt", "plan__clusters"):
        run_id = run["pk"]
        live |= {f"runs/{run_id}-{run['attempt']}", f"clusters/run-{run_id}"}
        names = [PLACED, *(cluster["name"] for cluster in run["plan__clusters"] or ())]
        live |= {f"clusters/{folder_of(run_id, name)}" for name in names}
    prepared_clusters = PreparedCluster.objects.filter(
        server_id=server_id, removed_at=None
    )
    needed = prepared_clusters.exclude(campaign__state__in=Campaign.ENDED)
    return live | {f"clusters/{key}" for key in needed.values_list("key", flat=True)}


def _open_runs(server_id: int) -> QuerySet[Run]:
    return Run.objects.filter(match_server(server_id)).exclude(state__in=Run.ENDED)


def _shared_keys(runs: QuerySet[Run]) -> set[str]:
    """The keys of the prepared clusters that these runs share or copy."""
    keys = (
        runs.order_by()
        .values_list("plan__cluster_key", "plan__template_key")
        .distinct()
    )
    return {key for shared_keys in keys for key in shared_keys if key}


def errored_folders(server_id: int) -> set[str]:
    """The folders that may hold the result of a run that ended in an error of BenchLab."""
    errored = Run.objects.filter(match_server(server_id), state=Run.State.ERRORED)
    return {
        f"runs/{run_id}-{attempt}"
        for run_id, attempt in errored.values_list("pk", "attempt")
    }


def _fence(base: BaseDir, lease: Lease) -> Fence | None:
    """What must not be ahead where something is removed: it may be of a copy's run."""
    if lease.may_catch_up:
        return None
    return Fence(base.join("leases", str(lease.server_id)), lease.token)


async def _sweep(
    login_way: logins.Way, base: BaseDir, fence: Fence | None, live_paths: set[str]
) -> Swept:
    removed: list[str] = []
    problems: list[TargetProblem] = []
    async with await logins.connect_along(login_way) as host:
        if fence is not None:
            await fence.check(host)
        paths = {base.join(path) for path in live_paths}
        for path in await leftovers.marked(host, base):
            is_kept = path in paths
            try:
                await (leftovers.end if is_kept else leftovers.remove)(host, base, path)
            except (ConnectionLost, CommandTimeout):
                raise
            except TargetProblem as problem:
                logger.warning("%s is left alone: %s", path, problem)
                problems.append(problem)
            else:
                removed += [] if is_kept else [path]
    for each in problems:
        if each.code == NOT_SET_BACK:
            raise each
    return Swept(tuple(removed), tuple(problems))


def _conclude(server: Server, sweep_after: datetime | None, swept: Swept) -> None:
    if any(problem.code in STILL_AT_WORK for problem in swept.left):
        again = Now() + PAUSE
        Server.objects.filter(pk=server.pk).update(needs_sweep=True, sweep_after=again)
    else:
        # Unless somebody has asked for another clean-up since this one started.
        unasked = Server.objects.filter(pk=server.pk, sweep_after=sweep_after)
        unasked.update(needs_sweep=False, sweep_after=None)
    if swept.left:
        _tell(server, NOT_SWEPT, _describe(swept.left))
    elif server.events.filter(code__in=(SWEPT, NOT_SWEPT)).exists():
        _tell(server, SWEPT, _("Nothing is left to clean up."))


def _describe(problems: Sequence[TargetProblem]) -> str:
    return "\n".join(
        f"{problem.message} {_(problem.remedy) if problem.remedy else ''}".strip()
        for problem in problems
    )


def _tell(server: Server, code: str, message: str) -> None:
    """Record it in the server's history, once for each leftover."""
    server_event = server.events.filter(code__in=(SWEPT, NOT_SWEPT)).first()
    if server_event is None or (server_event.code, server_event.message) != (
        code,
        message,
    ):
        ServerEvent.objects.create(server=server, code=code, message=message)
