"""Queueing: what a draft becomes, and everything that is wrong with a bad one."""

from dataclasses import replace

import pytest

from runs.execution.plan import RunPlan
from runs.models import Lease, Run, Server
from runs.services.campaigns import campaigns, scenarios, topologies
from runs.services.campaigns.drafts import Draft
from runs.services.campaigns.estimates import estimate
from runs.services.configurations import configurations
from runs.services.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    scenarios.sync()
    made = factories.server(free_bytes=100 * 10**9)
    for version in ("16.14", "18.4"):
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def draft(server):
    return factories.draft(
        server,
        title="16 against 18",
        levels={"clients": [4, 1, 2, 1]},
        parameters={"scale": 10, "duration": 60},
        repeats=3,
        seed=42,
    )


def test_a_campaign_has_a_run_for_each_cell_and_repeat(draft):
    campaign = campaigns.create(draft=draft)
    assert campaign.cells.count() == 6
    assert campaign.runs.count() == 18
    assert campaign.factors == {"version": ["16.14", "18.4"], "clients": [1, 2, 4]}
    assert campaigns.estimate(draft).runs == 18


def test_each_repeat_runs_every_cell_once_in_a_random_order(draft):
    campaign = campaigns.create(draft=draft)
    order = list(campaign.runs.order_by("pk").values_list("repeat", "cell_id"))
    cells = set(campaign.cells.values_list("pk", flat=True))
    for repeat in (1, 2, 3):
        block = order[(repeat - 1) * 6 : repeat * 6]
        assert {number for number, _cell in block} == {repeat}
        assert {cell for _number, cell in block} == cells
    assert order != sorted(order)


def test_the_seed_gives_the_order_again(draft):
    def order(of):
        runs = of.runs.order_by("pk").select_related("cell")
        return [(run.repeat, run.cell.key) for run in runs]

    first, same = campaigns.create(draft=draft), campaigns.create(draft=draft)
    other = campaigns.create(draft=replace(draft, seed=43))
    assert order(first) == order(same)
    assert order(first) != order(other)


def test_the_newest_client_programs_put_the_load_on_every_version(draft):
    campaign = campaigns.create(draft=draft)
    plans = [RunPlan.from_json(run.plan) for run in campaign.runs.all()]
    assert {plan.client_version_num for plan in plans} == {180004}
    assert {plan.version_num for plan in plans} == {160014, 180004}


def test_reading_runs_of_one_version_share_a_cluster_and_versions_do_not(draft):
    campaign = campaigns.create(draft=draft)
    plans = [RunPlan.from_json(run.plan) for run in campaign.runs.all()]
    keys = {(plan.version_num, plan.cluster_key) for plan in plans}
    assert len(keys) == 2
    again = campaigns.create(draft=draft)
    assert not keys & {
        (plan.version_num, plan.cluster_key)
        for plan in (RunPlan.from_json(run.plan) for run in again.runs.all())
    }


def test_a_later_change_of_the_configuration_does_not_touch_queued_runs(draft):
    campaign = campaigns.create(draft=draft)
    configuration = configurations.built_in()
    configuration.settings = {"shared_buffers": "1MB"}
    configuration.save()
    plan = RunPlan.from_json(campaign.runs.first().plan)
    assert plan.settings["shared_buffers"] == "512MB"


def test_two_campaigns_of_one_title_have_two_addresses(draft):
    first, second = campaigns.create(draft=draft), campaigns.create(draft=draft)
    assert (first.slug, second.slug) == ("16-against-18", "16-against-18-2")


def test_two_builds_of_one_version_are_told_apart(draft, server):
    factories.installation(server, "18.4", bindir="/opt/debug/bin")
    campaign = campaigns.create(draft=replace(draft, installations=server.installations.all()))
    keys = [cell.levels.get("bindir") for cell in campaign.cells.filter(version="18.4")]
    assert "/opt/debug/bin" in keys
    assert len(set(keys)) == 2


def problems(draft):
    return {(problem.code, problem.field) for problem in campaigns.estimate(draft).problems}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"title": " "}, ("no_title", "title")),
        ({"installations": []}, ("no_installation", "installations")),
        ({"levels": {"clients": []}}, ("no_level", "clients")),
        ({"levels": {"clients": [0]}}, ("out_of_range", "clients")),
        ({"levels": {}}, ("no_level", "clients")),
        ({"parameters": {"scale": 0, "duration": 60}}, ("out_of_range", "scale")),
        ({"parameters": {"duration": 60}}, ("missing", "scale")),
        ({"parameters": {"scale": 90_000, "duration": 60}}, ("disk_too_small", "scale")),
        ({"repeats": 0}, ("out_of_range", "repeats")),
        ({"repeats": 101}, ("out_of_range", "repeats")),
    ],
)
def test_a_fault_of_the_draft_is_named_with_its_field(draft, change, expected):
    assert problems(replace(draft, **change)) == {expected}


