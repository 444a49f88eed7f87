"""Monitors on a real OpenSSH server: recorded while the load is on, and gone afterwards."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import monitors
from runs.execution.errors import Cancelled, Detached
from runs.execution.plan import RunPlan
from tests.ssh.directing import (
    execute,
    left_running,
    names,
    processes_below,
    watched,
    when_measuring,
)

pytestmark = pytest.mark.openssh


@pytest.fixture
def plan(plan) -> RunPlan:
    return replace(plan, parameters={"scale": 1, "duration": 3})


def without_sysstat(monkeypatch):
    monkeypatch.setattr(monitors, "_RECORD", monitors._RECORD.replace("command -v sar", "false"))


def series(found) -> dict:
    return {each.name: each for each in found.series}


def recorders(base_dir: Path) -> list[str]:
    return [line for line in processes_below(base_dir) if "monitor.sar" in line]


@pytest.mark.skipif(not shutil.which("sadf"), reason="sysstat is not installed")
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


def test_vmstat_takes_its_place_where_there_is_no_sysstat(direct, plan, base_dir, monkeypatch):
    without_sysstat(monkeypatch)
    found = execute(direct(plan))
    assert len(series(found)["cpu_idle"].values) >= 2
    assert any(each.name == "vmstat-db.txt" for each in found.artifacts)
    assert left_running(base_dir) == []


def test_the_idle_processors_are_a_measurement_of_the_run(direct, plan):
    found = execute(direct(plan))
    assert 0 <= found.measurements["cpu_idle"] <= 100
    assert 0 < found.measurements["generator_cpu"] < 64


def test_a_machine_without_any_monitor_is_measured_all_the_same(direct, plan, monkeypatch):
    monkeypatch.setattr(monitors, "_RECORD", "exit 127")
    found = execute(direct(plan))
    assert found.measurements["tps"] > 0
    assert "cpu_idle" not in found.measurements
    assert "monitor_missing" in {note.code for note in found.notes}


def test_a_cancel_ends_the_monitor(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 600}))
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


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
