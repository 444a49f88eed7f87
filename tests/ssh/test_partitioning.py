"""The partitioning scenarios on a real target: every level, and what their traps would hide."""

from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.scenarios import registry
from tests.ssh.directing import execute

pytestmark = pytest.mark.openssh


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
    for run_id, way in enumerate(("static", "dynamic", "direct", "declarative"), start=7):
        found = execute(direct(planned("partitioning", run_id, "files", trigger=way)))
        if not found.measurements["rows_per_second"] > 0:
            missing.append(way)
    assert not missing


def test_a_trigger_that_drops_rows_gives_no_result(direct, planned, monkeypatch):
    monkeypatch.setattr("runs.scenarios.partitioning.insert.DYNAMIC", "    PERFORM 1;\n")
    with pytest.raises(TargetProblem) as refused:
        execute(direct(planned("partitioning", 7, trigger="dynamic")))
    assert refused.value.code == "rows_missing"


def test_each_scan_is_the_one_that_the_plan_shows(direct, planned):
    kinds = {}
    for run_id, scan in enumerate(("sequential", "index", "bitmap", "index-only"), start=7):
        plan = planned(
            "partitioning-search", run_id, "partitioned", table_kind="partitioned", scan=scan
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


def test_a_plan_that_is_not_that_of_the_level_gives_no_result(direct, planned, monkeypatch):
    """Without VACUUM an index-only scan fetches rows of the table, against what its level says."""
    plan = planned("partitioning-search", 7, table_kind="unpartitioned", scan="index-only")
    director = direct(plan)
    sql = director.bench.sql

    async def without_vacuum(name, statement, **options):
        return await sql(name, statement.replace("VACUUM ANALYZE", "ANALYZE"), **options)

    monkeypatch.setattr(director.bench, "sql", without_vacuum)
    with pytest.raises(TargetProblem) as refused:
        execute(director)
    assert refused.value.code == "other_plan"


def test_a_day_is_truncated_or_deleted_vacuumed_and_analysed(direct, planned):
    one = execute(direct(planned("partitioning-maintenance", 7, table_kind="unpartitioned")))
    assert {"elapsed_removal", "elapsed_vacuum", "elapsed_analyze"} <= set(one.measurements)
    parts = execute(direct(planned("partitioning-maintenance", 8, table_kind="declarative")))
    assert "elapsed_removal" in parts.measurements
    assert "elapsed_vacuum" not in parts.measurements
