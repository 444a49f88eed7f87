"""Topologies: the database on one server, and the load from it or from other machines."""

import hashlib
import ipaddress
import json
from collections.abc import Iterator, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from runs.execution.plan import GeneratorPlan
from runs.models import Installation, Server, Topology, TopologyNode
from runs.services.campaigns.designs import Design, Machine
from runs.services.problems import Problem
from runs.services.servers.servers import single_topology
from runs.services.servers.tools import having_pgbench
from runs.wording import gettext_noop

MOST_GENERATORS = 16
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
    slugs = "-".join(each.slug for each in (*databases, *cluster_servers, *generators))
    made_of = [[each.slug for each in databases], [each.slug for each in generators]]
    made_of += [[each.slug for each in cluster_servers]] if arrangement else []
    text = json.dumps(made_of) if more_servers or arrangement else slugs
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    topology, created = Topology.objects.get_or_create(
        slug=f"{kind}-{slugs[:80]}-{digest}",
        defaults={"name": _name(databases, generators, kind), "kind": kind},
    )
    if created:
        role = TopologyNode.Role
        _add_nodes(topology, role.DATABASE, databases)
        _add_nodes(topology, role.LOAD_GENERATOR, generators or databases)
        if arrangement:
            _add_nodes(topology, role.CLUSTERS, cluster_servers or databases)
    return topology


def _name(databases: Sequence[Server], generators: Sequence[Server], kind: str) -> str:
    name = ", ".join(each.name for each in databases)
    if generators:
        name = _("%(generators)s against %(server)s") % {
            "generators": ", ".join(each.name for each in generators),
            "server": name,
        }
    if kind not in {Topology.Kind.SINGLE, Topology.Kind.CLIENT}:
        name = f"{name} ({Topology.Kind(kind).label})"
    return name[:LONGEST_NAME]


def _add_nodes(topology: Topology, role: str, servers: Sequence[Server]) -> None:
    TopologyNode.objects.bulk_create(
        TopologyNode(topology=topology, server=each, role=role, ordinal=ordinal)
        for ordinal, each in enumerate(servers, start=1)
    )


def generator_plans(server: Server, generators: Sequence[Machine]) -> tuple[GeneratorPlan, ...]:
    """The part of a run's plan that describes its generators: each uses its newest pgbench."""
    plans = []
    for number, machine in enumerate(generators, start=1):
        each, client = machine.server, having_pgbench(machine.present)[0]
        plans.append(
            GeneratorPlan(
                name=f"load{number}",
                server_id=each.pk,
                host=each.address,
                port=each.port,
                username=each.username,
                base_dir=each.base_dir,
                client_bindir=client.bindir,
                client_version_num=client.pgbench_version_num or client.version_num,
                address_of_database=server.address,
            )
        )
    return tuple(plans)


def generator_problems(design: Design) -> Iterator[Problem]:
    """Everything that keeps generators from putting load on each of the servers. No query.

    Several servers may share their generators: a run holds the leases of all its machines, so
    they take turns.
    """
    servers, generators = design.draft.servers, design.draft.generators
    if len(generators) > MOST_GENERATORS:
        message = _("%(number)d load generators are too many.") % {"number": len(generators)}
        yield Problem("out_of_range", message, _("Choose fewer."), "generators")
    for server in servers:
        if server in generators:
            message = _("%(server)s is the database, so it cannot be a load generator as well.") % {
                "server": server.name
            }
            remedy = _("Leave it out; without others the load comes from it anyway.")
            yield Problem("generator_is_database", message, remedy, "generators")
    for machine in design.generators:
        yield from _problems_of(machine.server, machine.present)
        for server in servers:
            yield from _reach_problems(server, machine.server)


def _reach_problems(server: Server, generator: Server) -> Iterator[Problem]:
    if is_loopback(server.address) and not is_loopback(generator.address):
        message = _("%(generator)s cannot reach the database at %(address)s.") % {
            "generator": generator.name,
            "address": server.address,
        }
        remedy = _("Register the server by the address that other machines reach it at.")
        yield Problem("address_is_local", message, remedy, "server")


def _problems_of(generator: Server, present: Sequence[Installation]) -> Iterator[Problem]:
    name = {"server": generator.name}
    if generator.state != Server.State.READY or generator.is_only_a_hop:
        message = generator.problem or _("Server %(server)s is not ready.") % name
        remedy = _(
            generator.problem_remedy or gettext_noop("Inspect it on its page, or choose another.")
        )
        yield Problem("server_not_ready", message, remedy, "generators")
    elif not having_pgbench(present):
        message = _("No installation on %(server)s has pgbench.") % name
        remedy = _("Install PostgreSQL's client programs there and inspect the server again.")
        yield Problem("missing_program", message, remedy, "generators")


def is_loopback(address: str) -> bool:
    """Whether the address can only be reached from the machine itself."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
