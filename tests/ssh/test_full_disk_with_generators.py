"""The database's disk while the load comes from another machine, whose own disk has room."""

from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from tests.ssh.directing import left_running, names, watched
from tests.ssh.disks import fill, small_disk
from tests.ssh.test_generators import alone, direct, machines, plan  # noqa: F401

pytestmark = pytest.mark.openssh

FLOOR_BYTES = 64 * 2**20


def test_a_load_from_elsewhere_is_stopped_before_it_fills_the_databases_disk(
    direct,  # noqa: F811
    plan,  # noqa: F811
    machines,  # noqa: F811
):
    database, generator, _other = machines
    writing = replace(
        alone(plan),
        scenario="fixed-point-update",
        parameters={"scale": 1, "duration": 15},
        settings={"shared_buffers": "64MB", "fsync": "off"},
        cluster_key="",
    )
    with small_disk(database.base_dir, 400, database.sshd) as disk:
        director = direct(writing)
        director.preparing.disk_bytes = 0
        director.bench.floor_bytes = FLOOR_BYTES
        director.bench.look_s = 0.5

        def orders():
            for _ in range(10_000):
                is_loaded = director.bench.running_step == "pgbench-load1"
                if is_loaded and not (disk / "filler").exists():
                    fill(disk, leave=FLOOR_BYTES // 2)
                yield "go_on"

        with pytest.raises(TargetProblem, match=f"below {disk} on {writing.host}") as told:
            watched(director, orders())
        assert told.value.code == "disk_almost_full"
        assert names(disk / "clusters") == []
    stopped = director.reporter.commands[-1]
    assert (stopped.name, stopped.exit_status) == ("pgbench-load1", None)
    assert left_running(generator.base_dir) == []
    assert names(generator.base_dir / "runs") == []
