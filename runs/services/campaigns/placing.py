"""Places the further clusters of an arrangement on machines of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from runs.execution.nodes import DATABASE_NODE
from runs.execution.plan import ClusterPlan, MachinePlan
from runs.models import Installation, Server
from runs.scenarios import arrangements, full_text_search
from runs.services.campaigns.designs import Design, Machine
from runs.services.campaigns.drafts import Draft
from runs.services.campaigns.topologies import is_loopback
from runs.services.errors import ServiceError
from runs.services.problems import Problem
from runs.tools.pgbench.versions import release_text
from runs.wording import gettext_noop

MOST_MACHINES = 16


def machine_plans(server: Server, machines: Sequence[Machine]) -> tuple[MachinePlan, ...]:
    """The part of a run's plan that describes the machines of its further clusters."""
    return tuple(
        MachinePlan(
            name=_machine_name(number),
            server_id=each.server.pk,
            host=each.server.address,
            port=each.server.port,
            username=each.server.username,
            base_dir=each.server.base_dir,
            address_of_database=server.address,
            mount=mount_of(each.server),
        )
        for number, each in enumerate(machines)
    )


def mount_of(server: Server) -> str:
    """Where the file system of its base directory is mounted; empty if that is not known."""
    facts = server.environment.facts if server.environment else {}
    return str(facts.get("storage", {}).get("mount", ""))


def placed(clusters: Sequence[ClusterPlan], machines: Sequence[Machine]) -> tuple[ClusterPlan, ...]:
    """The clusters spread over the machines in turn; without machines they stay where they are."""
    if not machines:
        return tuple(clusters)
    found = []
    for place, each in enumerate(clusters):
        number = place % len(machines)
        same, psql = _counterparts(each.version_num, machines[number].present)
        if same is None or psql is None:
            raise ServiceError("version_missing", _("A machine of clusters lost its PostgreSQL."))
        found.append(
            replace(
                each,
                machine=_machine_name(number),
                bindir=same.bindir,
                version_num=same.version_num,
                psql_bindir=psql.bindir,
            )
        )
    return tuple(found)


def pooler_of(levels: Mapping[str, Any], machines: Sequence[Machine]) -> str:
    """The machine of a cell's connection pool, the first one; empty: the database's own."""
    is_pooled = levels.get(arrangements.NAME) == arrangements.POOLED
    return _machine_name(0) if is_pooled and machines else ""


def pooling_servers(draft: Draft) -> Sequence[Server]:
    """Where a connection pool of the campaign would run."""
    return draft.cluster_servers[:1] or draft.servers


def _machine_name(number: int) -> str:
    """The names after `db`, which is the database's own: db2, db3, ..."""
    return f"{DATABASE_NODE}{number + 2}"


def _counterparts(
    version_num: int, present: Sequence[Installation]
) -> tuple[Installation | None, Installation | None]:
    """The installation of that exact release, and the one with the newest psql."""
    same = next((each for each in present if each.version_num == version_num), None)
    having = [each for each in present if each.has_psql]
    return same, max(having, key=lambda each: each.version_num, default=None)


def cluster_problems(design: Design) -> Iterator[Problem]:
    """Everything that keeps further clusters off the machines that are named for them."""
    machines, draft = design.cluster_machines, design.draft
    searches_replica = full_text_search.LOGICAL in draft.levels.get(
        full_text_search.REPLICATION, ()
    )
    if draft.generators and searches_replica:
        message = _("The searches reach the replica from the database's machine only.")
        remedy = _("Leave out the load generators.")
        yield Problem("replica_is_local", message, remedy, "generators")
    if machines and not design.kind:
        message = _("This scenario has no further clusters.")
        yield Problem("no_further_clusters", message, _("Leave it empty."), "cluster_servers")
        return
    if len(machines) > MOST_MACHINES:
        message = _("%(number)d machines for further clusters are too many.")
        number = {"number": len(machines)}
        yield Problem("out_of_range", message % number, _("Choose fewer."), "cluster_servers")
    for machine in machines:
        if machine.server in (*draft.servers, *draft.generators):
            message = _("%(server)s has another part in this campaign already.")
            words = {"server": machine.server.name}
            remedy = _("Give each machine one part: database, further clusters, or load.")
            yield Problem("machine_has_a_part", message % words, remedy, "cluster_servers")
        yield from _cluster_machine_problems(machine, design)


def _cluster_machine_problems(machine: Machine, design: Design) -> Iterator[Problem]:
    server, field = machine.server, "cluster_servers"
    if server.state != Server.State.READY or server.is_only_a_hop:
        message = server.problem or _("Server %(server)s is not ready.") % {"server": server.name}
        remedy = _(
            server.problem_remedy or gettext_noop("Inspect it on its page, or choose another.")
        )
        yield Problem("server_not_ready", message, remedy, field)
        return
    with_clusters = [
        cell.installation.version_num
        for cell in design.cells
        if design.scenario.arrangement(cell.installation.version_num, cell.levels)
    ]
    for version_num in sorted(set(with_clusters)):
        same, psql = _counterparts(version_num, machine.present)
        if same is None or psql is None:
            message = _("%(server)s has no PostgreSQL %(versions)s.") % {
                "server": server.name,
                "versions": release_text(version_num),
            }
            remedy = _("Install the same release and psql there, and inspect the server again.")
            yield Problem("version_missing", message, remedy, field)
    for database in design.draft.servers:
        if is_loopback(database.address) != is_loopback(server.address):
            message = _("%(one)s and %(other)s cannot reach each other: one address is local.")
            words = {"one": database.name, "other": server.name}
            remedy = _("Register the server by the address that other machines reach it at.")
            yield Problem("address_is_local", message % words, remedy, field)
