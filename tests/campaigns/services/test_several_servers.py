"""One campaign on several database servers: cells, order, plans, estimate, and what forbids it."""

from dataclasses import replace

import pytest

from runs.campaigns.services import campaigns, estimates, repeats
from runs.execution.plan import RunPlan
from runs.models import Campaign, Lease, Run, Schedule, ScheduleEvent, Server
from runs.queue.services import leases, supervision
from runs.schedules.services import schedules
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

BOTH = ("16.14", "18.4")


def machine(slug, number, versions=BOTH, **fields):
    made = factories.server(
        slug,
        name=slug.capitalize(),
        address=f"192.0.2.{number}",
        hardware=factories.hardware(slug),
        **({"free_bytes": 100 * 10**9} | fields),
    )
    Lease.objects.get_or_create(server=made)
    for version in versions:
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def alpha():
    scenarios.sync()
    return machine("alpha", 1)


@pytest.fixture
def beta():
    return machine("beta", 2)


def installations(*servers):
    return [each for server in servers for each in server.installations.all()]


@pytest.fixture
def draft(alpha, beta):
    return factories.draft(
        alpha,
        title="Alpha against Beta",
        more_servers=(beta,),
        installations=installations(alpha, beta),
        levels={"clients": [1, 2]},
        parameters={"scale": 10, "duration": 60},
        repeats=3,
        seed=42,
    )


def problems(draft):
    return [
        (each.code, each.field, each.message)
        for each in estimates.estimate(draft).problems
    ]


def plans(campaign):
    return {run.pk: RunPlan.from_json(run.plan) for run in campaign.runs.all()}


def test_the_server_is_a_factor_and_each_cell_has_its_server(draft):
    campaign = campaigns.create(draft=draft)
    assert list(campaign.factors.items()) == [
        ("version", ["16.14", "18.4"]),
        ("server", ["alpha", "beta"]),
        ("clients", [1, 2]),
    ]
    cells = [cell.levels for cell in campaign.cells.order_by("ordinal")]
    assert len(cells) == 8
    assert cells[0] == {"version": "16.14", "server": "alpha", "clients": 1}
    assert [each["server"] for each in cells] == ["alpha"] * 4 + ["beta"] * 4
    for run in campaign.runs.select_related("cell__installation", "server"):
        assert run.cell.installation.server == run.server
        assert (run.server.slug, run.hardware) == (
            run.cell.levels["server"],
            run.server.hardware,
        )


def test_servers_and_arrangements_vary_in_one_campaign(draft):
    """Each server has the standby of its own cells, and compares with the other's."""
    levels = {"clients": [1], "arrangement": ["single", "sync"]}
    campaign = campaigns.create(draft=replace(draft, levels=levels))
    assert campaign.factors["arrangement"] == ["single", "sync"]
    assert campaign.cells.count() == 2 * 2 * 2
    found = {}
    for run in campaign.runs.select_related("server"):
        plan = RunPlan.from_json(run.plan)
        names = tuple((each.name, each.machine) for each in plan.clusters)
        found.setdefault((plan.host, plan.levels["arrangement"]), set()).add(names)
    assert found == {
        (f"192.0.2.{number}", level): {clusters}
        for number in (1, 2)
        for level, clusters in (("single", ()), ("sync", (("standby1", "db"),)))
    }


def test_with_one_server_cells_are_as_ever(draft, alpha):
    alone = replace(draft, more_servers=(), installations=installations(alpha))
    same = replace(alone, more_servers=(alpha,))
    for each in (alone, same):
        campaign = campaigns.create(draft=each)
        assert campaign.factors == {"version": ["16.14", "18.4"], "clients": [1, 2]}
        assert campaign.cells.first().key == '{"clients": 1, "version": "16.14"}'
        assert campaign.topology.slug == "single-alpha"


def test_one_random_order_for_all_of_which_each_server_takes_its_own(draft):
    campaign = campaigns.create(draft=draft)
    again = campaigns.create(draft=draft)

    def order(of):
        return list(of.runs.order_by("position").values_list("repeat", "cell__key"))

    assert order(campaign) == order(again)
    first_repeat = [key for repeat, key in order(campaign) if repeat == 1]
    assert len(set(first_repeat)) == 8
    assert first_repeat != sorted(first_repeat)
    on_alpha = campaign.runs.filter(server__slug="alpha").order_by("position")
    claim = leases.claim(server_id=on_alpha[0].server_id, holder="test")
    assert claim.run_id == on_alpha[0].pk


def test_both_servers_measure_at_the_same_time(draft, alpha, beta):
    campaigns.create(draft=draft)
    claims = [leases.claim(server_id=each.pk, holder="test") for each in (alpha, beta)]
    assert [claim.server_id for claim in claims] == [alpha.pk, beta.pk]
    assert Run.objects.filter(state=Run.State.CLAIMED).count() == 2


