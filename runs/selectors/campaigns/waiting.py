"""Why runs wait: machines in maintenance, not ready, waiting for a clean-up, or busy."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from runs.models import Campaign, Lease, Run, Server
from runs.selectors.runs.runs import machines_of

WAITING = (Run.State.QUEUED, Run.State.LOST)


@dataclass(frozen=True)
class Hindrance:
    """A machine that runs wait for.

    `kind` is not_ready, maintained, to_sweep (a run's leftovers are being removed, or will be
    soon), not_swept (they could not be removed yet), or busy with another run.
    """

    server: Server
    kind: str


def of_campaign(campaign: Campaign) -> list[Hindrance]:
    """Machines of a campaign, database or load generator, that no run can use now."""
    used = Q(pk__in=campaign.runs.filter(state__in=WAITING).values("server").distinct())
    if campaign.topology_id is not None:
        used |= Q(nodes__topology=campaign.topology_id)
    return _unusable(Server.objects.filter(used).distinct())


def of_run(run: Run) -> list[Hindrance]:
    """Machines that a run waits for; none for a run that does not wait.

    A lost run has already started there, and continues despite maintenance or a clean-up. Two
    queries, and the run's plan.
    """
    if run.state not in WAITING:
        return []
    machines = machines_of(run)
    found = _unusable(Server.objects.filter(pk__in=machines))
    if run.state == Run.State.LOST:
        found = [each for each in found if each.kind == "not_ready"]
    held = Lease.objects.filter(server__in=machines, run__isnull=False).exclude(run=run)
    busy = held.select_related("server").order_by("server__name")
    return found + [Hindrance(each.server, "busy") for each in busy]


def _unusable(servers: Iterable[Server]) -> list[Hindrance]:
    found = []
    for server in servers:
        if server.state != Server.State.READY:
            found.append(Hindrance(server, "not_ready"))
        elif server.is_maintained:
            found.append(Hindrance(server, "maintained"))
        elif server.needs_sweep:
            kind = "not_swept" if server.was_swept_in_vain else "to_sweep"
            found.append(Hindrance(server, kind))
    return found
