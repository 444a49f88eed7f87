"""Topologies: the database on one server, and the load from it or from other machines."""

import hashlib
import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from runs.campaigns.services.campaign_limits import MOST_GENERATORS, MOST_MACHINES
from runs.campaigns.services.designs import Design, Machine
from runs.campaigns.services.drafts import Draft
from runs.execution.nodes import DATABASE_NODE
from runs.execution.plan import ClusterPlan, GeneratorPlan, MachinePlan
from runs.models import Installation, Server, Topology
from runs.models.servers import NodeRole
from runs.scenarios import arrangements, full_text_search
from runs.servers.services.servers import not_ready, single_topology, stored_topology
from runs.servers.services.tools import having_pgbench
from runs.shared.errors import Problem, ServiceError
from runs.tools.pgbench.versions import release_text

LONGEST_NAME = 200


@transaction.atomic
def topology_of(
    *,
    server: Server,
    generators: Sequence[Server] = (),
    more_servers: Sequence[Server] = (),
    arrangement: str = "",
    cluster_servers: Sequence[Server] = (),
) -> Topology:
    """The topology of these servers; the same row for the same servers in the same order.

    With `more_servers` it has a database node for each server, and every run uses one of them: the
    kind is that of its runs. Without generators each server generates its own load. A scenario with
    further clusters has its own kind (`arrangement`); they are on `cluster_servers`, or, without
    any, on the database server.
    """
    databases = (server, *more_servers)
    if not generators and not more_servers and not arrangement:
        return single_topology(server=server)
    kind = arrangement or (Topology.Kind.CLIENT if generators else Topology.Kind.SINGLE)
    slugs = "-".join(
        server.slug for server in (*databases, *cluster_servers, *generators)
    )
    made_of = [
        [server.slug for server in databases],
        [server.slug for server in generators],
    ]
    made_of += [[server.slug for server in cluster_servers]] if arrangement else []
    text = json.dumps(made_of) if more_servers or arrangement else slugs
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    roles = {
        NodeRole.DATABASE: databases,
        NodeRole.LOAD_GENERATOR: generators or databases,
    }
    roles |= {NodeRole.CLUSTERS: cluster_servers or databases} if arrangement else {}
    name = _name(databases, generators, kind)
    return stored_topology(f"{kind}-{slugs[:80]}-{digest}", name, kind, roles)


def _name(databases: Sequence[Server], generators: Sequence[Server], kind: str) -> str:
    name = ", ".join(server.name for server in databases)
    if generators:
        words = {
            "generators": ", ".join(server.name for server in generators),
            "server": name,
        }
        name = _("%(generators)s against %(server)s") % words
    if kind not in {Topology.Kind.SINGLE, Topology.Kind.CLIENT}:
        name = f"{name} ({Topology.Kind(kind).label})"
    return name[:LONGEST_NAME]


def generator_plans(
    server: Server, generators: Sequence[Machine]
) -> tuple[GeneratorPlan, ...]:
    """The part of a run's plan that describes its generators: each uses its newest pgbench."""
    plans = []
    for number, machine in enumerate(generators, start=1):
        client = having_pgbench(machine.present)[0]
        plans.append(
            GeneratorPlan(
                **_place(f"load{number}", machine, server),
                client_bindir=client.bindir,
                client_version_num=client.pgbench_version_num or client.version_num,
            )
        )
    return tuple(plans)


def _place(name: str, machine: Machine, database: Server) -> dict[str, Any]:
    """What the plans of all further machines say."""
    server = machine.server
    return {
        "name": name,
        "server_id": server.pk,
        "host": server.address,
        "port": server.port,
        "username": server.username,
        "base_dir": server.base_dir,
        "address_of_database": database.address,
    }


def generator_problems(design: Design) -> Iterator[Problem]:
    """Everything that keeps generators from putting load on each of the servers. No query.

    Several servers may share their generators: a run holds the leases of all its machines, so
    they take turns.
    """
    servers, generators = design.draft.servers, design.draft.generators
    if len(generators) > MOST_GENERATORS:
        message = _("%(number)d load generators are too many.") % {
            "number": len(generators)
        }
        yield Problem("out_of_range", message, _("Choose fewer."), "generators")
    for server in servers:
        if server in generators:
            message = _(
                "%(server)s is the database, so it cannot be a load generator as well."
            ) % {"server": server.name}
            remedy = _("Leave it out; without others the load comes from it anyway.")
            yield Problem("generator_is_database", message, remedy, "generators")
    for machine in design.generators:
        yield from _problems_of(machine.server, machine.present)
        for server in servers:
            yield from _reach_problems(server, machine.server)


