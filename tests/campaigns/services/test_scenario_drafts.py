"""Drafts of scenarios that write, and of those with levels that are no numbers."""

import os
import subprocess
from dataclasses import replace

import pytest
from django.db import connection

from benchlab.embedded.account import myself
from benchlab.embedded.binaries import postgresql_binaries
from runs.campaigns.services import campaigns, designs
from runs.campaigns.services.estimates import estimate
from runs.execution.plan import RunPlan, WorkloadContent
from runs.queue.selectors.runs import machines_of
from runs.scenarios import definition, registry
from runs.shared.errors import ServiceError
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import scenarios, workloads
from tests import factories


@pytest.fixture
def server():
    scenarios.sync()
    made = factories.server(free_bytes=100 * 10**9)
    for version in ("9.2.24", "9.3.25", "18.4"):
        number = factories.version_num(version)
        factories.installation(
            made,
            version,
            has_psql=True,
            pgbench_version_num=number,
            extensions=["plpgsql", "postgres_fdw"],
        )
    return made


@pytest.fixture
def update(server):
    return factories.draft(
        server,
        title="updates",
        scenario="fixed-point-update",
        parameters={"scale": 1, "duration": 5},
        repeats=3,
    )


@pytest.fixture
def checksums(update, server):
    return replace(
        update,
        scenario="page-checksums",
        installations=list(server.installations.exclude(version="9.2.24")),
        levels={"checksums": ["on", "off"], "clients": [2, 1]},
    )


def plans(campaign):
    return [RunPlan.from_json(run.plan) for run in campaign.runs.order_by("pk")]


@pytest.mark.django_db
def test_runs_that_write_share_a_template_for_each_version_and_no_cluster(update):
    found = plans(campaigns.create(draft=update))
    assert {plan.cluster_key for plan in found} == {""}
    assert len({plan.template_key for plan in found}) == 3
    assert "" not in {plan.template_key for plan in found}


@pytest.mark.django_db
def test_a_single_run_needs_no_template(update):
    found = plans(campaigns.create(draft=replace(update, repeats=1)))
    assert {plan.template_key for plan in found} == {""}


@pytest.mark.django_db
def test_room_for_wal_is_given_in_the_words_of_each_version(update):
    found = {
        plan.version_num: plan.settings
        for plan in plans(campaigns.create(draft=update))
    }
    assert (
        found[90224]["checkpoint_segments"]
        == found[90325]["checkpoint_segments"]
        == "4000"
    )
    assert found[180004]["max_wal_size"] == "160GB"
    assert "max_wal_size" not in found[90325]
    assert "checkpoint_segments" not in found[180004]


@pytest.mark.django_db
def test_each_choice_makes_its_own_cluster(checksums):
    campaign = campaigns.create(draft=checksums)
    assert campaign.factors == {
        "version": ["9.3.25", "18.4"],
        "checksums": ["off", "on"],
        "clients": [1, 2],
    }
    found = plans(campaign)
    options = {(plan.levels["checksums"], plan.initdb_options) for plan in found}
    assert options == {("off", ("--no-data-checksums",)), ("on", ("--data-checksums",))}
    assert len({plan.cluster_key for plan in found}) == 4


@pytest.mark.django_db
def test_a_cell_that_its_version_cannot_run_is_left_out_and_said(checksums, server):
    draft = replace(checksums, installations=list(server.installations.all()))
    found = estimate(draft)
    assert (found.problems, found.runs) == ([], (2 * 2 * 2 + 2) * draft.repeats)
    [note] = found.notes
    assert "9.2.24" in note
    assert "came with PostgreSQL 9.3" in note
    cells = campaigns.create(draft=draft).cells.filter(version="9.2.24")
    assert [each.levels["checksums"] for each in cells] == ["off", "off"]


@pytest.mark.django_db
def test_a_level_that_no_version_can_run_is_refused_with_the_reason(checksums, server):
    old = list(server.installations.filter(version="9.2.24"))
    draft = replace(checksums, installations=old)
    [problem] = estimate(draft).problems
    assert (problem.code, problem.field) == ("version_too_old", "checksums")
    assert "9.2.24" in problem.message
    assert "came with PostgreSQL 9.3" in problem.message
    with pytest.raises(ServiceError, match=r"9\.2\.24"):
        campaigns.create(draft=draft)


