"""Storage on a real target: the disk alone, under PostgreSQL, and a second base directory."""

import os
import shutil
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.plan import MachinePlan
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute, left_running, names
from tests.ssh.openssh import short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.on_disk,
    pytest.mark.usefixtures("loaded_before"),
]


# The disk alone and under PostgreSQL: fio, pg_test_fsync and wal_sync_method.


@pytest.fixture
def bandwidth(plan):
    """A run of fio; CI fails without it, a laptop skips."""
    if shutil.which("fio") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("fio is missing")
    levels = {"access": "sequential write", "fsync_interval": "128kB"}
    return replace(
        plan,
        scenario="storage-bandwidth",
        levels=levels,
        parameters={"size_mb": 8, "jobs": 2, "duration": 1},
        cluster_key="idle",
    )


@pytest.mark.loads
def test_a_flush_after_128_kb_is_one_after_sixteen_writes(direct, bandwidth, base_dir):
    director = direct(bandwidth)
    found = execute(director)
    argv = next(each.argv for each in director.reporter.commands if each.name == "fio")
    assert "--fsync=16" in argv
    assert (
        found.measurements["bandwidth"]
        == found.measurements["storage_write_bandwidth"]
        > 0
    )
    assert found.measurements["fsync_latency"] > 0
    assert found.tool_name == "fio"
    assert "SOURCE" in artifact(found, "mount.txt")
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


def method(plan, value, **settings):
    levels = {
        "operation": "update",
        "shared_buffers": "as-configured",
        "wal_sync_method": value,
        "clients": 1,
    }
    parameters = {"scale": 1, "duration": 1, "fsync_seconds": 1}
    made = arranged(plan, "operating-systems", levels, parameters)
    return replace(made, settings=made.settings | {"fsync": "on"} | settings)


def test_a_method_is_measured_with_what_pg_test_fsync_says_of_it(
    direct, plan, base_dir
):
    found = execute(direct(method(plan, "fdatasync")))
    assert found.settings["wal_sync_method"]["setting"] == "fdatasync"
    assert found.measurements["tps"] > 0
    told = artifact(found, "pg_test_fsync.txt")
    if "fsync_not_tested" not in [note.code for note in found.notes]:
        assert f"{found.measurements['fsync_operations']:.3f} ops/sec" in told
    assert nothing_is_left(base_dir) == NOTHING


def test_without_waiting_for_the_disk_the_method_says_nothing(direct, plan, base_dir):
    with pytest.raises(TargetProblem) as caught:
        execute(direct(method(plan, "fdatasync", fsync="off")))
    assert caught.value.code == "setting_void"
    assert nothing_is_left(base_dir) == NOTHING


# Storage placement on a real target: a second base directory takes a part of the cluster.


@pytest.fixture
def fast_dir(account):
    """The base directory of a second registration of the machine."""
    folder = short_folder(on_disk=True)
    account.own(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def cell(plan, fast_dir):
    def make(placement, load="read", scan="any"):
        levels = {"placement": placement, "load": load, "index_only_scan": scan}
        made = arranged(
            plan, "storage-placement", levels, {"scale": 1, "duration": 1, "clients": 1}
        )
        fast = MachinePlan(
            name="db2",
            server_id=0,
            host=plan.host,
            port=plan.port,
            username=plan.username,
            base_dir=str(fast_dir),
            address_of_database=plan.host,
        )
        return replace(made, machines=(fast,))

    return make


def codes(found):
    return [note.code for note in found.notes]


def test_everything_moves_and_nothing_of_it_is_left(direct, cell, base_dir, fast_dir):
    director = direct(cell("all-ssd", "update"))
    found = execute(director)
    assert found.measurements["tps"] > 0
    steps = director.reporter.steps
    order = ["move", "stop-to-place", "move-wal", "forget", "start-placed", "pgbench"]
    assert [steps.index(name) for name in order] == sorted(
        steps.index(name) for name in order
    )
    # This machine has one device for both, and the run says that they cannot differ.
    assert "same_device" in codes(found)
    # It listens nowhere: the machine is its own.
    start = next(c.argv for c in director.reporter.commands if c.name == "start")
    assert " -h" not in start[-1]
    assert nothing_is_left(base_dir) == NOTHING
    assert names(fast_dir / "clusters") == names(fast_dir / "runs") == []


def test_a_scan_fails_to_need_the_index_only_once_each_page_was_updated(
    direct, cell, base_dir, fast_dir
):
    found = execute(direct(cell("all-hdd", "index-only", "fails")))
    assert found.measurements["heap_fetches"] > 0
    assert "Index Only Scan" in artifact(found, "plan.txt")
    found = execute(
        direct(replace(cell("all-hdd", "index-only", "succeeds"), run_id=8))
    )
    assert found.measurements["heap_fetches"] == 0
    assert nothing_is_left(base_dir) == NOTHING


def test_a_disk_that_is_not_mounted_is_not_measured(direct, cell, base_dir, fast_dir):
    """Then the folder of the fast device is an ordinary one of the slow device."""
    plan = cell("wal-ssd")
    (fast,) = plan.machines
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(plan, machines=(replace(fast, mount="/mnt/fast"),))))
    assert caught.value.code == "other_file_system"
    assert "/mnt/fast" in caught.value.message
    assert nothing_is_left(base_dir) == NOTHING
    assert not list(fast_dir.iterdir())


def test_without_a_second_base_directory_nothing_can_be_placed(direct, cell, base_dir):
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(cell("wal-ssd"), machines=())))
    assert caught.value.code == "no_fast_device"
    assert nothing_is_left(base_dir) == NOTHING
