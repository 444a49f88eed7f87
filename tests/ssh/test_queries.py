"""Scenarios of queries on a real target: parallel ones, partitioned tables, full-text search."""

import json
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.scenarios import parallel_query, registry
from runs.scenarios.datasets import tpcds
from tests.ssh.arranging import NOTHING, arranged, nothing_is_left, with_contrib
from tests.ssh.directing import execute, names

pytestmark = pytest.mark.openssh


# The parallel-query scenario: made, sent, loaded, run and explained on a real target.


SCENARIO = registry.get("parallel-query")


@pytest.fixture
def parallel_plan(plan, monkeypatch):
    """Without the largest table, which only the other query reads."""
    fewer = {
        name: key
        for name, key in tpcds.TABLES.items()
        if name != "customer_demographics"
    }
    monkeypatch.setattr(tpcds, "TABLES", fewer)
    levels = {"version": "16.14", "query": "Q11", "workers": 2, "nestloop": "off"}
    cheap = {"parallel_setup_cost": "0", "parallel_tuple_cost": "0"}
    always = cheap | {"min_parallel_table_scan_size": "0"}
    settings = dict(SCENARIO.cluster(160014, levels).settings)
    return replace(
        plan,
        scenario="parallel-query",
        levels=levels,
        parameters={"scale_percent": 2, "statement_timeout": 60},
        settings=plan.settings | settings | always | {"work_mem": "64MB"},
        cluster_key="tpcds",
    )


def artifact(found, name):
    return next(each.content.decode() for each in found.artifacts if each.name == name)


def test_the_time_of_the_parallel_part_is_found_and_its_plan_kept(
    direct, parallel_plan, base_dir, monkeypatch
):
    first = direct(parallel_plan)
    found = execute(first)
    figures = found.measurements
    assert figures["workers_planned"] >= figures["workers_launched"] >= 1
    assert 0 < figures["parallel_part_elapsed"] <= figures["elapsed"] * 20
    assert json.loads(artifact(found, "plan-query.json"))[0]["Plan"]
    assert not [name for name in names(base_dir / "runs") if name.endswith(".csv")]

    alone = replace(
        parallel_plan, run_id=8, levels=parallel_plan.levels | {"workers": 0}
    )
    second = direct(alone)
    found = execute(second)
    assert "create-tables" not in second.reporter.steps
    assert found.measurements["workers_planned"] == 0
    assert "parallel_part_elapsed" not in found.measurements
    assert "not_parallel" not in [note.code for note in found.notes]

    session = parallel_query.session
    costly = "SET parallel_setup_cost = 1e9"
    monkeypatch.setattr(
        parallel_query, "session", lambda bench: [*session(bench), costly]
    )
    found = execute(direct(replace(parallel_plan, run_id=10)))
    assert "not_parallel" in [note.code for note in found.notes]

    cut = direct(
        replace(
            parallel_plan,
            run_id=9,
            # The form takes whole seconds, which the query of so few rows does not need.
            parameters=parallel_plan.parameters | {"statement_timeout": 0.005},
            levels=parallel_plan.levels | {"nestloop": "on", "workers": 0},
        )
    )
    found = execute(cut)
    assert "statement_timeout" in [note.code for note in found.notes]
    assert found.measurements["elapsed"] == 0.005
    assert "Plan" in artifact(found, "plan-query.json")


# The partitioning scenarios on a real target: every level, and what their traps would hide.


@pytest.fixture
def planned(plan):
    """A plan of one of the scenarios at some levels; runs of equal data share a cluster."""

    def make(slug, run_id, key="", **levels):
        scenario = registry.get(slug)
        parameters = {each.name: each.default for each in scenario.parameters}
        levels = {"version": "16.14", "months": 1} | levels
        shared = {} if scenario.writes else {"cluster_key": key}
        copied = {"template_key": key} if scenario.writes else {}
        return replace(
            plan,
            run_id=run_id,
            scenario=slug,
            levels=levels,
            parameters=parameters | {"rows_per_partition": 300},
            settings=plan.settings | dict(scenario.cluster(160014, levels).settings),
            **{"cluster_key": "", "template_key": ""} | shared | copied,
        )

    return make