@pytest.mark.django_db
def test_a_version_may_run_the_levels_that_it_can(checksums, server):
    draft = replace(
        checksums,
        installations=list(server.installations.all()),
        levels={"checksums": ["off"], "clients": [1]},
    )
    assert estimate(draft).problems == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("levels", "code", "field"),
    [
        ({"checksums": ["maybe"], "clients": [1]}, "unknown_level", "checksums"),
        ({"checksums": [], "clients": [1]}, "no_level", "checksums"),
        ({"checksums": ["on"], "clients": ["many"]}, "unknown_level", "clients"),
        ({"checksums": ["on"], "clients": [0]}, "out_of_range", "clients"),
        (
            {"checksums": ["on"], "clients": [1], "colour": [1]},
            "unknown_factor",
            "levels",
        ),
    ],
)
def test_levels_that_a_factor_does_not_have_are_refused(checksums, levels, code, field):
    [problem] = estimate(replace(checksums, levels=levels)).problems
    assert (problem.code, problem.field) == (code, field)


@pytest.mark.django_db
def test_a_configuration_whose_options_a_version_does_not_know_is_refused(update):
    wanted = factories.configuration(initdb_options=["--wal-segsize=64"])
    problems = estimate(replace(update, configuration=wanted)).problems
    assert [problem.code for problem in problems] == ["initdb_option_unknown"] * 2
    assert (
        "9.2.24: initdb knows --wal-segsize from PostgreSQL 11 on"
        in problems[0].message
    )


@pytest.mark.django_db
@pytest.mark.parametrize("option", ["--data-checksums", "-k", "--no-data-checksums"])
def test_a_configuration_cannot_decide_on_what_the_scenario_varies(
    checksums, update, option
):
    decided = factories.configuration("decided", initdb_options=[option])
    found = {
        each.code
        for each in estimate(replace(checksums, configuration=decided)).problems
    }
    assert found == {"initdb_option_is_varied"}
    allowed = estimate(replace(update, configuration=decided)).problems
    assert "initdb_option_is_varied" not in {each.code for each in allowed}


@pytest.mark.django_db
def test_a_factor_without_any_level_is_told(checksums):
    found = estimate(replace(checksums, levels={"clients": [1]})).problems
    assert [(each.code, each.field) for each in found] == [("no_level", "checksums")]


def quick(scenario, server):
    """The quick form of a scenario on the newest version, as a draft."""
    return factories.draft(
        server,
        title=scenario.slug,
        scenario=scenario.slug,
        installations=[server.installations.get(version="18.4")],
        levels={each.name: list(each.default) for each in scenario.factors}
        | scenario.quick.levels,
        parameters={each.name: each.default for each in scenario.parameters}
        | scenario.quick.parameters,
        repeats=scenario.quick.repeats,
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "scenario", registry.every(), ids=lambda scenario: scenario.slug
)
def test_the_quick_form_of_a_scenario_can_be_queued(scenario, server):
    draft = quick(scenario, server)
    assert [problem.message for problem in estimate(draft).problems] == []
    assert plans(campaigns.create(draft=draft))


@pytest.fixture
def cores(server):
    return quick(registry.get("cpu-cores"), server)


@pytest.mark.django_db
def test_a_run_holds_its_number_of_cores_and_all_share_a_cluster(cores):
    found = plans(campaigns.create(draft=cores))
    assert {plan.cores for plan in found} == {1, 2}
    assert len({plan.cluster_key for plan in found}) == 1


@pytest.mark.django_db
def test_cores_that_clients_cannot_keep_busy_and_that_are_not_there_are_refused(
    cores, server
):
    server.hardware.threads = 4
    server.hardware.save()
    draft = replace(
        cores, levels={"cores": [2, 8]}, parameters=cores.parameters | {"clients": 4}
    )
    found = {problem.code: problem for problem in estimate(draft).problems}
    assert found.keys() == {"senseless_cell", "cores_not_there"}
    assert "4 clients cannot keep 8 cores busy" in found["senseless_cell"].message
    assert found["cores_not_there"].field == "cores"


