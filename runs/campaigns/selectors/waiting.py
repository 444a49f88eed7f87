"""Why runs wait: machines in maintenance, not ready, waiting for a clean-up, or busy."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery

from runs.models import Campaign, Lease, Run, Server, TopologyNode
from runs.operations.selectors import health_checks, sites
from runs.queue.selectors.runs import machines_of
from runs.servers.selectors.shared_machines import add_twins

WAITING = (Run.State.QUEUED, Run.State.LOST)


@dataclass(frozen=True)
class Hindrance:
    """A machine that runs wait for.

    `kind` is not_ready, maintained, to_sweep (a run's leftovers are being removed, or will be
    soon), not_swept (they could not be removed yet), busy with another run (also as another
    registration of the same machine), or unserved: no live worker serves the `sites` that a run
    needs together.
    """

    server: Server
    kind: str
    sites: str = ""
    remedy: str = ""


def find_campaign_hindrances(campaign: Campaign) -> list[Hindrance]:
    """Machines of a campaign, database or load generator, that no run can use now.

    All runs of a server use the same further machines, so one plan for each server is read.
    """
    groups = [machines_of(run) for run in _one_of_each_server(campaign)]
    used = Q(pk__in={server_id for group in groups for server_id in group})
    if campaign.topology_id is not None:
        used |= Q(nodes__topology=campaign.topology_id)
    servers = {server.pk: server for server in Server.objects.filter(used).distinct()}
    together = [[servers[pk] for pk in group if pk in servers] for group in groups]
    return [*_unusable(servers.values()), *_unserved(together)]


def _one_of_each_server(campaign: Campaign) -> QuerySet[Run]:
    """A run that waits on each server. A search for each server, not one through all runs."""
    runs = campaign.runs.filter(state__in=WAITING, server__isnull=False).order_by()
    if campaign.topology_id is None:
        # Of before there were topologies, or not resolved.
        of_servers = runs.order_by("server_id", "pk").distinct("server_id").values("pk")
        return runs.filter(pk__in=of_servers).only("campaign_id", "server_id", "plan")
    databases = Server.objects.filter(
        nodes__topology=campaign.topology_id, nodes__role=TopologyNode.Role.DATABASE
    )
    waiting_there = runs.filter(server=OuterRef("pk")).values("pk")[:1]
    keys = databases.annotate(waiting=Subquery(waiting_there)).exclude(waiting=None)
    return Run.objects.filter(pk__in=list(keys.values_list("waiting", flat=True))).only(
        "campaign_id", "server_id", "plan"
    )


def held_up(slugs: Collection[str]) -> list[Hindrance]:
    """Those of the servers with these slugs that are not ready. One query, where there are any."""
    if not slugs:
        return []
    servers = Server.objects.filter(slug__in=slugs).order_by("name", "pk")
    return [
        hindrance for hindrance in _unusable(servers) if hindrance.kind == "not_ready"
    ]


def find_site_hindrances(server: Server) -> list[Hindrance]:
    """Whether no live worker serves the site of a server."""
    return _unserved([[server]])


def find_run_hindrances(run: Run) -> list[Hindrance]:
    """Machines that a run waits for; none for a run that does not wait.

    A lost run has already started there, and continues despite maintenance or a clean-up. Two
    queries, and the run's plan.
    """
    if run.state not in WAITING:
        return []
    machines = machines_of(run)
    servers = list(Server.objects.filter(pk__in=machines))
    unusable = _unusable(servers)
    if run.state == Run.State.LOST:
        unusable = [
            hindrance for hindrance in unusable if hindrance.kind == "not_ready"
        ]
    unusable += _unserved([servers])
    at_work = Lease.objects.filter(server__in=add_twins(machines), run__isnull=False)
    held = at_work.exclude(run=run)
    busy = held.select_related("server").order_by("server__name")
    return unusable + [Hindrance(lease.server, "busy") for lease in busy]


def _unusable(servers: Iterable[Server]) -> list[Hindrance]:
    hindrances = []
    for server in servers:
        if server.state != Server.State.READY:
            hindrances.append(Hindrance(server, "not_ready"))
        elif server.is_maintained:
            hindrances.append(Hindrance(server, "maintained"))
        elif server.needs_sweep:
            kind = "not_swept" if server.was_swept_in_vain else "to_sweep"
            hindrances.append(Hindrance(server, kind))
    return hindrances


def _unserved(groups: Iterable[Sequence[Server]]) -> list[Hindrance]:
    """One for each group of machines that no single live worker reaches."""
    hindrances = []
    for machines in groups:
        needed = sorted({server.site for server in machines if server.site})
        if not sites.have_a_worker(needed):
            first_server = next(server for server in machines if server.site)
            text = ", ".join(needed)
            hindrances.append(
                Hindrance(
                    first_server,
                    "unserved",
                    text,
                    health_checks.explain_serving(needed),
                )
            )
    return hindrances
