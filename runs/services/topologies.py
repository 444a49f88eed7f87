"""Topologies: the database on one server, and the load from it or from others."""

import hashlib
import ipaddress
from collections.abc import Iterator, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from runs.execution.plan import GeneratorPlan
from runs.models import Server, Topology, TopologyNode
from runs.services.problems import Problem
from runs.services.servers import single_topology
from runs.services.tools import with_pgbench

MOST_GENERATORS = 16


@transaction.atomic
def topology_of(*, server: Server, generators: Sequence[Server] = ()) -> Topology:
    """The topology of these servers; the same one for the same servers in the same order."""
    if not generators:
        return single_topology(server=server)
    slugs = "-".join(each.slug for each in (server, *generators))
    digest = hashlib.sha256(slugs.encode()).hexdigest()[:8]
    topology, created = Topology.objects.get_or_create(
        slug=f"client-{slugs[:80]}-{digest}",
        defaults={
            "name": _("%(generators)s against %(server)s")
            % {"generators": ", ".join(each.name for each in generators), "server": server.name},
            "kind": Topology.Kind.CLIENT,
        },
    )
    if created:
        role = TopologyNode.Role
        TopologyNode.objects.create(topology=topology, server=server, role=role.DATABASE)
        for ordinal, each in enumerate(generators, start=1):
            TopologyNode.objects.create(
                topology=topology, server=each, role=role.LOAD_GENERATOR, ordinal=ordinal
            )
    return topology


def generator_plans(server: Server, generators: Sequence[Server]) -> tuple[GeneratorPlan, ...]:
    """What a run's plan holds of its generators: each uses its newest pgbench."""
    plans = []
    for number, each in enumerate(generators, start=1):
        client = with_pgbench(each)[0]
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


def generator_problems(server: Server, generators: Sequence[Server]) -> Iterator[Problem]:
    """Everything for which these servers cannot put the load on."""
    if len(generators) > MOST_GENERATORS:
        message = _("%(number)d load generators are too many.") % {"number": len(generators)}
        yield Problem("out_of_range", message, _("Choose fewer."), "generators")
    if server in generators:
        message = _("%(server)s is the database, and cannot be a load generator beside.") % {
            "server": server.name
        }
        remedy = _("Leave it out; without others the load comes from it anyway.")
        yield Problem("generator_is_database", message, remedy, "generators")
    for each in generators:
        yield from _problems_of(each)
        if _is_loopback(server.address) and not _is_loopback(each.address):
            message = _("%(generator)s cannot reach the database at %(address)s.") % {
                "generator": each.name,
                "address": server.address,
            }
            remedy = _("Register the server by the address that other machines reach it at.")
            yield Problem("address_is_local", message, remedy, "server")


def _problems_of(generator: Server) -> Iterator[Problem]:
    name = {"server": generator.name}
    if generator.state != Server.State.READY or generator.is_only_a_hop:
        message = generator.problem or _("Server %(server)s is not ready.") % name
        remedy = generator.problem_remedy or _("Inspect it on its page, or choose another.")
        yield Problem("server_not_ready", message, remedy, "generators")
    elif not with_pgbench(generator):
        message = _("No installation on %(server)s has pgbench.") % name
        remedy = _("Install PostgreSQL's client programs there and inspect the server again.")
        yield Problem("missing_program", message, remedy, "generators")


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
