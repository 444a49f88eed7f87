"""The pgbench scenario on a real target, and percentiles of latency against an exact reading."""

from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan, WorkloadPlan
from runs.scenarios import percentiles, registry
from runs.scenarios.metrics import LATENCY_PERCENTILES
from runs.tools.pgbench.scripts import GivenScript
from runs.tools.pgbench.transaction_log import read_transaction_log
from tests.ssh.directing import execute, left_running, names

pytestmark = pytest.mark.openssh


# The pgbench scenario on a real target: scales, modes, rates, seeds, and scripts of one's own.


LEVELS = {
    "script": "tpcb-like",
    "scale": 2,
    "clients": 2,
    "query_mode": "simple",
    "connection": "kept",
}
PARAMETERS = {each.name: each.default for each in registry.get("pgbench").parameters}


@pytest.fixture
def loading(plan) -> RunPlan:
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


@pytest.mark.usefixtures("loaded_before")
@pytest.mark.full_load
def test_a_run_has_the_mode_rate_tries_and_seed_that_were_asked_for(direct, loading):
    levels = loading.levels | {
        "query_mode": "prepared",
        "connection": "each-transaction",
    }
    asked = {
        "rate": 50,
        "max_tries": 3,
        "random_seed": 42,
        "warm_up": 1,
        "fillfactor": 90,
    }
    director = direct(
        replace(loading, levels=levels, parameters=loading.parameters | asked)
    )
    found = execute(director)
    load = argv(director, "pgbench")
    for option in ("-M prepared", "-R 50", "--max-tries=3", "--random-seed=42", " -C "):
        assert option in load
    assert "-s 2" in argv(director, "load")
    assert "-F 90" in argv(director, "load")
    assert "-T 1 " in argv(director, "warm-up")
    assert 10 < found.measurements["tps"] < 90
    # The tables at this scale factor take about 30 MB, the empty database 7.
    assert 20 < found.measurements["database_size"] < 60
    assert found.measurements["failed_transactions"] == 0


@pytest.mark.usefixtures("loaded_before")
def test_own_scripts_run_by_their_weights_on_tables_of_their_own(direct, loading):
    workload = WorkloadPlan(
        slug="orders",
        number=3,
        scripts=(
            GivenScript("read", "SELECT count(*) FROM orders WHERE id < :most;\n", 3),
            GivenScript("write", "INSERT INTO orders (id) VALUES (:client_id);\n", 1),
        ),
        variables={"most": "100"},
        init_sql="CREATE TABLE orders (id int);\nINSERT INTO orders SELECT generate_series(1, "
        "100 * :scale);",
        has_own_tables=True,
    )
    director = direct(
        replace(
            loading, levels=loading.levels | {"script": "orders@3"}, workload=workload
        )
    )
    found = execute(director)
    assert found.measurements["tps"] > 0
    assert "script-1.sql@3" in argv(director, "pgbench")
    assert "script-2.sql@1" in argv(director, "pgbench")
    assert "-D most=100" in argv(director, "pgbench")
    assert "load" not in director.reporter.steps
    summary = next(
        each for each in found.artifacts if each.name == "pgbench.out"
    ).content.decode()
    assert "script 2" in summary.lower()


@pytest.mark.usefixtures("loaded_before")
def test_a_query_that_never_ends_ends_by_the_limit_that_was_set(
    direct, loading, base_dir
):
    """Without one the step's own limit ends it: its duration and ten minutes."""
    script = GivenScript("sleep", "SELECT 1;\nSELECT pg_sleep(3600);\n", 1)
    workload = WorkloadPlan(
        slug="own", number=1, scripts=(script,), has_own_tables=True
    )
    settings = loading.settings | {"statement_timeout": "500ms"}
    levels = loading.levels | {"script": "own@1", "clients": 1}
    with pytest.raises(TargetProblem) as caught:
        execute(
            direct(
                replace(loading, levels=levels, workload=workload, settings=settings)
            )
        )
    assert caught.value.code == "pgbench_clients_aborted"
    assert "canceling statement due to statement timeout" in caught.value.message
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == names(base_dir / "clusters") == []


# Percentiles of latency of real runs, against an exact reading of the same logs.


prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def logged(plan) -> RunPlan:
    return replace(plan, parameters={"scale": 1, "duration": 1})


@pytest.fixture
def logs(monkeypatch):
    """What lies in the run's folder when the load has ended; `change` is called with it before."""
    seen = {}
    real = percentiles.add

    async def add(bench, found):
        folder = Path(bench.directory)
        seen.update(
            {path.name: path.read_bytes() for path in folder.glob("pgbench_log.*")}
        )
        change(folder)
        await real(bench, found)

    def change(folder):
        """Nothing, unless a test says so."""

    def let(act):
        nonlocal change
        change = act
        return seen

    monkeypatch.setattr(percentiles, "add", add)
    return let


def codes(found):
    return {note.code: note for note in found.notes}


def percentiles_of(found):
    return {
        percent: found.measurements[metric.name]
        for percent, metric in LATENCY_PERCENTILES.items()
        if metric.name in found.measurements
    }


def check(found, log):
    """A slow machine has too few transactions for the high ones."""
    told = percentiles_of(found)
    enough = [
        each
        for each in LATENCY_PERCENTILES
        if log.latencies.count * (100 - float(each)) >= 1000
    ]
    assert set(told) == set(enough)
    assert "50" in told
    for percent, value in told.items():
        exact = log.latencies.percentile(float(percent)) / 1000
        assert value == pytest.approx(exact, rel=0.01)


@pytest.mark.hurried
@prepared
def test_percentiles_are_those_of_all_transactions_or_of_a_sample(
    direct, logged, logs, base_dir, monkeypatch
):
    """The sample is that of a pgbench of 9.6: the one of 18, called as an old one is."""
    seen = logs(lambda folder: None)
    director = direct(logged)
    found = execute(director)
    steps = director.reporter.steps
    assert steps.index("monitor") < steps.index("count-latencies")
    log = read_transaction_log(seen)
    assert log.latencies.count == found.measurements["transactions"]
    check(found, log)
    assert "latencies_sampled" not in codes(found)
    assert "latencies.txt" in {each.name for each in found.artifacts}

    monkeypatch.setattr(percentiles, "MOST_LINES", 10_000)
    seen.clear()
    director = direct(
        replace(logged, run_id=8, client_version_num=90624, levels={"clients": 4})
    )
    found = execute(director)
    argv = next(
        each.argv for each in director.reporter.commands if each.name == "pgbench"
    )
    assert "--sampling-rate=0.25" in argv
    assert not [each for each in argv if "--log-prefix" in each]
    log = read_transaction_log(seen)
    assert len(seen) == 2  # threads
    assert 0.1 < log.latencies.count / found.measurements["transactions"] < 0.4
    check(found, log)
    assert codes(found)["latencies_sampled"].level == "info"
    assert names(base_dir / "runs") == []


def remove_all(folder):
    for path in folder.glob("pgbench_log.*"):
        path.unlink()


def cut_in_half(folder):
    for path in folder.glob("pgbench_log.*"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.hurried
@prepared
def test_figures_stand_without_percentiles(direct, logged, logs):
    for run_id, harm in enumerate((remove_all, cut_in_half), start=7):
        logs(harm)
        found = execute(direct(replace(logged, run_id=run_id)))
        assert found.measurements["tps"] > 0
        assert percentiles_of(found) == {}
        assert codes(found)["percentiles_missing"].level == "info"