@pytest.fixture
def standbys(server):
    return quick(registry.get("replication"), server)


def pairs(found):
    return sorted(
        (p.levels["sync_standbys"], p.levels["async_standbys"]) for p in found
    )


@pytest.mark.django_db
def test_the_mixed_design_has_the_four_patterns_of_the_report(standbys):
    draft = replace(
        standbys,
        levels=standbys.levels
        | {"sync_standbys": [0, 1, 2, 3], "async_standbys": [0, 1, 2, 3]},
        parameters=standbys.parameters | {"standbys": 3},
    )
    found = plans(campaigns.create(draft=draft))
    assert pairs(found) == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert {len(plan.clusters) for plan in found} == {3}
    assert estimate(draft).runs == 4


@pytest.mark.django_db
def test_standbys_are_three_at_most_and_all_pairs_share_a_loaded_primary(standbys):
    levels = {"sync_standbys": [0, 3], "async_standbys": [0, 1]}
    campaign = campaigns.create(
        draft=replace(standbys, levels=standbys.levels | levels)
    )
    found = plans(campaign)
    assert pairs(found) == [(0, 0), (0, 1), (3, 0)]
    assert len({plan.template_key for plan in found} - {""}) == 1
    assert campaign.topology.kind == "streaming"


@pytest.mark.django_db
def test_what_replication_needs_overrules_the_configuration_and_is_told(standbys):
    few = factories.configuration("few", settings={"max_wal_senders": "1"})
    found = plans(campaigns.create(draft=replace(standbys, configuration=few)))
    assert {plan.settings["max_wal_senders"] for plan in found} == {"10"}
    [told] = [
        each for each in found[0].translated if each["name_to"] == "max_wal_senders"
    ]
    assert (told["value_from"], told["value_to"]) == ("1", "10")


@pytest.mark.django_db
def test_the_room_of_the_standbys_is_asked_for(standbys):
    def needed(draft):
        design = designs.resolve(draft)
        return design.needed_bytes(design.parts[0])

    alone = replace(
        standbys, levels=standbys.levels | {"sync_standbys": [0], "async_standbys": [0]}
    )
    three = replace(
        standbys, levels=standbys.levels | {"sync_standbys": [3], "async_standbys": [0]}
    )
    assert needed(three) > needed(alone) + 3 * 10**9


@pytest.mark.django_db
def test_a_plan_from_before_there_were_arrangements_is_one_cluster(update):
    stored = plans(campaigns.create(draft=update))[0].as_json()
    for name in ("clusters", "machines", "cores"):
        del stored[name]
    plan = RunPlan.from_json(stored)
    assert (plan.clusters, plan.machines, plan.cores) == ((), (), 0)


@pytest.mark.django_db
def test_standbys_lie_on_other_machines_by_turns_and_the_run_holds_them_all(
    standbys, server
):
    others = [factories.server() for _number in range(2)]
    for each in others:
        factories.installation(each, "18.4", has_psql=True, pgbench_version_num=180004)
    draft = replace(
        standbys,
        levels=standbys.levels | {"sync_standbys": [1], "async_standbys": [2]},
        cluster_servers=others,
    )
    campaign = campaigns.create(draft=draft)
    [plan] = plans(campaign)
    assert [(each.name, each.machine) for each in plan.clusters] == [
        ("standby1", "db2"),
        ("standby2", "db3"),
        ("standby3", "db2"),
    ]
    assert machines_of(campaign.runs.get()) == [
        server.pk,
        *sorted(each.pk for each in others),
    ]
    nodes = campaign.topology.nodes.filter(role="clusters")
    assert {node.server for node in nodes} == set(others)


@pytest.mark.django_db
def test_a_machine_for_clusters_needs_the_release_and_no_other_part(
    standbys, server, update
):
    other = factories.server(versions=("17.2",))
    draft = replace(standbys, cluster_servers=[other, server])
    found = {(each.code, each.field) for each in estimate(draft).problems}
    assert found == {
        ("version_missing", "cluster_servers"),
        ("machine_has_a_part", "cluster_servers"),
    }
    needless = replace(update, cluster_servers=[other])
    assert [each.code for each in estimate(needless).problems] == [
        "no_further_clusters"
    ]


