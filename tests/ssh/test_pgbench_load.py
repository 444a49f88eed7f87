"""The pgbench scenario on a real target: scales, modes, rates, seeds, and scripts of one's own."""

from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan, ScriptPlan, WorkloadPlan
from runs.scenarios import registry
from tests.ssh.directing import execute, left_running, names

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]

LEVELS = {
    "script": "tpcb-like",
    "scale": 2,
    "clients": 2,
    "query_mode": "simple",
    "connection": "kept",
}
PARAMETERS = {each.name: each.default for each in registry.get("pgbench").parameters}


@pytest.fixture
def plan(plan) -> RunPlan:
    return replace(
        plan,
        scenario="pgbench",
        levels=LEVELS | {"version": "16.14"},
        parameters=PARAMETERS | {"duration": 1},
        cluster_key="",
    )


def argv(director, step):
    found = next(each for each in director.reporter.commands if each.name == step)
    return " ".join(found.argv)


@pytest.mark.full_load
def test_a_run_has_the_mode_rate_tries_and_seed_that_were_asked_for(direct, plan):
    levels = plan.levels | {"query_mode": "prepared", "connection": "each-transaction"}
    asked = {"rate": 50, "max_tries": 3, "random_seed": 42, "warm_up": 1, "fillfactor": 90}
    director = direct(replace(plan, levels=levels, parameters=plan.parameters | asked))
    found = execute(director)
    load = argv(director, "pgbench")
    for option in ("-M prepared", "-R 50", "--max-tries=3", "--random-seed=42", " -C "):
        assert option in load
    assert "-s 2" in argv(director, "load")
    assert "-F 90" in argv(director, "load")
    assert "-T 1 " in argv(director, "warm-up")
    assert 10 < found.measurements["tps"] < 90
    assert found.measurements["failed_transactions"] == 0


def test_own_scripts_run_by_their_weights_on_tables_of_their_own(direct, plan):
    workload = WorkloadPlan(
        slug="orders",
        number=3,
        scripts=(
            ScriptPlan("read", "SELECT count(*) FROM orders WHERE id < :most;\n", 3),
            ScriptPlan("write", "INSERT INTO orders (id) VALUES (:client_id);\n", 1),
        ),
        variables={"most": "100"},
        init_sql="CREATE TABLE orders (id int);\nINSERT INTO orders SELECT generate_series(1, "
        "100 * :scale);",
        has_own_tables=True,
    )
    director = direct(replace(plan, levels=plan.levels | {"script": "orders@3"}, workload=workload))
    found = execute(director)
    assert found.measurements["tps"] > 0
    assert "script-1.sql@3" in argv(director, "pgbench")
    assert "script-2.sql@1" in argv(director, "pgbench")
    assert "-D most=100" in argv(director, "pgbench")
    assert "load" not in director.reporter.steps
    summary = next(each for each in found.artifacts if each.name == "pgbench.out").content.decode()
    assert "script 2" in summary.lower()


def test_a_query_that_never_ends_ends_by_the_limit_that_was_set(direct, plan, base_dir):
    """Without one the step's own limit ends it: its duration and ten minutes."""
    script = ScriptPlan("sleep", "SELECT 1;\nSELECT pg_sleep(3600);\n", 1)
    workload = WorkloadPlan("own", 1, (script,), {}, has_own_tables=True)
    settings = plan.settings | {"statement_timeout": "500ms"}
    levels = plan.levels | {"script": "own@1", "clients": 1}
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(plan, levels=levels, workload=workload, settings=settings)))
    assert caught.value.code == "pgbench_clients_aborted"
    assert "canceling statement due to statement timeout" in caught.value.message
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == names(base_dir / "clusters") == []
