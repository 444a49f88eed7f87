"""Arrangements of several clusters on a real target: as a factor of any scenario."""

import os
import shutil
import signal
from dataclasses import replace

import pytest

from runs.execution.clusters import standbys
from runs.execution.clusters.further_clusters import Arrangement
from runs.execution.errors import Detached, TargetProblem
from runs.execution.plan import RunPlan
from runs.scenarios import arrangements, pooler
from runs.scenarios.fixed_point_update import FixedPointUpdate
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute, watched

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]


# Arrangements as a factor of a scenario that knows nothing of them, on a real target.


def within(plan: RunPlan, level: str, **parameters) -> RunPlan:
    """The plan of a fixed-point update within that arrangement."""
    cell = {"version": "16.14", "clients": 2, "arrangement": level}
    return arranged(
        plan, "fixed-point-update", cell, {"scale": 1, "duration": 2} | parameters
    )


@pytest.mark.parametrize(
    ("level", "proof"),
    [
        ("mixed", ["standby1\tstreaming\tsync", "standby2\tstreaming\tasync"]),
        ("logical", ["subscriber\tstreaming\tasync"]),
    ],
)
def test_what_follows_the_database_is_proved_and_its_delay_measured(
    direct, plan, base_dir, level, proof
):
    found = execute(direct(within(plan, level)))
    assert artifact(found, "arrangement-after.txt").splitlines() == proof
    assert found.measurements["tps"] > 0
    assert found.measurements["behind_bytes"] >= 0
    assert "clusters_share_machine" in [note.code for note in found.notes]
    assert nothing_is_left(base_dir) == NOTHING


def test_a_commit_before_the_load_waits_for_no_standby_that_is_gone(
    direct, plan, base_dir
):
    """Warming up may commit; without a look at the standbys it would wait for a step's hour."""
    director = direct(within(plan, "sync"))
    director.bench.look_s = 0.5

    class Bereft(FixedPointUpdate):
        async def warm(self, bench):
            pid = (
                (base_dir / "clusters/run-7-standby1/data/postmaster.pid")
                .read_text()
                .split()[0]
            )
            os.kill(int(pid), signal.SIGKILL)
            await bench.sql("commit", "CREATE TABLE waits_for_the_standby ();")

    bereft = replace(director.procedure, procedure=Bereft())
    director.procedure = director.preparing.procedure = bereft
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "standby_gone"
    assert nothing_is_left(base_dir) == NOTHING


def test_standbys_that_a_lost_worker_has_stopped_are_not_gone(direct, plan, base_dir):
    replicated = within(plan, "sync")
    director = direct(replicated)
    stopped = base_dir / "runs/7-1/steps/stop"

    def lost_while_collecting():
        while True:
            yield "detach" if stopped.exists() else "go_on"

    with pytest.raises(Detached):
        watched(director, lost_while_collecting(), interval_s=0.02)
    found = execute(direct(replicated, taken_over=True))
    assert found.measurements["tps"] > 0
    assert nothing_is_left(base_dir) == NOTHING


def test_a_standby_that_ends_while_it_catches_up_is_not_waited_for(
    direct, plan, base_dir, monkeypatch
):
    start = Arrangement._start

    async def started_and_killed(self, member):
        await start(self, member)
        pid = (
            (base_dir / "clusters/run-7-standby1/data/postmaster.pid")
            .read_text()
            .split()[0]
        )
        os.kill(int(pid), signal.SIGKILL)

    monkeypatch.setattr(Arrangement, "_start", started_and_killed)
    monkeypatch.setattr(standbys, "CATCH_UP_SECONDS", 120)
    director = direct(within(plan, "sync"))
    director.bench.look_s = 0.5
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "standby_gone"
    assert nothing_is_left(base_dir) == NOTHING


def test_a_pool_is_in_front_of_the_database_while_the_load_is_on(
    direct, plan, base_dir
):
    if shutil.which(arrangements.PROGRAMS["pooled"], path="/usr/sbin:/usr/bin") is None:
        pytest.skip("pgbouncer is missing")
    director = direct(within(plan, "pooled"))
    found = execute(director)
    assert found.measurements["tps"] > 0
    pgbench = next(
        each for each in director.reporter.commands if each.name == "pgbench"
    )
    assert pgbench.argv[pgbench.argv.index("-p") + 1] == str(pooler.PORT)
    assert "closing because: client close request" in artifact(found, "pgbouncer.log")
    assert nothing_is_left(base_dir) == NOTHING


def test_a_pool_that_is_not_installed_is_told(direct, plan, base_dir, monkeypatch):
    monkeypatch.setattr(pooler, "PATH", "PATH=/nowhere:/usr/local/games")
    monkeypatch.setattr(pooler, "SECONDS_TO_START", 1)
    with pytest.raises(TargetProblem) as caught:
        execute(direct(within(plan, "pooled")))
    assert caught.value.code == "pooler_does_not_start"
    assert nothing_is_left(base_dir) == NOTHING


def test_a_run_that_waited_while_its_scenario_was_withdrawn_says_so(direct, plan):
    parameters = {"scale": 1, "duration": 1, "pairs": 4}
    with pytest.raises(TargetProblem) as caught:
        execute(direct(arranged(plan, "duet", {"clients": 1}, parameters)))
    assert caught.value.code == "scenario_withdrawn"
