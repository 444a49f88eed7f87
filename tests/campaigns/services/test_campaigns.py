"""Queueing: what a draft becomes with its factors, and everything that is wrong with a bad one."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.campaigns.selectors import grids
from runs.campaigns.services import campaigns
from runs.campaigns.services.designs import resolve
from runs.campaigns.services.drafts import Draft
from runs.campaigns.services.estimates import estimate
from runs.cells.selectors import factor_names as words
from runs.configurations.services import configurations
from runs.execution.plan import RunPlan
from runs.models import Installation, Lease, Run, Server
from runs.schedules.services import schedules
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios, topologies
from tests import factories

pytestmark = pytest.mark.django_db


# Queueing: what a draft becomes, and everything that is wrong with a bad one.


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
    assert estimate(draft).runs == 18


def test_a_thousand_runs_are_queued_by_as_few_statements_as_two(draft):
    def statements(draft):
        with CaptureQueriesContext(connection) as queries:
            campaign = campaigns.create(draft=draft)
        for run in campaign.runs.order_by("pk")[:3]:
            assert RunPlan.from_json(run.plan).run_id == run.pk
        return campaign.runs.count(), len(queries)

    campaigns.create(draft=draft)
    few = statements(replace(draft, title="few", levels={"clients": [1]}, repeats=2))
    levels = {"clients": list(range(1, 101))}
    many = statements(replace(draft, title="many", levels=levels, repeats=5))
    assert (few[0], many[0]) == (4, 1000)
    assert few[1] == many[1] <= 40


def test_repeats_are_copies_but_for_what_is_their_own(draft):
    campaign = campaigns.create(draft=draft)
    runs = list(campaign.runs.select_related("cell").order_by("position"))
    assert [run.position for run in runs] == list(range(1, 19))
    assert len({(run.cell_id, run.repeat) for run in runs}) == 18
    for run in runs:
        assert run.plan["run_id"] == run.pk
        assert run.plan["levels"] == run.cell.levels
        assert run.cell_version == run.cell.version
        assert (run.state, run.attempt, run.server_id) == (
            "queued",
            1,
            draft.server.pk,
        )


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


def cluster_keys(campaign):
    return {run.plan["cluster_key"] for run in campaign.runs.all()}


def test_runs_of_another_campaign_share_a_cluster_where_it_is_made_of_the_same(
    draft, settings
):
    keys = cluster_keys(campaigns.create(draft=draft))

    assert cluster_keys(campaigns.create(draft=replace(draft, title="again"))) == keys
    for other in (
        replace(draft, parameters={**draft.parameters, "scale": 3}),
        replace(draft, settings={"work_mem": ["5MB"]}),
        replace(draft, scenario="fixed-point-update"),
    ):
        assert not keys & cluster_keys(campaigns.create(draft=other))
    # Another release may load in another way.
    settings.VERSION = "99.0"
    assert not keys & cluster_keys(campaigns.create(draft=draft))


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
    campaign = campaigns.create(
        draft=replace(draft, installations=server.installations.all())
    )
    keys = [cell.levels.get("bindir") for cell in campaign.cells.filter(version="18.4")]
    assert "/opt/debug/bin" in keys
    assert len(set(keys)) == 2


def problems(draft):
    return {(problem.code, problem.field) for problem in estimate(draft).problems}


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
        (
            {"parameters": {"scale": 90_000, "duration": 60}},
            ("disk_too_small", "scale"),
        ),
        ({"repeats": 0}, ("out_of_range", "repeats")),
        ({"repeats": 101}, ("out_of_range", "repeats")),
    ],
)
def test_a_fault_of_the_draft_is_named_with_its_field(draft, change, expected):
    assert problems(replace(draft, **change)) == {expected}


def test_the_time_is_estimated_also_where_the_disk_is_too_small(draft):
    too_large = replace(draft, parameters={"scale": 90_000, "duration": 60})
    assert estimate(too_large).seconds > estimate(draft).seconds > 18 * 60


def test_all_faults_are_told_at_once(draft):
    bad = replace(draft, title="", repeats=0, levels={"clients": [99_999]})
    assert {
        ("no_title", "title"),
        ("out_of_range", "repeats"),
        ("out_of_range", "clients"),
    } <= (problems(bad))


def test_more_clients_than_connections_are_refused(draft):
    small = factories.configuration(settings={"max_connections": "20"})
    many = replace(draft, configuration=small, levels={"clients": [17]})
    assert problems(many) == {("too_many_clients", "clients")}
    assert problems(replace(many, levels={"clients": [16]})) == set()


def test_a_server_that_is_not_ready_is_named_with_its_problem(draft, server):
    server.state, server.problem_code = Server.State.REFUSED, "host_key_changed"
    server.problem = "Another host key."
    server.save()
    [problem] = estimate(draft).problems
    assert (problem.code, problem.message) == ("host_key_changed", "Another host key.")


def test_a_server_without_client_programs_is_refused(draft, server):
    server.installations.update(has_psql=False)
    assert problems(draft) == {("missing_program", "server")}


def test_a_removed_installation_is_refused(draft, server):
    installation = draft.installations[0]
    installation.removed_at = timezone.now()
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
            server,
            version,
            pgbench_version_num=factories.version_num(version),
            has_psql=True,
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
    assert (one.name, one.host, one.address_of_database) == (
        "load1",
        "192.0.2.2",
        "192.0.2.1",
    )
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
    assert "generator_is_database" in codes(
        placed_draft(machines, generators=machines[:1])
    )


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


# Configurations, settings and builds as factors of a campaign, and its design made once.


@pytest.fixture
def old_and_new():
    scenarios.sync()
    made = factories.server("one", free_bytes=100 * 10**9)
    for version in ("9.4.26", "16.14"):
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def small_and_large():
    return [
        factories.configuration(
            "small", name="Small", settings={"shared_buffers": "64MB"}
        ),
        factories.configuration(
            "large", name="Large", settings={"shared_buffers": "256MB"}
        ),
    ]


@pytest.fixture
def drafted(old_and_new, small_and_large):
    def make(**changed):
        given = {
            "configuration": small_and_large[0],
            "more_configurations": small_and_large[1:],
            "levels": {"clients": [1, 2]},
            "repeats": 3,
        }
        return factories.draft(old_and_new, **(given | changed))

    return make


def faults(drafted):
    return {(each.code, each.field) for each in estimate(drafted).problems}


def plans(campaign):
    return [RunPlan.from_json(run.plan) for run in campaign.runs.order_by("position")]


def test_configurations_are_interleaved_with_versions_in_one_order(drafted):
    campaign = campaigns.create(draft=drafted(seed=7))
    assert campaign.factors == {
        "version": ["9.4.26", "16.14"],
        "configuration": ["small", "large"],
        "clients": [1, 2],
    }
    assert campaign.cells.count() == 8
    order = [
        run.cell.levels["configuration"] for run in campaign.runs.select_related("cell")
    ]
    rounds = [order[at : at + 8] for at in (0, 8, 16)]
    assert all(sorted(each) == ["large"] * 4 + ["small"] * 4 for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1


def test_each_run_has_the_settings_of_its_configuration(drafted):
    campaign = campaigns.create(draft=drafted())
    found = {
        plan.levels["configuration"]: plan.settings["shared_buffers"]
        for plan in plans(campaign)
    }
    assert found == {"small": "64MB", "large": "256MB"}
    keys = {
        (plan.levels["configuration"], plan.bindir): plan.cluster_key
        for plan in plans(campaign)
    }
    assert len(set(keys.values())) == 4


def test_a_campaign_keeps_what_each_configuration_contained(drafted, small_and_large):
    campaign = campaigns.create(draft=drafted())
    small_and_large[1].settings = {"shared_buffers": "1GB"}
    small_and_large[1].save()
    kept = campaign.configurations.all()
    assert [each.revision.settings["shared_buffers"] for each in kept] == [
        "64MB",
        "256MB",
    ]
    assert campaign.configuration is None


def test_a_setting_is_translated_for_each_version(drafted):
    given = drafted(more_configurations=[], settings={"max_wal_size": ["1GB", "4GB"]})
    campaign = campaigns.create(draft=given)
    by_version = {plan.version_num: set(plan.settings) for plan in plans(campaign)}
    assert "checkpoint_segments" in by_version[90426]
    assert "max_wal_size" in by_version[160014]
    assert campaign.factors["max_wal_size"] == ["1GB", "4GB"]
    assert {plan.settings["shared_buffers"] for plan in plans(campaign)} == {"64MB"}


def test_a_varied_setting_takes_the_place_of_the_configurations(drafted):
    campaign = campaigns.create(draft=drafted(settings={"shared_buffers": ["32MB"]}))
    assert {plan.settings["shared_buffers"] for plan in plans(campaign)} == {"32MB"}


@pytest.mark.parametrize(
    ("varied", "found"),
    [
        ({"shared_bufers": ["1GB"]}, ("unknown_setting", "settings/shared_bufers")),
        ({"work_mem": ["many"]}, ("bad_value", "settings/work_mem")),
        ({"work_mem": []}, ("no_level", "settings/work_mem")),
        ({"work_mem": ["1GB", "1024MB"]}, ("same_level", "settings/work_mem")),
        ({"port": ["5433"]}, ("setting_not_varied", "settings/port")),
    ],
)
def test_what_is_wrong_with_a_varied_setting_is_told_at_its_place(
    drafted, varied, found
):
    told = faults(drafted(settings=varied))
    assert {field for _code, field in told} == {found[1]}, told
    if found[0] != "bad_value":  # the catalogue has several codes for those
        assert found[0] in {code for code, _field in told}


def test_builds_of_one_version_are_told_apart_by_what_differs(old_and_new):
    for bindir, size, flags in (
        ("/a/bin", 8192, "-O2 -Wall"),
        ("/b/bin", 8192, "-O2 -Wall -msse4.1"),
        ("/c/bin", 32768, "-O2 -Wall"),
    ):
        factories.installation(
            old_and_new,
            "18.4",
            bindir=bindir,
            block_size=size,
            cflags=flags,
            configure_options=f"'--prefix={bindir}' '--with-lz4'",
            has_psql=True,
            pgbench_version_num=180004,
        )
    chosen = list(old_and_new.installations.filter(version="18.4"))
    design = resolve(factories.draft(old_and_new, installations=chosen))
    told = {each.installation.bindir: each.levels for each in design.cells}
    assert told["/a/bin"]["block_size"] == 8
    assert told["/c/bin"]["block_size"] == 32
    assert told["/a/bin"]["build"] == "standard"
    assert told["/b/bin"]["build"] == "-msse4.1"
    assert all("bindir" not in levels for levels in told.values())


def test_builds_that_nothing_else_tells_apart_are_told_by_their_folders(old_and_new):
    for folder in ("/a", "/b"):
        factories.installation(old_and_new, "18.4", bindir=folder)
    chosen = list(old_and_new.installations.filter(version="18.4"))
    design = resolve(factories.draft(old_and_new, installations=chosen))
    assert [each.levels["bindir"] for each in design.cells] == ["/a", "/b"]


def test_labels_say_what_differs_by_name(drafted):
    campaign = campaigns.create(draft=drafted())
    rows = grids.grid(campaign).rows
    assert [row.label for row in rows] == [
        "9.4.26 · Small",
        "16.14 · Small",
        "9.4.26 · Large",
        "16.14 · Large",
    ]
    assert (
        words.words(campaign).listed({"configuration": "small"})
        == "Configuration Small"
    )


def test_a_schedule_repeats_configurations_and_settings(drafted):
    campaign = campaigns.create(draft=drafted(settings={"work_mem": ["4MB", "16MB"]}))
    design = Draft.of_campaign(campaign)
    assert [configuration.slug for configuration in design.configurations] == [
        "small",
        "large",
    ]
    assert design.settings == {"work_mem": ["4MB", "16MB"]}
    assert design.levels == {"clients": [1, 2]}
    schedule = schedules.create(title="Again", campaign=campaign)
    again = campaigns.create(draft=Draft.from_json(schedule.draft))
    assert again.factors == campaign.factors


def test_a_draft_asks_the_database_once_whatever_is_done_with_it(drafted):
    fresh = Server.objects.select_related("hardware", "environment").get()
    given = replace(
        drafted(), server=fresh, installations=list(Installation.objects.all())
    )
    with CaptureQueriesContext(connection) as queries:
        design = resolve(given)
        estimate(design)
        [design.needed_bytes(part) for part in design.parts]
    assert len(queries) == 1, [each["sql"] for each in queries]


def test_a_design_too_large_is_refused_without_being_made(drafted):
    levels = [f"{number}MB" for number in range(1, 101)]
    given = drafted(
        levels={"clients": list(range(1, 101))},
        settings={"work_mem": levels, "maintenance_work_mem": levels},
    )
    given = replace(
        given, installations=given.installations[:1], more_configurations=()
    )
    design = resolve(given)
    assert design.count == 100 * 100 * 100
    assert len(design.cells) == 10_000
    found = {each.code for each in estimate(design).problems}
    assert {"too_many_runs", "too_many_variants"} <= found


def test_cores_and_arrangements_are_factors_of_a_scenario_that_has_neither(
    drafted, old_and_new
):
    levels = {
        "clients": [2],
        "cores": [1, 2],
        "arrangement": ["single", "mixed", "logical"],
    }
    wanted = drafted(levels=levels, more_configurations=[], repeats=1)
    # 9.4 has no logical replication, and goes without it; two cores need two clients.
    assert faults(wanted) == set()
    assert "logical" in estimate(wanted).notes[0]
    alone = replace(wanted, installations=wanted.installations[:1])
    assert faults(alone) == {("version_too_old", "arrangement")}
    assert faults(
        drafted(levels=levels | {"clients": [1]}, more_configurations=[])
    ) >= {("senseless_cell", "clients")}
    newer = Installation.objects.filter(version="16.14")
    campaign = campaigns.create(draft=replace(wanted, installations=list(newer)))
    assert campaign.factors["cores"] == [1, 2]
    assert campaign.factors["arrangement"] == ["single", "mixed", "logical"]
    assert campaign.topology.kind == "varied"
    made = {(each.levels["arrangement"], each.cores): each for each in plans(campaign)}
    assert len(made) == 6
    assert [each.name for each in made["mixed", 2].clusters] == ["standby1", "standby2"]
    assert [each.origin for each in made["logical", 1].clusters] == ["copy"]
    assert made["logical", 1].settings["wal_level"] == "logical"
    # Standbys follow a cluster of their own; a reading run alone shares its one.
    assert made["single", 1].cluster_key
    assert not made["mixed", 1].cluster_key
    assert words.factor_titles(campaign)["arrangement"] == "Arrangement"
    assert Draft.of_campaign(campaign).levels == levels
