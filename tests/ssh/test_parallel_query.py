"""The parallel-query scenario: made, sent, loaded, run and explained on a real target."""

import json
from dataclasses import replace

import pytest

from runs.scenarios import registry
from tests.ssh.directing import execute, names

pytestmark = pytest.mark.openssh

SCENARIO = registry.get("parallel-query")


@pytest.fixture
def plan(plan):
    levels = {"version": "16.14", "query": "Q11", "workers": 2, "nestloop": "off"}
    cheap = {"parallel_setup_cost": "0", "parallel_tuple_cost": "0"}
    always = cheap | {"min_parallel_table_scan_size": "0"}
    settings = dict(SCENARIO.cluster(160014, levels).settings)
    return replace(
        plan,
        scenario="parallel-query",
        levels=levels,
        parameters={"scale_percent": 5, "statement_timeout": 60},
        settings=plan.settings | settings | always | {"work_mem": "64MB"},
        cluster_key="tpcds",
    )


def artifact(found, name):
    return next(each.content.decode() for each in found.artifacts if each.name == name)


def test_the_time_of_the_parallel_part_is_found_and_its_plan_kept(direct, plan, base_dir):
    first = direct(plan)
    found = execute(first)
    figures = found.measurements
    assert figures["workers_planned"] >= figures["workers_launched"] >= 1
    assert 0 < figures["parallel_part_elapsed"] <= figures["elapsed"] * 20
    assert json.loads(artifact(found, "plan-query.json"))[0]["Plan"]
    assert not [name for name in names(base_dir / "runs") if name.endswith(".csv")]

    alone = replace(plan, run_id=8, levels=plan.levels | {"workers": 0})
    second = direct(alone)
    found = execute(second)
    assert "create-tables" not in second.reporter.steps
    assert found.measurements["workers_planned"] == 0
    assert "parallel_part_elapsed" not in found.measurements

    cut = direct(
        replace(
            plan,
            run_id=9,
            parameters=plan.parameters | {"statement_timeout": 1},
            levels=plan.levels | {"nestloop": "on", "workers": 0},
        )
    )
    found = execute(cut)
    if "statement_timeout" in [note.code for note in found.notes]:
        assert found.measurements["elapsed"] == 1.0
        assert "Plan" in artifact(found, "plan-query.json")