def test_a_plan_is_that_of_its_server(draft, beta):
    beta.base_dir = "/data/benchlab"
    beta.save()
    found = plans(campaigns.create(draft=draft)).values()
    assert {(plan.host, plan.base_dir) for plan in found} == {
        ("192.0.2.1", "/srv/benchlab"),
        ("192.0.2.2", "/data/benchlab"),
    }
    # Two folders of one name on two machines are two clusters.
    assert len({plan.cluster_key for plan in found}) == 4


def test_a_copy_that_one_run_of_a_server_would_use_is_not_made(draft):
    update = replace(
        draft,
        scenario="fixed-point-update",
        levels={"clients": [1]},
        repeats=1,
        parameters={"scale": 10, "duration": 60},
    )
    assert {
        plan.template_key for plan in plans(campaigns.create(draft=update)).values()
    } == {""}


def test_each_server_has_its_own_newest_pgbench_unless_one_is_chosen(
    draft, alpha, beta
):
    beta.installations.filter(version="18.4").update(pgbench_version_num=None)
    versions = {
        (p.host, p.client_version_num)
        for p in plans(campaigns.create(draft=draft)).values()
    }
    assert versions == {("192.0.2.1", 180004), ("192.0.2.2", 160014)}
    assert any("pgbench" in note for note in estimates.estimate(draft).notes)
    old = replace(draft, client=alpha.installations.get(version="16.14"))
    assert {
        p.client_version_num for p in plans(campaigns.create(draft=old)).values()
    } == {160014}
    assert estimates.estimate(old).notes == []
    new = replace(draft, client=alpha.installations.get(version="18.4"))
    assert [problem[:2] for problem in problems(new)] == [("missing_program", "client")]
    assert "Beta" in problems(new)[0][2]


def test_the_time_is_that_of_the_last_server_and_runs_are_added(draft, alpha, beta):
    alone = replace(draft, more_servers=(), installations=installations(alpha))
    both, one = estimates.estimate(draft), estimates.estimate(alone)
    assert (both.runs, both.seconds) == (2 * one.runs, one.seconds)


def test_servers_that_share_their_generators_take_turns(draft, alpha, beta):
    load = machine("load", 9)
    shared = replace(draft, generators=(load,))
    assert estimates.estimate(shared).seconds == 2 * estimates.estimate(draft).seconds
    assert problems(shared) == []
    campaign = campaigns.create(draft=shared)
    assert {p.generators[0].address_of_database for p in plans(campaign).values()} == {
        "192.0.2.1",
        "192.0.2.2",
    }
    first = leases.claim(server_id=alpha.pk, holder="test")
    assert first is not None
    assert leases.claim(server_id=beta.pk, holder="test") is None
    Run.objects.filter(pk=first.run_id).update(state="finished")
    Lease.objects.update(run=None)
    assert leases.claim(server_id=beta.pk, holder="test") is not None


def test_the_topology_has_a_database_for_each_server(draft, alpha, beta):
    topology = campaigns.create(draft=draft).topology
    assert (topology.kind, topology.name) == ("single", "Alpha, Beta")
    nodes = [
        (node.role, node.ordinal, node.server.slug) for node in topology.nodes.all()
    ]
    assert nodes == [
        ("database", 1, "alpha"),
        ("database", 2, "beta"),
        ("load_generator", 1, "alpha"),
        ("load_generator", 2, "beta"),
    ]
    assert campaigns.create(draft=draft).topology == topology


def test_a_server_without_a_version_is_a_problem_with_a_remedy(draft, alpha):
    gamma = machine("gamma", 3, versions=("18.4",))
    given = replace(
        draft, more_servers=(gamma,), installations=installations(alpha, gamma)
    )
    assert problems(given) == [
        ("version_missing", "installations", "Gamma has no PostgreSQL 16.14.")
    ]


def test_another_release_of_the_same_version_is_told_and_has_cells_of_its_own(
    draft, alpha
):
    gamma = machine("gamma", 3, versions=("16.13", "18.4"))
    only = [*alpha.installations.all(), gamma.installations.get(version="18.4")]
    given = replace(draft, more_servers=(gamma,), installations=only)
    [problem] = estimates.estimate(given).problems
    assert problem.code == "version_missing"
    assert "16.13" in problem.remedy
    given = replace(given, installations=installations(alpha, gamma))
    found = estimates.estimate(given)
    assert found.problems == []
    assert "Alpha 16.14; Gamma 16.13" in found.notes[0]
    campaign = campaigns.create(draft=given)
    assert campaign.factors["version"] == ["16.13", "16.14", "18.4"]
    versions = set(campaign.cells.values_list("levels__server", "version"))
    assert versions == {
        ("alpha", "16.14"),
        ("alpha", "18.4"),
        ("gamma", "16.13"),
        ("gamma", "18.4"),
    }