def test_the_time_is_estimated_also_where_the_disk_is_too_small(draft):
    too_large = replace(draft, parameters={"scale": 90_000, "duration": 60})
    assert campaigns.estimate(too_large).seconds > campaigns.estimate(draft).seconds > 18 * 60


def test_all_faults_are_told_at_once(draft):
    bad = replace(draft, title="", repeats=0, levels={"clients": [99_999]})
    assert {("no_title", "title"), ("out_of_range", "repeats"), ("out_of_range", "clients")} <= (
        problems(bad)
    )


def test_more_clients_than_connections_are_refused(draft):
    small = factories.configuration(settings={"max_connections": "20"})
    many = replace(draft, configuration=small, levels={"clients": [17]})
    assert problems(many) == {("too_many_clients", "clients")}
    assert problems(replace(many, levels={"clients": [16]})) == set()


def test_a_server_that_is_not_ready_is_named_with_its_problem(draft, server):
    server.state, server.problem_code = Server.State.REFUSED, "host_key_changed"
    server.problem = "Another host key."
    server.save()
    [problem] = campaigns.estimate(draft).problems
    assert (problem.code, problem.message) == ("host_key_changed", "Another host key.")


def test_a_server_without_client_programs_is_refused(draft, server):
    server.installations.update(has_psql=False)
    assert problems(draft) == {("missing_program", "server")}


def test_a_removed_installation_is_refused(draft, server):
    installation = draft.installations[0]
    installation.removed_at = installation.discovered_at
    assert problems(draft) == {("installation_missing", "installations")}


def test_nothing_is_queued_of_a_bad_draft(draft):
    with pytest.raises(ServiceError) as told:
        campaigns.create(draft=replace(draft, repeats=0))
    assert told.value.field == "repeats"
    assert Run.objects.count() == 0


def test_cancelling_a_campaign_cancels_every_waiting_run(draft):
    campaign = campaigns.cancel(campaign=campaigns.create(draft=draft), by="ann")
    assert set(campaign.runs.values_list("state", flat=True)) == {"cancelled"}
    assert campaign.state == "cancelled"
    with pytest.raises(ServiceError) as told:
        campaigns.cancel(campaign=campaign)
    assert told.value.code == "campaign_has_ended"


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


def placed_draft(machines, **changed):
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
    campaign = campaigns.create(draft=placed_draft(machines))
    plan = RunPlan.from_json(campaign.runs.first().plan)
    one, two = plan.generators
    assert (one.name, one.host, one.address_of_database) == ("load1", "192.0.2.2", "192.0.2.1")
    assert (two.name, two.server_id) == ("load2", machines[2].pk)
    assert one.client_version_num == 180004
    assert RunPlan.from_json(plan.as_json()) == plan


def test_the_topology_says_who_plays_which_role(machines):
    topology = campaigns.create(draft=placed_draft(machines)).topology
    assert topology.kind == "client"
    assert [(node.role, node.server.slug) for node in topology.nodes.all()] == [
        ("database", "database"),
        ("load_generator", "one"),
        ("load_generator", "two"),
    ]
    again = topologies.topology_of(server=machines[0], generators=machines[1:])
    assert again == topology


def test_without_generators_the_topology_is_the_single_server(machines):
    campaign = campaigns.create(draft=placed_draft(machines, generators=[]))
    assert campaign.topology.kind == "single"
    assert RunPlan.from_json(campaign.runs.first().plan).generators == ()


def test_the_database_cannot_be_a_generator_beside(machines):
    assert "generator_is_database" in codes(placed_draft(machines, generators=machines[:1]))


def test_a_generator_without_pgbench_is_refused(machines):
    machines[1].installations.update(pgbench_version_num=None)
    assert "missing_program" in codes(placed_draft(machines))


def test_a_generator_that_is_not_ready_is_refused(machines):
    Server.objects.filter(slug="two").update(state="unreachable")
    machines[2].refresh_from_db()
    assert "server_not_ready" in codes(placed_draft(machines))


def test_a_database_that_is_known_by_a_local_address_only_is_refused(machines):
    machines[0].address = "127.0.0.1"
    machines[0].save()
    assert codes(placed_draft(machines)) == {"address_is_local"}