def test_each_way_of_inserting_stores_every_row_in_its_partition(direct, planned):
    missing = []
    for run_id, way in enumerate(
        ("static", "dynamic", "direct", "declarative"), start=7
    ):
        found = execute(direct(planned("partitioning", run_id, "files", trigger=way)))
        if not found.measurements["rows_per_second"] > 0:
            missing.append(way)
    assert not missing


def test_a_trigger_that_drops_rows_gives_no_result(direct, planned, monkeypatch):
    monkeypatch.setattr(
        "runs.scenarios.partitioning.insert.DYNAMIC", "    PERFORM 1;\n"
    )
    with pytest.raises(TargetProblem) as refused:
        execute(direct(planned("partitioning", 7, trigger="dynamic")))
    assert refused.value.code == "rows_missing"


def test_each_scan_is_the_one_that_the_plan_shows(direct, planned):
    kinds = {}
    for run_id, scan in enumerate(
        ("sequential", "index", "bitmap", "index-only"), start=7
    ):
        plan = planned(
            "partitioning-search",
            run_id,
            "partitioned",
            table_kind="partitioned",
            scan=scan,
        )
        found = execute(direct(plan))
        kinds[scan] = found.measurements["elapsed"] > 0
    assert all(kinds.values())
    updated = planned(
        "partitioning-search",
        20,
        "updated",
        table_kind="declarative",
        scan="index-only-after-updates",
    )
    assert execute(direct(updated)).measurements["blocks_hit"] > 0


def test_a_plan_that_is_not_that_of_the_level_gives_no_result(
    direct, planned, monkeypatch
):
    """Without VACUUM an index-only scan fetches rows of the table, against what its level says."""
    plan = planned(
        "partitioning-search", 7, table_kind="unpartitioned", scan="index-only"
    )
    director = direct(plan)
    sql = director.bench.sql

    async def without_vacuum(name, statement, **options):
        return await sql(
            name, statement.replace("VACUUM ANALYZE", "ANALYZE"), **options
        )

    monkeypatch.setattr(director.bench, "sql", without_vacuum)
    with pytest.raises(TargetProblem) as refused:
        execute(director)
    assert refused.value.code == "other_plan"


def test_a_day_is_truncated_or_deleted_vacuumed_and_analysed(direct, planned):
    one = execute(
        direct(planned("partitioning-maintenance", 7, table_kind="unpartitioned"))
    )
    assert {"elapsed_removal", "elapsed_vacuum", "elapsed_analyze"} <= set(
        one.measurements
    )
    parts = execute(
        direct(planned("partitioning-maintenance", 8, table_kind="declarative"))
    )
    assert "elapsed_removal" in parts.measurements
    assert "elapsed_vacuum" not in parts.measurements


# The full-text scenarios on a real target: indexes, concurrent inserts, and pitfalls.


SMALL = {"records": 1000, "duration": 1, "clients": 1, "insert_rate": 100}


@pytest.fixture
def searching(plan):
    def make(slug, run_id, **levels):
        scenario = registry.get(slug)
        levels = {"version": "16.14", "text_column": "description"} | levels
        options = scenario.cluster(160014, levels)
        return replace(
            plan,
            run_id=run_id,
            scenario=slug,
            levels=levels,
            parameters=SMALL,
            settings=plan.settings | dict(options.settings),
            initdb_options=options.initdb_options,
            cluster_key="",
        )

    return make


