"""What is recorded of machines while a load is on: monitors, and who uses the processors."""

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runs.analysis.certificate import Usage
from runs.execution.clusters.postgres import Cluster
from runs.execution.errors import Cancelled, Detached, TargetProblem
from runs.execution.machine import monitors, saturation, usage
from runs.execution.plan import RunPlan
from runs.execution.steps.steps import StepResult
from runs.scenarios.fixed_point_read import FixedPointRead
from runs.scenarios.timed_sql import repeated, timed
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


# Monitors on a real OpenSSH server: recorded while the load is on, and gone afterwards.


prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def monitored(plan) -> RunPlan:
    return replace(plan, parameters={"scale": 1, "duration": 3})


def without_sysstat(monkeypatch):
    monkeypatch.setattr(
        monitors, "_RECORD", monitors._RECORD.replace("command -v sadf", "false")
    )


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
def test_sysstat_records_the_machine_second_by_second(direct, monitored, base_dir):
    found = execute(direct(monitored))
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
    header = subprocess.run(
        ["sadf", "-H", path], check=True, capture_output=True, text=True
    ).stdout
    activities = {word for word in header.split() if word.startswith("A_")}
    assert {"A_CPU", "A_MEMORY", "A_QUEUE", "A_DISK", "A_NET_DEV"} <= activities
    assert not {"A_IRQ", "A_PWR_CPU", "A_FS", "A_NET_TCP"} & activities
    assert path.stat().st_size < 3 * monitors.BYTES_PER_SAMPLE
    printed = subprocess.run(
        ["sh", "-c", monitors._PRINT, "print", str(path)],
        check=True,
        capture_output=True,
    )
    assert sar.read(printed.stdout.decode()).seconds == (2.0, 4.0)


@prepared
def test_vmstat_takes_its_place_where_there_is_no_sysstat(
    direct, monitored, base_dir, monkeypatch
):
    without_sysstat(monkeypatch)
    found = execute(direct(monitored))
    assert len(series(found)["cpu_idle"].values) >= 2
    assert "generator_saturated" not in {each.code for each in found.notes}
    assert any(each.name == "vmstat-db.txt" for each in found.artifacts)
    assert left_running(base_dir) == []


# Processor time is counted in hundredths of a second: the generator must use some.
@prepared
@pytest.mark.full_load
def test_the_idle_processors_are_a_measurement_of_the_run_and_a_busy_generator_is_told(
    direct, monitored, monkeypatch
):
    # pgbench's one thread waits for the server: here it counts as saturated by much less.
    monkeypatch.setattr(saturation, "SATURATED_THREADS", 0.0001)
    found = execute(direct(replace(monitored, parameters={"scale": 1, "duration": 2})))
    assert 0 <= found.measurements["cpu_idle"] <= 100
    assert 0 < found.measurements["generator_cpu"] < 64
    [note] = [each for each in found.notes if each.code == "generator_saturated"]
    assert note.message.endswith("Use more threads or further machines for it.")
    assert " with 1 thread(s)" in note.message


@prepared
def test_a_machine_without_any_monitor_is_measured_all_the_same(
    direct, monitored, monkeypatch
):
    monkeypatch.setattr(monitors, "_RECORD", "exit 127")
    found = execute(direct(monitored))
    assert found.measurements["tps"] > 0
    assert "cpu_idle" not in found.measurements
    assert missing(found).endswith("Neither sysstat nor vmstat is there.")


@prepared
def test_a_recording_that_cannot_be_read_is_told_as_such(
    direct, monitored, monkeypatch
):
    cut = 'if [ -e "$1" ]; then echo \'{"sysstat": {\'; else exit 1; fi'
    monkeypatch.setattr(monitors, "_PRINT", cut)
    assert "not the whole JSON" in missing(execute(direct(monitored)))


@prepared
def test_a_cancel_ends_the_monitor(direct, monitored, base_dir):
    director = direct(replace(monitored, parameters={"scale": 1, "duration": 600}))
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@prepared
def test_another_worker_goes_on_with_the_same_recording(direct, monitored, base_dir):
    monitored = replace(monitored, parameters={"scale": 1, "duration": 6})
    first = direct(monitored)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    assert recorders(base_dir)
    found = execute(direct(monitored, taken_over=True))
    # Some of them from before the second worker began.
    assert len(series(found)["cpu_idle"].values) >= 5
    assert left_running(base_dir) == []


# Who uses the processors of a real machine: correct for a run and for others.


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
    found = usage.compute_usage(before, reading(tmp_path), generator=0.0)
    server.kill()
    server.wait()

    assert 0 < found.servers <= found.busy + 0.05
    assert found.processors >= 1


# Processor time is counted in hundredths of a second: the generator must use some.
@pytest.mark.hurried
@prepared
def test_a_run_tells_who_took_the_processors_meanwhile(direct, plan):
    levels = {"version": "16.14", "clients": 10}
    found = execute(
        direct(replace(plan, levels=levels, parameters={"scale": 1, "duration": 3}))
    )

    (told,) = found.usage.values()
    taken = Usage(machine="database", **told)
    assert 3 <= taken.seconds < 60
    assert taken.servers > 0.2
    assert taken.generator > 0
    assert taken.foreign <= taken.busy - taken.servers - taken.generator + 0.001
    assert taken.busy <= taken.capacity * 1.02


READINGS = [
    usage.Usage(
        seconds=at, processors=2, busy=busy, stolen=0.1, servers=servers, kernel=0.0
    )
    for at, busy, servers in [
        (100.0, 10.0, 5.0),
        (103.0, 14.0, 8.0),
        (105.0, 15.0, 9.0),
    ]
]


