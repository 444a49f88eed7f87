"""CPU cores on a real target: the affinity, what is idle, and what is refused."""

import os
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.scenarios import registry
from tests.ssh.directing import execute, left_running, names

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]


@pytest.fixture
def plan(plan):
    """One of the machine's cores for two clients."""
    return replace(
        plan,
        scenario="cpu-cores",
        levels={"version": "16.14", "cores": 1},
        parameters={"scale": 1, "duration": 2, "clients": 2},
        cores=1,
    )


def step(director, name):
    return next(each for each in director.reporter.commands if each.name == name)


def test_a_run_is_measured_on_its_cores_and_so_is_their_idle_time(direct, plan, base_dir):
    director = direct(plan)
    found = execute(director)
    first = min(os.sched_getaffinity(0))
    assert step(director, "start").argv[:3] == ("taskset", "-c", str(first))
    assert step(director, "start-to-load").argv[0] != "taskset"
    assert step(director, "read-affinity").stdout.strip() == str(first)
    # Warmed on the cores that are measured, since the start empties the buffer pool.
    steps = director.reporter.steps
    assert steps.index("start") < steps.index("prewarm") < steps.index("pgbench")
    assert found.measurements["tps"] > 0
    assert "-P ALL" in " ".join(step(director, "monitor-print").argv)
    assert "cores_used" in [note.code for note in found.notes]
    assert left_running(base_dir) == []


def test_more_cores_than_the_machine_has_are_refused_before_the_start(direct, plan, base_dir):
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(plan, cores=4096)))
    assert caught.value.code == "cores_not_there"
    assert "4096 cores" in caught.value.message
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


def test_a_machine_that_refuses_affinity_is_told_as_such(direct, plan, base_dir, tmp_path):
    """As a container may, whose seccomp profile forbids sched_setaffinity."""
    director = direct(plan)
    step = director.bench.step

    async def refusing(name, argv, **options):
        if name == "try-affinity":
            script = "echo 'taskset: failed to set affinity: Operation not permitted' >&2; exit 1"
            argv = ["sh", "-c", script]
        return await step(name, argv, **options)

    director.bench.step = refusing
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "affinity_refused"
    assert "Operation not permitted" in caught.value.message
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


def test_fewer_clients_than_cores_are_no_experiment():
    scenario = registry.get("cpu-cores")
    assert scenario.objection({"cores": 4}, {"clients": 2}).of == "clients"
    assert scenario.objection({"cores": 4}, {"clients": 4}) is None