@pytest.mark.usefixtures("loaded_before")
def test_an_index_finds_the_same_records_and_is_used(direct, searching):
    without = searching("full-text-search", 7, index="none", background_load="off")
    beside = searching("full-text-search", 8, index="bigram", background_load="on")
    alone = execute(direct(without)).measurements
    found = execute(direct(beside)).measurements
    assert alone["hits"] == found["hits"] > 0
    assert alone["latency_average"] > 0
    assert found["index_bytes"] > 0
    assert 30 < found["background_inserts"] < 150


@pytest.mark.usefixtures("loaded_before")
def test_a_subscriber_alone_has_the_index_and_is_searched(direct, plan, base_dir):
    levels = {
        "index": "bigram",
        "text_column": "description",
        "background_load": "on",
        "replication": "logical",
    }
    made = arranged(plan, "full-text-search", levels, SMALL)
    made = replace(made, initdb_options=("--locale=C.UTF-8",))
    director = direct(made)
    found = execute(director)
    assert found.measurements["hits"] > 0
    assert found.measurements["index_bytes"] > 0
    assert found.measurements["behind_bytes"] >= 0
    assert 30 < found.measurements["background_inserts"] < 150
    commands = {each.name: each.argv for each in director.reporter.commands}
    assert commands["pgbench"][commands["pgbench"].index("-p") + 1] == "5433"
    assert (
        commands["background-inserts"][commands["background-inserts"].index("-p") + 1]
        == commands["create-tables"][commands["create-tables"].index("-p") + 1]
    )
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.usefixtures("loaded_before")
def test_inserts_are_those_of_the_publisher(direct, plan, base_dir):
    levels = {"index": "bigram", "text_column": "title", "replication": "logical"}
    made = arranged(plan, "full-text-inserts", levels, SMALL)
    found = execute(direct(replace(made, initdb_options=("--locale=C.UTF-8",))))
    assert found.measurements["inserts_per_second"] > 0
    assert found.measurements["behind_bytes"] >= 0
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.usefixtures("loaded_before")
@pytest.mark.full_load
@pytest.mark.parametrize(
    "version", [pytest.param("10.23", marks=pytest.mark.slow), "18.0"]
)
def test_trigrams_find_the_same_records_in_a_fraction_of_the_time(
    direct, searching, account, version
):
    """With a locale of the server's own, from 17 on, pg_trgm would know no Japanese letter."""
    found = {}
    for run_id, index in enumerate(("none", "trgm"), start=7):
        plan = with_contrib(
            searching("full-text-search", run_id, index=index), account, version
        )
        levels = plan.levels | {"background_load": "off"}
        settings = (
            registry.get("full-text-search").cluster(plan.version_num, levels).settings
        )
        settings = {"shared_buffers": "64MB", "fsync": "off", **settings}
        parameters = SMALL | {"records": 3000}
        changed = {"levels": levels, "settings": settings, "parameters": parameters}
        found[index] = execute(direct(replace(plan, **changed)))
    hits = {index: each.measurements["hits"] for index, each in found.items()}
    assert hits["trgm"] == hits["none"] > 0
    searches = {
        index: each.measurements["latency_average"] for index, each in found.items()
    }
    # 70 to 140 times in the report, on 203,317 records; here on 3,000.
    assert searches["trgm"] < searches["none"] / 3


@pytest.mark.usefixtures("loaded_before")
def test_a_search_that_does_not_use_the_index_gives_no_result(direct, searching):
    plan = searching("full-text-search", 7, index="bigram", background_load="off")
    settings = plan.settings | {"enable_bitmapscan": "off", "enable_indexscan": "off"}
    with pytest.raises(TargetProblem) as refused:
        execute(direct(replace(plan, settings=settings)))
    assert refused.value.code == "other_plan"


@pytest.mark.usefixtures("loaded_before")
def test_inserts_a_second_are_counted_with_an_index(direct, searching):
    found = execute(direct(searching("full-text-inserts", 7, index="bigram")))
    assert found.measurements["inserts_per_second"] == found.measurements["tps"] > 0
