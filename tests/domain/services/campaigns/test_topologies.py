"""The database on one server and the load from others: planned, kept, and refused with reasons."""

import pytest

from runs.execution.plan import RunPlan
from runs.models import Lease, Server
from runs.services.campaigns import campaigns, scenarios, topologies
from runs.services.campaigns.drafts import Draft
from runs.services.campaigns.estimates import estimate
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def machines():
    made = []
    for name in ("database", "one", "two"):
        server = factories.server(name, address=f"192.0.2.{len(made) + 1}")
        version = "18.4" if made else "16.14"
        factories.installation(
            server, version, pgbench_version_num=factories.version_num(version), has_psql=True
        )
        Lease.objects.get_or_create(server=server)
        made.append(server)
    return made


def draft(machines, **changed):
    database, *generators = machines
    scenarios.sync()
    given = {
        "title": "Apart",
        "scenario": "fixed-point-read",
        "server": database,
        "installations": list(database.installations.all()),
        "levels": {"clients": [4]},
        "parameters": {"scale": 1, "duration": 1},
        "repeats": 2,
        "generators": generators,
    }
    return Draft(**(given | changed))


def codes(given):
    return {problem.code for problem in estimate(given).problems}


def test_the_plan_holds_all_that_a_generator_needs(machines):
    campaign = campaigns.create(draft=draft(machines))
    plan = RunPlan.from_json(campaign.runs.first().plan)
    one, two = plan.generators
    assert (one.name, one.host, one.address_of_database) == ("load1", "192.0.2.2", "192.0.2.1")
    assert (two.name, two.server_id) == ("load2", machines[2].pk)
    assert one.client_version_num == 180004
    assert RunPlan.from_json(plan.as_json()) == plan


def test_the_topology_says_who_plays_which_role(machines):
    topology = campaigns.create(draft=draft(machines)).topology
    assert topology.kind == "client"
    assert [(node.role, node.server.slug) for node in topology.nodes.all()] == [
        ("database", "database"),
        ("load_generator", "one"),
        ("load_generator", "two"),
    ]
    again = topologies.topology_of(server=machines[0], generators=machines[1:])
    assert again == topology


def test_without_generators_the_topology_is_the_single_server(machines):
    campaign = campaigns.create(draft=draft(machines, generators=[]))
    assert campaign.topology.kind == "single"
    assert RunPlan.from_json(campaign.runs.first().plan).generators == ()


def test_the_database_cannot_be_a_generator_beside(machines):
    assert "generator_is_database" in codes(draft(machines, generators=machines[:1]))


def test_a_generator_without_pgbench_is_refused(machines):
    machines[1].installations.update(pgbench_version_num=None)
    assert "missing_program" in codes(draft(machines))


def test_a_generator_that_is_not_ready_is_refused(machines):
    Server.objects.filter(slug="two").update(state="unreachable")
    machines[2].refresh_from_db()
    assert "server_not_ready" in codes(draft(machines))


def test_a_database_that_is_known_by_a_local_address_only_is_refused(machines):
    machines[0].address = "127.0.0.1"
    machines[0].save()
    assert codes(draft(machines)) == {"address_is_local"}
