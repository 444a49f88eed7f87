"""Monitors on a real OpenSSH server: recorded while the load is on, and gone afterwards."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import monitors
from runs.execution.errors import Cancelled, Detached
from runs.execution.plan import RunPlan
from runs.scenarios import notes
from runs.tools.sar import reader as sar
from tests.ssh.directing import (
    execute,
    left_running,
    names,
    processes_below,
    watched,
    when_measuring,
)

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def plan(plan) -> RunPlan:
    return replace(plan, parameters={"scale": 1, "duration": 3})


def without_sysstat(monkeypatch):
    monkeypatch.setattr(monitors, "_RECORD", monitors._RECORD.replace("command -v sadf", "false"))


def series(found) -> dict:
    return {each.name: each for each in found.series}


def missing(found) -> str:
    """What is reported about a missing monitor."""
    [note] = [each for each in found.notes if each.code == "monitor_missing"]
    return note.message


def recorders(base_dir: Path) -> list[str]:
    return [line for line in processes_below(base_dir) if "monitor.sar" in line]


@pytest.mark.skipif(not shutil.which("sadf"), reason="sysstat is missing")
@prepared
def test_sysstat_records_the_machine_second_by_second(direct, plan, base_dir):
    found = execute(direct(plan))
    recorded = series(found)
    assert len(recorded["cpu_user"].values) >= 2
    assert recorded["cpu_user"].unit == "%"
    # The samples lie on the axis whose zero is the begin of the load.
    assert -2 < recorded["cpu_idle"].start < 2
    kept = {each.name: each.content for each in found.artifacts}
    assert json.loads(kept["sar-db.json"])["sysstat"]
    assert left_running(base_dir) == []


@pytest.mark.skipif(not shutil.which("sadf"), reason="sysstat is missing")
def test_only_what_is_read_is_recorded_and_as_seldom_as_asked(tmp_path):
    path = tmp_path / "monitor.sar"
    record = ["sh", "-c", monitors._RECORD, "monitor", str(path), "2", "2"]
    assert subprocess.run(record, check=True, capture_output=True).stdout == b""
    header = subprocess.run(["sadf", "-H", path], check=True, capture_output=True, text=True).stdout
    activities = {word for word in header.split() if word.startswith("A_")}
    assert {"A_CPU", "A_MEMORY", "A_QUEUE", "A_DISK", "A_NET_DEV"} <= activities
    assert not {"A_IRQ", "A_PWR_CPU", "A_FS", "A_NET_TCP"} & activities
    assert path.stat().st_size < 3 * monitors.BYTES_PER_SAMPLE
    printed = subprocess.run(
        ["sh", "-c", monitors._PRINT, "print", str(path)], check=True, capture_output=True
    )
    assert sar.read(printed.stdout.decode()).seconds == (2.0, 4.0)


@prepared
def test_vmstat_takes_its_place_where_there_is_no_sysstat(direct, plan, base_dir, monkeypatch):
    without_sysstat(monkeypatch)
    found = execute(direct(plan))
    assert len(series(found)["cpu_idle"].values) >= 2
    assert "generator_saturated" not in {each.code for each in found.notes}
    assert any(each.name == "vmstat-db.txt" for each in found.artifacts)
    assert left_running(base_dir) == []


@prepared
@pytest.mark.hurried
def test_the_idle_processors_are_a_measurement_of_the_run_and_a_busy_generator_is_told(
    direct, plan, monkeypatch
):
    # pgbench's one thread waits for the server: here it counts as saturated by much less.
    monkeypatch.setattr(notes, "SATURATED_THREADS", 0.0001)
    found = execute(direct(plan))
    assert 0 <= found.measurements["cpu_idle"] <= 100
    assert 0 < found.measurements["generator_cpu"] < 64
    [note] = [each for each in found.notes if each.code == "generator_saturated"]
    assert note.message.endswith("Use more threads or further machines for it.")
    assert " with 1 thread(s)" in note.message


@prepared
def test_a_machine_without_any_monitor_is_measured_all_the_same(direct, plan, monkeypatch):
    monkeypatch.setattr(monitors, "_RECORD", "exit 127")
    found = execute(direct(plan))
    assert found.measurements["tps"] > 0
    assert "cpu_idle" not in found.measurements
    assert missing(found).endswith("Neither sysstat nor vmstat is there.")


@prepared
def test_a_recording_that_cannot_be_read_is_told_as_such(direct, plan, monkeypatch):
    cut = 'if [ -e "$1" ]; then echo \'{"sysstat": {\'; else exit 1; fi'
    monkeypatch.setattr(monitors, "_PRINT", cut)
    assert "not the whole JSON" in missing(execute(direct(plan)))


@prepared
def test_a_cancel_ends_the_monitor(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 600}))
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@prepared
def test_another_worker_goes_on_with_the_same_recording(direct, plan, base_dir):
    plan = replace(plan, parameters={"scale": 1, "duration": 6})
    first = direct(plan)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    assert recorders(base_dir)
    found = execute(direct(plan, taken_over=True))
    # Some of them from before the second worker began.
    assert len(series(found)["cpu_idle"].values) >= 5
    assert left_running(base_dir) == []
