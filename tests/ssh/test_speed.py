"""How fast the machines of a run are: a piece of fixed work before and after its load."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.machine import speed
from runs.execution.machine.speed import parse
from tests.ssh.directing import execute, left_running

prepared = pytest.mark.usefixtures("prepared")


def worked(processors=2, file="", *, argv=()):
    command = [*argv, "sh", "-c", speed._SCRIPT, "speed", str(processors), file]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=30
    ).stdout


def test_the_script_tells_the_rates_of_all_parts(tmp_path):
    reading = parse(worked(4096, str(tmp_path / "page")))
    assert reading.processors == os.cpu_count()
    parts = {"core", "memory", "disk"} | (
        {"cores"} if reading.processors > 1 else set()
    )
    assert reading.rates.keys() == parts
    assert all(rate > 0 for rate in reading.rates.values())
    # A page is written to the disk itself, and the file is no more.
    assert list(tmp_path.iterdir()) == []


def test_without_a_reason_for_a_disk_or_further_processors_neither_is_asked():
    reading = parse(worked(1))
    assert (reading.processors, set(reading.rates)) == (1, {"core", "memory"})


def test_only_processors_of_the_run_work(tmp_path):
    reading = parse(worked(64, argv=["taskset", "-c", "0"]))
    assert reading.processors == 1


def test_a_machine_without_the_programs_tells_nothing(tmp_path):
    sh = Path("/bin/sh").resolve()
    printed = subprocess.run(
        [sh, "-c", speed._SCRIPT, "speed", "2", ""],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
    ).stdout
    assert printed == ""
    assert parse(printed) is None


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "core 1 2 3",
        "program mawk 1\nprocessors 2\ncore x y",
        "program mawk 1\nprocessors 2\ncore",
        "program mawk 1\nprocessors 2\ncore 5",
        "program mawk 1\nprocessors 2\ncore 4 5\nmemory 1",
        "program mawk 1\nprocessors 2\ncore 4 5\nmemory 1 0 s",
        f"program mawk 1\nprocessors 2\ncore 4 {'9' * 400}",
    ],
)
def test_what_the_script_never_prints_is_no_reading(printed):
    assert parse(printed) is None


def test_what_is_no_number_for_a_database_is_left_out():
    printed = "program mawk 1\nprocessors 2\ncore 4 5 6\nmemory 1 nan s\ndisk 1 1e-400"
    assert parse(printed) is None
    printed = "program mawk 1\nprocessors 2\ncore 4 5 6\nmemory 1 nan s"
    assert parse(printed).rates == {"core": 550.0}


def test_the_slowest_moment_does_not_count_and_standing_still_does():
    report = (
        "program mawk 1\nprocessors 2\ncore 10 10 1 10 10\ncores 9 9 9\ncores 0 0 0 8"
    )
    assert parse(report).rates == {
        "core": 1000.0,
        "cores": pytest.approx(900.0 + 800.0 / 3, abs=0.1),
    }


@pytest.mark.openssh
@prepared
def test_a_run_asks_once_before_and_once_after_its_load(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 1}))
    found = execute(director)
    (told,) = found.speed.values()
    assert told["processors"] == min(os.cpu_count(), plan.levels["clients"])
    assert told["before"].keys() == told["after"].keys() >= {"core", "memory"}
    steps = director.reporter.steps
    load = steps.index("pgbench")
    assert steps.index("speed-before") < load < steps.index("speed-after")
    assert left_running(base_dir) == []


@pytest.mark.openssh
@prepared
@pytest.mark.parametrize("script", ["sleep 60", "exit 3", "echo nonsense"])
def test_work_that_does_not_end_or_fails_costs_the_run_nothing_else(
    direct, plan, monkeypatch, base_dir, script
):
    monkeypatch.setattr(speed, "_SCRIPT", script)
    monkeypatch.setattr(speed, "LIMIT_SECONDS", 0.5)
    found = execute(direct(replace(plan, parameters={"scale": 1, "duration": 1})))
    assert found.speed == {}
    assert found.measurements["tps"] > 0
    assert left_running(base_dir) == []