def test_what_only_one_server_lacks_names_it(draft, alpha, beta):
    beta.free_bytes = 10**6
    beta.save()
    [(code, _field, message)] = problems(draft)
    assert code == "disk_too_small"
    assert "Beta" in message
    assert "Alpha" not in message
    away = replace(
        draft, more_servers=(machine("away", 4, state=Server.State.UNREACHABLE),)
    )
    assert "server_not_ready" in {code for code, _field, _message in problems(away)}


def test_what_is_wrong_on_every_server_is_said_once(draft):
    small = factories.configuration(settings={"max_connections": "20"})
    many = replace(draft, configuration=small, levels={"clients": [17]})
    assert [problem[:2] for problem in problems(many)] == [
        ("too_many_clients", "clients")
    ]


def test_one_address_twice_is_told(draft, beta):
    beta.address = "192.0.2.1"
    beta.save()
    assert any("192.0.2.1" in note for note in estimates.estimate(draft).notes)


def test_an_estimate_asks_as_often_for_five_servers_as_for_two(
    draft, django_assert_max_num_queries
):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(given):
        servers = Server.objects.select_related("hardware").in_bulk(
            [s.pk for s in given.servers]
        )
        first, *more = [servers[each.pk] for each in given.servers]
        with CaptureQueriesContext(
            connection,
        ) as found:
            estimates.estimate(replace(given, server=first, more_servers=more))
        return len(found)

    more = tuple(machine(f"more-{number}", 10 + number) for number in range(3))
    wide = replace(
        draft,
        more_servers=(*draft.more_servers, *more),
        installations=[*draft.installations, *installations(*more)],
    )
    assert count(draft) == count(wide)


def test_cancelling_and_retrying_reach_every_server(draft):
    campaign = campaigns.create(draft=draft)
    campaigns.cancel(campaign=campaign)
    assert set(campaign.runs.values_list("state", flat=True)) == {"cancelled"}
    campaigns.retry(campaign=campaign)
    queued = campaign.runs.filter(state="queued")
    assert set(queued.values_list("server__slug", flat=True)) == {"alpha", "beta"}


def test_a_paused_campaign_begins_on_no_server(draft, alpha, beta):
    campaigns.pause(campaign=campaigns.create(draft=draft))
    assert [leases.claim(server_id=s.pk, holder="test") for s in (alpha, beta)] == [
        None,
        None,
    ]


def test_added_repeats_are_on_the_server_of_their_cell(draft):
    campaign = campaigns.create(
        draft=replace(draft, wanted_half_width=0.01, most_repeats=9)
    )
    for run in campaign.runs.order_by("pk"):
        factories.finish(run, tps=1000 + 300 * run.repeat)
    assert repeats.add_round(campaign=campaign) == 8
    for run in campaign.runs.filter(repeat=4).select_related("server", "cell"):
        assert run.server.slug == run.cell.levels["server"]
        assert RunPlan.from_json(run.plan).host == run.server.address


def test_an_a_a_campaign_has_both_sides_on_each_server(draft):
    campaign = campaigns.create(draft=replace(draft, is_a_a=True))
    assert campaign.factors["side"] == ["A", "B"]
    sides = (
        campaign.cells.values_list("levels__server", "levels__side")
        .distinct()
        .order_by()
    )
    assert len(set(sides)) == 4


def test_a_schedule_queues_it_again_on_the_same_servers(draft, alpha, beta):
    factories.installation(beta, "17.2", pgbench_version_num=170002)
    campaign = campaigns.create(draft=draft)
    Campaign.objects.update(state="finished")
    schedule = schedules.create(title="", campaign=campaign)
    Schedule.objects.update(next_at="2026-01-01T00:00:00Z")
    supervision.supervise()
    event = ScheduleEvent.objects.get()
    assert event.code == "queued", event.message
    assert schedule.server == alpha
    assert event.campaign.factors == campaign.factors
    assert event.campaign.topology == campaign.topology
    keys = [
        set(each.cells.values_list("key", flat=True))
        for each in (campaign, event.campaign)
    ]
    assert keys[0] == keys[1]


def test_a_schedule_waits_for_a_new_release_on_any_of_its_servers(draft, beta):
    campaign = campaigns.create(draft=draft)
    Campaign.objects.update(state="finished")
    schedules.create(title="", campaign=campaign, kind="installation")
    schedules.fire_due()
    assert not ScheduleEvent.objects.exists()
    factories.installation(beta, "18.5", has_psql=True, pgbench_version_num=180005)
    schedules.fire_due()
    event = ScheduleEvent.objects.get()
    assert event.code == "queued", event.message
    measured = set(event.campaign.cells.values_list("levels__server", "version"))
    assert ("beta", "18.5") in measured
    assert ("alpha", "18.5") not in measured