def _reach_problems(server: Server, generator: Server) -> Iterator[Problem]:
    if is_loopback(server.address) and not is_loopback(generator.address):
        words = {"generator": generator.name, "address": server.address}
        message = _("%(generator)s cannot reach the database at %(address)s.") % words
        remedy = _(
            "Register the server by the address that other machines reach it at."
        )
        yield Problem("address_is_local", message, remedy, "server")


def _problems_of(
    generator: Server, present: Sequence[Installation]
) -> Iterator[Problem]:
    if generator.state != Server.State.READY or generator.is_only_a_hop:
        yield not_ready(generator, "generators")
    elif not having_pgbench(present):
        message = _("No installation on %(server)s has pgbench.") % {
            "server": generator.name
        }
        remedy = _(
            "Install PostgreSQL's client programs there and inspect the server again."
        )
        yield Problem("missing_program", message, remedy, "generators")


def is_loopback(address: str) -> bool:
    """Whether the address can only be reached from the machine itself."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def machine_plans(
    server: Server, machines: Sequence[Machine]
) -> tuple[MachinePlan, ...]:
    """The part of a run's plan that describes the machines of its further clusters."""
    return tuple(
        MachinePlan(
            **_place(_machine_name(number), machine, server),
            mount=mount_of(machine.server),
        )
        for number, machine in enumerate(machines)
    )


def mount_of(server: Server) -> str:
    """Where the file system of its base directory is mounted; empty if that is not known."""
    facts = server.environment.facts if server.environment else {}
    return str(facts.get("storage", {}).get("mount", ""))


def placed(
    clusters: Sequence[ClusterPlan], machines: Sequence[Machine]
) -> tuple[ClusterPlan, ...]:
    """The clusters spread over the machines in turn; without machines they stay where they are."""
    if not machines:
        return tuple(clusters)
    placed_clusters = []
    for position, cluster_plan in enumerate(clusters):
        number = position % len(machines)
        counterparts = _counterparts(cluster_plan.version_num, machines[number].present)
        if counterparts is None:
            raise ServiceError(
                "version_missing", _("A machine of clusters lost its PostgreSQL.")
            )
        same, psql = counterparts
        placed_clusters.append(
            replace(
                cluster_plan,
                machine=_machine_name(number),
                bindir=same.bindir,
                version_num=same.version_num,
                psql_bindir=psql.bindir,
            )
        )
    return tuple(placed_clusters)


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
) -> tuple[Installation, Installation] | None:
    """The installation of that exact release, and the one with the newest psql."""
    same = next(
        (
            installation
            for installation in present
            if installation.version_num == version_num
        ),
        None,
    )
    having = [installation for installation in present if installation.has_psql]
    return (
        (same, max(having, key=lambda installation: installation.version_num))
        if same and having
        else None
    )


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
        yield Problem(
            "no_further_clusters", message, _("Leave it empty."), "cluster_servers"
        )
        return
    if len(machines) > MOST_MACHINES:
        message = _("%(number)d machines for further clusters are too many.")
        number = {"number": len(machines)}
        yield Problem(
            "out_of_range", message % number, _("Choose fewer."), "cluster_servers"
        )
    for machine in machines:
        if machine.server in (*draft.servers, *draft.generators):
            message = _("%(server)s has another part in this campaign already.")
            words = {"server": machine.server.name}
            remedy = _(
                "Give each machine one part: database, further clusters, or load."
            )
            yield Problem(
                "machine_has_a_part", message % words, remedy, "cluster_servers"
            )
        yield from _cluster_machine_problems(machine, design)


def _cluster_machine_problems(machine: Machine, design: Design) -> Iterator[Problem]:
    server, field = machine.server, "cluster_servers"
    if server.state != Server.State.READY or server.is_only_a_hop:
        yield not_ready(server, field)
        return
    with_clusters = [
        cell.installation.version_num
        for cell in design.cells
        if design.scenario.arrangement(cell.installation.version_num, cell.levels)
    ]
    for version_num in sorted(set(with_clusters)):
        if _counterparts(version_num, machine.present) is None:
            message = _("%(server)s has no PostgreSQL %(versions)s.") % {
                "server": server.name,
                "versions": release_text(version_num),
            }
            remedy = _(
                "Install the same release and psql there, and inspect the server again."
            )
            yield Problem("version_missing", message, remedy, field)
    for database in design.draft.servers:
        if is_loopback(database.address) != is_loopback(server.address):
            message = _(
                "%(one)s and %(other)s cannot reach each other: one address is local."
            )
            words = {"one": database.name, "other": server.name}
            remedy = _(
                "Register the server by the address that other machines reach it at."
            )
            yield Problem("address_is_local", message % words, remedy, field)
