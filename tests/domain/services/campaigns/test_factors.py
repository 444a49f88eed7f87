"""Configurations, settings and builds as factors of a campaign, and its design made once."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.execution.plan import RunPlan
from runs.models import Installation, Server
from runs.selectors.campaigns import factor_names as words
from runs.selectors.campaigns import grids
from runs.services.campaigns import campaigns, scenarios
from runs.services.campaigns.designs import resolve
from runs.services.campaigns.estimates import estimate
from runs.services.schedules import schedules
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    scenarios.sync()
    made = factories.server("one", free_bytes=100 * 10**9)
    for version in ("9.4.26", "16.14"):
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def configurations():
    return [
        factories.configuration("small", name="Small", settings={"shared_buffers": "64MB"}),
        factories.configuration("large", name="Large", settings={"shared_buffers": "256MB"}),
    ]


@pytest.fixture
def draft(server, configurations):
    def make(**changed):
        given = {
            "configuration": configurations[0],
            "more_configurations": configurations[1:],
            "levels": {"clients": [1, 2]},
            "repeats": 3,
        }
        return factories.draft(server, **(given | changed))

    return make


def codes(draft):
    return {(each.code, each.field) for each in estimate(draft).problems}


def plans(campaign):
    return [RunPlan.from_json(run.plan) for run in campaign.runs.order_by("position")]


def test_configurations_are_interleaved_with_versions_in_one_order(draft):
    campaign = campaigns.create(draft=draft(seed=7))
    assert campaign.factors == {
        "version": ["9.4.26", "16.14"],
        "configuration": ["small", "large"],
        "clients": [1, 2],
    }
    assert campaign.cells.count() == 8
    order = [run.cell.levels["configuration"] for run in campaign.runs.select_related("cell")]
    rounds = [order[at : at + 8] for at in (0, 8, 16)]
    assert all(sorted(each) == ["large"] * 4 + ["small"] * 4 for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1


def test_each_run_has_the_settings_of_its_configuration(draft):
    campaign = campaigns.create(draft=draft())
    found = {
        plan.levels["configuration"]: plan.settings["shared_buffers"] for plan in plans(campaign)
    }
    assert found == {"small": "64MB", "large": "256MB"}
    keys = {
        (plan.levels["configuration"], plan.bindir): plan.cluster_key for plan in plans(campaign)
    }
    assert len(set(keys.values())) == 4


def test_a_campaign_keeps_what_each_configuration_contained(draft, configurations):
    campaign = campaigns.create(draft=draft())
    configurations[1].settings = {"shared_buffers": "1GB"}
    configurations[1].save()
    kept = campaign.configurations.all()
    assert [each.revision.settings["shared_buffers"] for each in kept] == ["64MB", "256MB"]
    assert campaign.configuration is None


def test_a_setting_is_translated_for_each_version(draft):
    given = draft(more_configurations=[], settings={"max_wal_size": ["1GB", "4GB"]})
    campaign = campaigns.create(draft=given)
    by_version = {plan.version_num: set(plan.settings) for plan in plans(campaign)}
    assert "checkpoint_segments" in by_version[90426]
    assert "max_wal_size" in by_version[160014]
    assert campaign.factors["max_wal_size"] == ["1GB", "4GB"]
    assert {plan.settings["shared_buffers"] for plan in plans(campaign)} == {"64MB"}


def test_a_varied_setting_takes_the_place_of_the_configurations(draft):
    campaign = campaigns.create(draft=draft(settings={"shared_buffers": ["32MB"]}))
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
def test_what_is_wrong_with_a_varied_setting_is_told_at_its_place(draft, varied, found):
    told = codes(draft(settings=varied))
    assert {field for _code, field in told} == {found[1]}, told
    if found[0] != "bad_value":  # the catalogue has several codes for those
        assert found[0] in {code for code, _field in told}


def test_builds_of_one_version_are_told_apart_by_what_differs(server):
    for bindir, size, flags in (
        ("/a/bin", 8192, "-O2 -Wall"),
        ("/b/bin", 8192, "-O2 -Wall -msse4.1"),
        ("/c/bin", 32768, "-O2 -Wall"),
    ):
        factories.installation(
            server, "18.4", bindir=bindir, block_size=size, cflags=flags,
            configure_options=f"'--prefix={bindir}' '--with-lz4'", has_psql=True,
            pgbench_version_num=180004,
        )  # fmt: skip
    chosen = list(server.installations.filter(version="18.4"))
    design = resolve(factories.draft(server, installations=chosen))
    told = {each.installation.bindir: each.levels for each in design.cells}
    assert told["/a/bin"]["block_size"] == 8
    assert told["/c/bin"]["block_size"] == 32
    assert told["/a/bin"]["build"] == "standard"
    assert told["/b/bin"]["build"] == "-msse4.1"
    assert all("bindir" not in levels for levels in told.values())


def test_builds_that_nothing_else_tells_apart_are_told_by_their_folders(server):
    for folder in ("/a", "/b"):
        factories.installation(server, "18.4", bindir=folder)
    chosen = list(server.installations.filter(version="18.4"))
    design = resolve(factories.draft(server, installations=chosen))
    assert [each.levels["bindir"] for each in design.cells] == ["/a", "/b"]


def test_labels_say_what_differs_by_name(draft):
    campaign = campaigns.create(draft=draft())
    rows = grids.grid(campaign).rows
    assert [row.label for row in rows] == [
        "9.4.26 · Small",
        "16.14 · Small",
        "9.4.26 · Large",
        "16.14 · Large",
    ]
    assert words.words(campaign).listed({"configuration": "small"}) == "Configuration Small"


def test_a_schedule_repeats_configurations_and_settings(draft):
    campaign = campaigns.create(draft=draft(settings={"work_mem": ["4MB", "16MB"]}))
    kept = schedules.design_of(campaign)
    assert kept["configurations"] == ["small", "large"]
    assert kept["settings"] == {"work_mem": ["4MB", "16MB"]}
    assert kept["levels"] == {"clients": [1, 2]}
    schedule = schedules.create(title="Again", campaign=campaign)
    again = campaigns.create(draft=schedules._draft(schedule, ()))
    assert again.factors == campaign.factors


def test_a_draft_asks_the_database_once_whatever_is_done_with_it(draft):
    fresh = Server.objects.select_related("hardware", "environment").get()
    given = replace(draft(), server=fresh, installations=list(Installation.objects.all()))
    with CaptureQueriesContext(connection) as queries:
        design = resolve(given)
        estimate(design)
        [design.needed_bytes(part) for part in design.parts]
    assert len(queries) == 1, [each["sql"] for each in queries]


def test_a_design_too_large_is_refused_without_being_made(draft):
    levels = [f"{number}MB" for number in range(1, 101)]
    given = draft(
        levels={"clients": list(range(1, 101))},
        settings={"work_mem": levels, "maintenance_work_mem": levels},
    )
    given = replace(given, installations=given.installations[:1], more_configurations=())
    design = resolve(given)
    assert design.count == 100 * 100 * 100
    assert len(design.cells) == 10_000
    found = {each.code for each in estimate(design).problems}
    assert {"too_many_runs", "too_many_variants"} <= found


def test_cores_and_arrangements_are_factors_of_a_scenario_that_has_neither(draft, server):
    levels = {"clients": [2], "cores": [1, 2], "arrangement": ["single", "mixed", "logical"]}
    wanted = draft(levels=levels, more_configurations=[], repeats=1)
    # 9.4 has no logical replication; two cores need two clients.
    assert codes(wanted) == {("version_too_old", "arrangement")}
    assert codes(draft(levels=levels | {"clients": [1]}, more_configurations=[])) >= {
        ("senseless_cell", "clients")
    }
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
    assert schedules.design_of(campaign)["levels"] == levels
