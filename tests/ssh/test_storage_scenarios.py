"""The disk alone and under PostgreSQL: fio, pg_test_fsync and wal_sync_method."""

import os
import shutil
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute, left_running, names

pytestmark = [pytest.mark.openssh, pytest.mark.on_disk]


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


def test_a_flush_after_128_kb_is_one_after_sixteen_writes(direct, bandwidth, base_dir):
    director = direct(bandwidth)
    found = execute(director)
    argv = next(each.argv for each in director.reporter.commands if each.name == "fio")
    assert "--fsync=16" in argv
    assert found.measurements["bandwidth"] == found.measurements["write_bandwidth"] > 0
    assert found.measurements["fsync_latency"] > 0
    assert found.tool_name == "fio"
    assert "SOURCE" in artifact(found, "mount.txt")
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


def method(plan, value, **settings):
    levels = {
        "operation": "update", "shared_buffers": "as-configured", "wal_sync_method": value,
        "clients": 1,
    }  # fmt: skip
    parameters = {"scale": 1, "duration": 1, "fsync_seconds": 1}
    made = arranged(plan, "operating-systems", levels, parameters)
    return replace(made, settings=made.settings | {"fsync": "on"} | settings)


def test_a_method_is_measured_with_what_pg_test_fsync_says_of_it(direct, plan, base_dir):
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
