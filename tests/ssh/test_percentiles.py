"""Percentiles of latency of real runs, against an exact reading of the same logs."""

from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.plan import RunPlan
from runs.scenarios import percentiles
from runs.scenarios.metrics import LATENCY_PERCENTILES
from runs.tools.pgbench.transaction_log import read_transaction_log
from tests.ssh.directing import execute, names

pytestmark = [pytest.mark.openssh, pytest.mark.hurried]
prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def plan(plan) -> RunPlan:
    return replace(plan, parameters={"scale": 1, "duration": 1})


@pytest.fixture
def logs(monkeypatch):
    """What lies in the run's folder when the load has ended; `change` is called with it before."""
    seen = {}
    real = percentiles.add

    async def add(bench, found):
        folder = Path(bench.directory)
        seen.update({path.name: path.read_bytes() for path in folder.glob("pgbench_log.*")})
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
        each for each in LATENCY_PERCENTILES if log.latencies.count * (100 - float(each)) >= 1000
    ]
    assert set(told) == set(enough)
    assert "50" in told
    for percent, value in told.items():
        exact = log.latencies.percentile(float(percent)) / 1000
        assert value == pytest.approx(exact, rel=0.01)


@prepared
def test_percentiles_are_those_of_all_transactions_or_of_a_sample(
    direct, plan, logs, base_dir, monkeypatch
):
    """The sample is that of a pgbench of 9.6: the one of 18, called as an old one is."""
    seen = logs(lambda folder: None)
    director = direct(plan)
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
    director = direct(replace(plan, run_id=8, client_version_num=90624, levels={"clients": 4}))
    found = execute(director)
    argv = next(each.argv for each in director.reporter.commands if each.name == "pgbench")
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


@prepared
def test_figures_stand_without_percentiles(direct, plan, logs):
    for run_id, harm in enumerate((remove_all, cut_in_half), start=7):
        logs(harm)
        found = execute(direct(replace(plan, run_id=run_id)))
        assert found.measurements["tps"] > 0
        assert percentiles_of(found) == {}
        assert codes(found)["percentiles_missing"].level == "info"
