"""Replication on a real target: a primary with standbys on one machine."""

import os
import signal
from dataclasses import replace

import pytest

from runs.execution.clusters import standbys
from runs.execution.errors import Cancelled, Detached, TargetProblem
from runs.execution.plan import RunPlan
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute, watched, when_loaded, when_measuring

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]


def with_standbys(plan: RunPlan, sync: int, asynchronous: int, **levels) -> RunPlan:
    """The plan of a cell with this many standbys."""
    cell = {
        "version": "16.14",
        "sync_standbys": sync,
        "async_standbys": asynchronous,
        "synchronous_commit": "on",
        "synchronous_by": "all",
        **levels,
    }
    parameters = {"scale": 1, "duration": 2, "clients": 4, "standbys": 0}
    return arranged(plan, "replication", cell, parameters)


def test_the_mixed_design_measures_what_it_says_and_proves_it(direct, plan, base_dir):
    director = direct(with_standbys(plan, 1, 2))
    found = execute(director)
    assert artifact(found, "replication-after.txt").splitlines() == [
        "standby1\tstreaming\tsync",
        "standby2\tstreaming\tasync",
        "standby3\tstreaming\tasync",
    ]
    assert found.measurements["tps"] > 0
    # The record is that of the load, which an arrangement was made for.
    assert "standby1" in found.settings["synchronous_standby_names"]["setting"]
    assert "settings_changed" not in [note.code for note in found.notes]
    assert found.measurements["wal_bytes_per_transaction"] > 100
    assert {"standby1_replay_bytes", "standby3_replay_bytes"} <= {
        s.name for s in found.series
    }
    kept = {each.name for each in found.artifacts}
    assert {"server-standby2.log", "settings-standby2.json", "server.log"} <= kept
    assert "clusters_share_machine" in [note.code for note in found.notes]
    steps = director.reporter.steps
    # The data are loaded before the standbys are copied, and these are stopped before the primary.
    order = ["load", "base-backup-standby1", "vacuum", "wait-for-modes", "pgbench"]
    order += ["stop-standby3", "stop-standby1", "stop"]
    assert [steps.index(name) for name in order] == sorted(
        steps.index(name) for name in order
    )
    assert nothing_is_left(base_dir) == NOTHING


def test_a_primary_alone_is_the_reference(direct, plan, base_dir):
    director = direct(with_standbys(plan, 0, 0))
    found = execute(director)
    assert found.measurements["tps"] > 0
    assert artifact(found, "replication-before.txt").strip() == ""
    assert "lag" not in director.reporter.steps
    assert nothing_is_left(base_dir) == NOTHING


def test_another_worker_goes_on_with_all_clusters_of_a_quorum(direct, plan, base_dir):
    plan = replace(
        with_standbys(plan, 2, 0, synchronous_by="majority"),
        parameters={"scale": 1, "duration": 4, "clients": 2, "standbys": 0},
    )
    first = direct(plan)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    second = direct(plan, taken_over=True)
    found = execute(second)
    assert found.measurements["tps"] > 0
    assert {
        line.split("\t")[2]
        for line in artifact(found, "replication-after.txt").splitlines()
    } == {"quorum"}
    assert nothing_is_left(base_dir) == NOTHING


def test_a_cancel_leaves_none_of_them(direct, plan, base_dir):
    plan = with_standbys(plan, 1, 1)
    director = direct(replace(plan, parameters=plan.parameters | {"duration": 60}))
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert nothing_is_left(base_dir) == NOTHING


def postmaster(base_dir, name):
    return int(
        (base_dir / f"clusters/run-7-{name}/data/postmaster.pid").read_text().split()[0]
    )


def test_a_synchronous_standby_that_is_gone_holds_up_nobody_for_ever(
    direct, plan, base_dir
):
    """Its commits would wait as long as pgbench may take: ten minutes beyond its time."""
    plan = with_standbys(plan, 1, 1)
    # The load itself takes longer than a test may.
    director = direct(replace(plan, parameters=plan.parameters | {"duration": 600}))
    director.bench.look_s = 0.5

    def kill():
        os.kill(postmaster(base_dir, "standby1"), signal.SIGKILL)

    with pytest.raises(TargetProblem) as caught:
        watched(director, when_loaded(director, kill))
    assert caught.value.code == "standby_gone"
    assert "standby1" in caught.value.message
    assert nothing_is_left(base_dir) == NOTHING


def test_a_standby_that_never_catches_up_ends_the_run(
    direct, plan, base_dir, monkeypatch
):
    """Replay held back, as by a disk that is far slower than the primary's."""
    monkeypatch.setattr(standbys, "CATCH_UP_SECONDS", 2)
    plan = with_standbys(plan, 0, 1)
    [standby] = plan.clusters
    held = replace(standby, settings={"recovery_min_apply_delay": "1h"})
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(plan, clusters=(held,))))
    assert caught.value.code == "standby_does_not_catch_up"
    assert nothing_is_left(base_dir) == NOTHING


def test_a_port_that_is_taken_is_told_as_such(direct, plan, base_dir):
    """Two clusters with one port in one folder of sockets."""
    plan = with_standbys(plan, 0, 1)
    director = direct(plan)
    member = director.bench.members["standby1"]
    taken = replace(member.cluster, port=director.bench.cluster.port)
    director.bench.members["standby1"] = replace(member, cluster=taken)
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "port_taken"
    assert nothing_is_left(base_dir) == NOTHING
