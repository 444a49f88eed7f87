"""Who uses the processors of a real machine: correct for a run and for others."""

import subprocess
import time
from dataclasses import replace

import pytest

from runs.analysis.certificate import Usage
from runs.execution import usage
from runs.execution.errors import TargetProblem
from runs.execution.postgres import Cluster
from tests.ssh.directing import execute

pytestmark = pytest.mark.openssh


def reading(*folders):
    argv = ["sh", "-c", usage._SCRIPT, "usage", *folders]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return usage.parse(printed)


def test_a_server_and_its_children_are_told_apart_from_others(tmp_path):
    """Without PostgreSQL: a shell that is the server, with a child that works and ends."""
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
    before = reading(tmp_path)
    server = subprocess.Popen(["sh", "-c", f"sh -c '{busy}'; sleep 30"])
    (tmp_path / "postmaster.pid").write_text(f"{server.pid}\n/data\n")
    begun = time.monotonic()
    while reading(tmp_path).servers == 0 and time.monotonic() < begun + 60:
        time.sleep(0.2)
    found = usage.between(before, reading(tmp_path), generator=0.0)
    server.kill()
    server.wait()

    assert 0 < found.servers <= found.busy + 0.05
    assert found.processors >= 1


def test_a_run_tells_who_took_the_processors_meanwhile(direct, plan):
    found = execute(direct(replace(plan, parameters={"scale": 1, "duration": 3})))

    (told,) = found.usage.values()
    taken = Usage(machine="database", **told)
    assert 3 <= taken.seconds < 60
    assert taken.servers > 0.2
    assert taken.generator > 0
    assert taken.foreign <= taken.busy - taken.servers - taken.generator + 0.001
    assert taken.busy <= taken.capacity * 1.02


@pytest.mark.parametrize("report", ["", "ticks 100\nuptime 1\n", "ticks x\n"])
def test_a_report_that_is_not_whole_tells_nothing(report):
    with pytest.raises((KeyError, ValueError)):
        usage.parse(report)


def test_a_restart_meanwhile_tells_nothing():
    before = usage.Reading(100.0, 2, 50.0, 0.0, 10.0, 1.0)

    assert usage.between(before, replace(before, at=5.0), generator=1.0) is None
    assert usage.between(before, replace(before, at=200.0, machine=1.0), generator=1.0) is None


def test_a_program_that_is_gone_is_called_missing_and_no_fault_of_the_settings(direct, plan):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "start", lambda _self: ("sh", "-c", "exec /nowhere/pg_ctl"))
        with pytest.raises(TargetProblem) as told:
            execute(direct(plan))

    assert told.value.code == "missing_program"