@pytest.mark.django_db
def test_data_that_no_package_makes_here_are_refused_before_queueing(
    update, monkeypatch
):
    monkeypatch.setattr(definition, "_is_installed", lambda name: name != "tpchgen-cli")
    sized = registry.get("block-size")
    asked = replace(
        update,
        scenario=sized.slug,
        levels={},
        parameters={each.name: each.default for each in sized.parameters},
    )
    found = {each.code: each for each in estimate(designs.resolve(asked)).problems}
    assert "tpchgen-cli" in found["missing_package"].message
    assert found["missing_package"].remedy


# Programs that a workload would have psql or pgbench run: tried on both, and refused.


# Each makes a file; MARK is its path.
OF_PSQL = (
    "\\! touch MARK",
    "SELECT 1 \\! touch MARK",
    "SELECT 1;\nSELECT 2 AS a \\g | touch MARK",
    "SELECT 'it''s' \\! touch MARK",
    "SELECT $a$ ' $a$ \\! touch MARK",
    "/* ' */ SELECT 1 \\! touch MARK",
    "-- nothing\r\\! touch MARK",
    "SET standard_conforming_strings = off;\nSELECT '\\' ' \\! touch MARK",
    "SET client_encoding = sjis;\nSELECT 'あ', ' \\! touch MARK",
    "SELECT 1 AS a \\gset\n\\copy (SELECT 1) TO PROGRAM 'touch MARK'",
    "SELECT 1 \\set b `touch MARK`",
)
OF_PGBENCH = (
    "\\shell touch MARK\nSELECT 1;",
    "SELECT 1; \\shell touch MARK",
    "SELECT 1 \\SHELL touch MARK",
    "SELECT 1; \\ \\\n shell touch MARK",
    "SELECT 1; -- nothing\r\\shell touch MARK",
    "SELECT 1; \\setshell a sh -c 'touch MARK; echo 1'",
)


@pytest.fixture
def run(tmp_path):
    """Run a program of PostgreSQL 18 against the tests' database; whether the mark was made."""
    bindir = postgresql_binaries(tmp_path, myself()).postgresql18
    place = connection.settings_dict
    variables = {
        "PGHOST": place["HOST"],
        "PGPORT": str(place["PORT"]),
        "PGUSER": place["USER"],
        "PGPASSWORD": place["PASSWORD"],
        "PGDATABASE": place["NAME"],
    }
    mark = tmp_path / "mark"

    def ran(program, *options, text):
        script = tmp_path / "script.sql"
        script.write_bytes(text.replace("MARK", str(mark)).encode())
        argv = [bindir / program, *options, "-f", script]
        environment = os.environ | variables
        subprocess.run(
            argv, check=False, env=environment, capture_output=True, timeout=20
        )
        found = mark.exists()
        mark.unlink(missing_ok=True)
        return found

    return ran


def refused(**content):
    scripts = content.pop("scripts", (GivenScript("read", "SELECT 1;"),))
    return [
        each.code
        for each in workloads.faults(WorkloadContent(scripts=scripts, **content))
    ]


@pytest.mark.django_db(transaction=True)
def test_what_psql_runs_as_a_program_is_refused_as_sql_before_the_load(run):
    ran = [sql for sql in OF_PSQL if run("psql", "-X", "-q", text=sql)]
    assert ran == list(OF_PSQL)
    assert [refused(init_sql=sql) for sql in OF_PSQL] == [["psql_command"]] * len(
        OF_PSQL
    )
    assert refused(init_sql="INSERT INTO a SELECT 'it''s', $$ ! $$; -- 1 / 2") == []


@pytest.mark.django_db(transaction=True)
def test_what_pgbench_runs_as_a_program_is_refused_as_a_script(run, settings):
    ran = [text for text in OF_PGBENCH if run("pgbench", "-n", "-t", "1", text=text)]
    assert ran == list(OF_PGBENCH)
    for text in OF_PGBENCH:
        assert "shell" in refused(scripts=(GivenScript("a", text),))
    settings.ALLOW_SHELL_SCRIPTS = True
    assert refused(scripts=(GivenScript("a", OF_PGBENCH[1]),)) == []