def step(seconds, cpu=0.5):
    return StepResult("q", (), "", 0, 1000.0, 1000.0 + seconds, "", "", cpu)


def test_the_steps_of_a_load_add_up():
    account = usage.Account()
    first, second, third = ({"database": each} for each in READINGS)
    account.add(step(2.9), "database", first, second, ["database"])
    account.add(step(1.9), "database", second, third, ["database"])

    assert account.as_json() == {
        "database": {
            "processors": 2,
            "seconds": 5.0,
            "busy": 5.0,
            "stolen": 0.0,
            "servers": 4.0,
            "kernel": 0.0,
            "generator": 1.0,
            "servers_in_kernel": 0.0,
            "throttled": 0.0,
            "swapped": 0.0,
            "pressure_cpu": 0.0,
            "pressure_memory": 0.0,
            "pressure_io": 0.0,
            "pressure_seconds": 0.0,
            "quota_seconds": 0.0,
        }
    }


@pytest.mark.parametrize(
    ("loads", "after"),
    [
        ([0.4], [READINGS[1]]),  # too short
        (
            [2.9, 60.0],
            [READINGS[1], READINGS[2]],
        ),  # the second was begun by another worker
        ([2.9, 1.9], [READINGS[1], None]),  # a reading is missing
    ],
)
def test_a_load_of_which_too_little_is_known_has_no_account(loads, after):
    account, before = usage.Account(), READINGS[0]
    for seconds, reading in zip(loads, after, strict=True):
        told = {"database": reading} if reading else {}
        account.add(step(seconds), "database", {"database": before}, told, ["database"])
        before = reading

    assert account.as_json() == {}


@prepared
def test_a_load_of_statements_tells_who_took_the_processors(direct, plan):
    class Counting(FixedPointRead):
        async def measure(self, bench):
            work = "SELECT sum(i) FROM generate_series(1, 1500000) i, pg_sleep(0.6)"
            for name in ("one", "two"):
                done = await timed(bench, name, work)
            bench.findings.measurements["tps"] = 1 / done.seconds

    director = direct(plan)
    director.procedure = director.preparing.procedure = Counting()
    found = execute(director)

    (told,) = found.usage.values()
    taken = Usage(machine="database", **told)
    assert taken.seconds > 1
    assert 0.2 < taken.servers <= taken.busy + 0.05


@prepared
def test_a_short_statement_is_repeated_or_said_and_the_machine_watched_for_a_second(
    direct, plan
):
    class Short(FixedPointRead):
        async def measure(self, bench):
            figures = bench.findings.measurements
            figures["tps"] = (await timed(bench, "once", "CREATE TABLE own ()")).seconds
            found = await repeated(bench, "query", "SELECT 1 FROM pg_sleep(0.15)")
            figures["latency_avg"] = found.seconds

    director = direct(plan)
    director.procedure = director.preparing.procedure = Short()
    found = execute(director)
    codes = {note.code: note.message for note in found.notes}
    assert "executed once" in codes["short_statement"]
    assert (
        "7 times more" in codes["statement_repeated"]
        or "6 times" in codes["statement_repeated"]
    )
    assert found.measurements["latency_avg"] >= 0.15
    assert "query-repeated" in director.reporter.steps


@prepared
def test_after_a_load_of_milliseconds_the_machine_is_watched_until_a_second_is_full(
    direct, plan
):
    class Once(FixedPointRead):
        async def measure(self, bench):
            bench.findings.measurements["tps"] = (
                await timed(bench, "once", "SELECT 1")
            ).seconds

    director = direct(plan)
    director.procedure = director.preparing.procedure = Once()
    (told,) = execute(director).usage.values()
    assert told["seconds"] >= 1


def test_a_step_that_belongs_to_the_load_counts_with_its_children(tmp_path):
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
    before = reading(tmp_path)
    line = f"sh -c '{busy}'; sh -c '{busy}' & wait; sleep 30"
    leader = subprocess.Popen(["sh", "-c", line], start_new_session=True)
    (tmp_path / f"process.{leader.pid}.1.boot").touch()
    begun = time.monotonic()
    while reading(tmp_path).servers < 0.2 and time.monotonic() < begun + 60:
        time.sleep(0.2)
    found = usage.compute_usage(before, reading(tmp_path), generator=0.0)
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()

    assert 0.2 <= found.servers <= found.busy + 0.05


@pytest.mark.parametrize("report", ["", "ticks 100\nuptime 1\n", "ticks x\n"])
def test_a_report_that_is_not_whole_tells_nothing(report):
    with pytest.raises((KeyError, ValueError)):
        usage.parse(report)


def test_a_restart_meanwhile_tells_nothing():
    before = usage.Usage(2, 100.0, 50.0, 0.0, 10.0, 1.0)

    assert (
        usage.compute_usage(before, replace(before, seconds=5.0), generator=1.0) is None
    )
    assert (
        usage.compute_usage(
            before, replace(before, seconds=200.0, busy=1.0), generator=1.0
        )
        is None
    )


@prepared
def test_a_program_that_is_gone_is_called_missing_and_no_fault_of_the_settings(
    direct, plan
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Cluster, "start", lambda _self: ("sh", "-c", "exec /nowhere/pg_ctl")
        )
        with pytest.raises(TargetProblem) as told:
            execute(direct(plan))

    assert told.value.code == "missing_program"
