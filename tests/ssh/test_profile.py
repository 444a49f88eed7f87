"""What explains a number on a real machine: profiles by perf, system calls, stacks, waits, I/O."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchlab.embedded.account import service_account
from runs.charts import flame_graph
from runs.execution.errors import Cancelled, Detached, TargetProblem
from runs.execution.evidence import evidence, profiling
from runs.execution.machine.treatment import Treatment
from tests.ssh.arranging import (
    NOTHING,
    arranged,
    artifact,
    nothing_is_left,
    with_contrib,
)
from tests.ssh.directing import execute, left_running, names, watched, when_measuring
from tests.ssh.sudo import needs_writable, sysctl

pytestmark = [pytest.mark.openssh, pytest.mark.hurried]


# A profile by perf on a real machine, with and without permission to see all of it.


prepared = pytest.mark.usefixtures("prepared")

PERF = ("perf",)
SETTING = "kernel.perf_event_paranoid"
FOLDED = re.compile(r"[^\n]+ \d+")


@pytest.fixture
def profiled(treated):
    return treated(4, profile=True)


@pytest.fixture
def permitted(allow):
    """sudo lets BenchLab change what perf may see; the test sees to it that it is as before."""
    needs_writable(f"/proc/sys/{SETTING.replace('.', '/')}")
    allow(*PERF)
    was, addresses = sysctl(SETTING), Path("/proc/sys/kernel/kptr_restrict")
    hidden = addresses.read_text()
    addresses.write_text(
        "0"
    )  # Ubuntu hides where the kernel's functions are, and so their names
    yield was
    Path("/proc/sys", *SETTING.split(".")).write_text(was)
    addresses.write_text(hidden)


@pytest.fixture
def paranoia():
    """Set what the kernel allows, for the time of the test."""
    path = Path("/proc/sys", *SETTING.split("."))
    needs_writable(str(path))
    was = path.read_text()
    yield path.write_text
    path.write_text(was)


def kept(found) -> dict[str, str]:
    return {each.name: each.content.decode() for each in found.artifacts}


def notes(found) -> dict[str, str]:
    return {note.code: note.message for note in found.notes}


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@prepared
def test_with_permission_the_whole_machine_is_sampled_during_the_load(
    direct, profiled, permitted, openssh, base_dir
):
    before = set(openssh.folder.rglob("*"))
    director = direct(profiled, privileges=PERF)
    seen = []

    def orders():
        for order in when_measuring(director, "go_on"):
            if director.bench.running_step == "pgbench":
                seen.append(sysctl(SETTING))
            yield order

    found = watched(director, orders())
    assert set(seen) == {"-1"}
    assert sysctl(SETTING) == permitted
    assert "the whole machine" in notes(found)["profiled"]
    files = kept(found)
    lines = files["perf-folded.txt"].splitlines()
    assert all(FOLDED.fullmatch(line) for line in lines)
    commands = {line.partition(";")[0] for line in lines}
    assert "postgres" in commands
    # On a busy machine perf may have looked before `env` became pgbench, and keeps that name.
    assert commands & {"pgbench", "env"}
    assert any("_[k]" in line for line in lines)
    # pgbench waits for its server, in a call of the kernel.
    assert "_sys_" in files["perf-switches-folded.txt"]
    assert "# Samples:" in files["perf-report.txt"]
    assert "<svg" in flame_graph.render(files["perf-folded.txt"], title="")
    # 99 samples a second and processor; idle ones are counted too, or are not, by the event.
    assert (
        99 * 4 * 0.3
        < sum(int(line.rpartition(" ")[2]) for line in lines)
        < 99 * 64 * 60
    )
    # perf writes nothing outside the run's folder.
    new = {each for each in openssh.folder.rglob("*") if each not in before}
    assert not [each for each in new if ".debug" in str(each)]
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@prepared
def test_without_permission_only_postgresqls_processes_are_sampled(
    direct, profiled, paranoia
):
    paranoia("2")
    director = direct(profiled)
    found = execute(director)
    stacks = [
        line.rpartition(" ")[0] for line in kept(found)["perf-folded.txt"].splitlines()
    ]
    commands = {stack.partition(";")[0] for stack in stacks}
    # Backends too, which were started after perf was.
    assert commands == {"postgres"}
    assert "perf-switches-folded.txt" not in kept(found)
    assert "PostgreSQL's processes" in notes(found)["profiled"]
    assert not {"keep-perf", "set-perf", "set-back"} & set(director.reporter.steps)
    assert found.measurements["tps"] > 0


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@prepared
def test_where_the_kernel_is_strict_the_run_goes_on_without_a_profile(
    direct, profiled, paranoia
):
    paranoia("3")
    found = execute(direct(replace(profiled, parameters={"scale": 1, "duration": 1})))
    assert found.measurements["tps"] > 0
    assert "does not let this user" in notes(found)["profile_missing"]
    assert "perf-folded.txt" not in kept(found)


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@prepared
def test_a_machine_without_perf_is_measured_all_the_same(direct, profiled, monkeypatch):
    from runs.execution.evidence import profiling

    missing = profiling._RECORD.replace("command -v perf", "command -v no-such-program")
    monkeypatch.setattr(profiling, "_RECORD", missing)
    found = execute(direct(replace(profiled, parameters={"scale": 1, "duration": 1})))
    assert found.measurements["tps"] > 0
    assert "not installed" in notes(found)["profile_missing"]
    assert "profiled" not in notes(found)


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@pytest.mark.refused
@prepared
def test_sudo_that_refuses_ends_the_run(direct, profiled, allow):
    before = sysctl(SETTING)
    with pytest.raises(TargetProblem) as told:
        execute(direct(profiled, privileges=PERF))
    assert told.value.code == "privilege_missing"
    assert sysctl(SETTING) == before


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@prepared
def test_a_cancel_ends_perf_and_sets_the_kernel_back(
    direct, profiled, permitted, base_dir
):
    director = direct(
        replace(profiled, parameters={"scale": 1, "duration": 600}), privileges=PERF
    )
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert sysctl(SETTING) == permitted
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@prepared
def test_another_worker_goes_on_with_the_profile_and_sets_back(
    direct, profiled, permitted, base_dir
):
    profiled = replace(profiled, parameters={"scale": 1, "duration": 5})
    first = direct(profiled, privileges=PERF)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    assert sysctl(SETTING) == "-1"
    found = execute(direct(profiled, taken_over=True, privileges=PERF))
    assert sysctl(SETTING) == permitted
    assert "perf-folded.txt" in kept(found)
    assert left_running(base_dir) == []


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is missing: linux-perf")
@pytest.mark.skipif(os.getuid() != 0, reason="samples the whole machine")
@pytest.mark.parametrize(("largest", "seconds"), [("262144K", 1), ("16K", 60)])
def test_a_perf_without_a_limit_of_its_own_has_one(tmp_path, largest, seconds):
    old = tmp_path / "perf"
    new = shutil.which("perf")
    old.write_text(f'#!/bin/sh\n[ "$1 $2" = "record -h" ] && exit 0\nexec {new} "$@"\n')
    old.chmod(0o755)
    command = [
        "sh",
        "-c",
        profiling._RECORD,
        "profile",
        str(tmp_path),
        str(seconds),
        largest,
    ]
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(
        command, capture_output=True, text=True, env=path, timeout=50, check=False
    )
    recorded = (tmp_path / "perf.data").stat().st_size
    fold = ["sh", "-c", profiling._FOLD, "fold", str(tmp_path), "100"]
    stacks = subprocess.run(fold, capture_output=True, text=True, check=True).stdout
    if seconds == 1:
        assert FOLDED.search(stacks)
    else:
        assert recorded <= 16 * 1024
        assert "perf recorded more than 16K" in said.stderr
        assert stacks == ""


# What explains a number, on a real target: system calls, stacks, waits, statements, I/O.


def updating(plan, clients=2, seconds=3, **treatment):
    """A fixed-point update of which evidence is taken."""
    cell = {"version": "16.14", "clients": clients}
    made = arranged(plan, "fixed-point-update", cell, {"scale": 1, "duration": seconds})
    return replace(made, treatment=Treatment(**treatment))


def table(found, name):
    """The rows of a table of evidence, as mappings."""
    kept = json.loads(artifact(found, f"evidence-{name}.json"))
    return [dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"]]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
@pytest.mark.usefixtures("loaded_before")
def test_system_calls_waits_and_io_are_kept_as_tables(
    direct, plan, base_dir, monkeypatch
):
    # The pauses of the load leave a few looks without any wait.
    monkeypatch.setattr(evidence, "WAITS_A_SECOND", 40)
    found = execute(direct(updating(plan, syscalls=True, waits=True, io=True)))
    calls = {row["call"]: row for row in table(found, "syscalls")}
    # Each transaction comes by the socket: the backends were followed from their beginning.
    transactions = found.measurements["transactions"]
    assert (
        sum(int(calls[name]["calls"]) for name in calls if "recv" in name)
        >= transactions
    )
    assert "traced" in [note.code for note in found.notes]
    waits = table(found, "waits")
    assert all(int(row["asleep"]) + int(row["runnable"]) > 0 for row in waits)
    assert any(int(row["asleep"]) > 0 for row in waits)
    assert {each.name for each in found.series} & {
        "waits_client",
        "waits_io",
        "waits_lwlock",
    }
    rows = table(found, "io")
    assert any(
        row["backend_type"] == "client backend" and int(row["hits"]) > 0 for row in rows
    )
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
@pytest.mark.usefixtures("loaded_before")
@pytest.mark.full_load
def test_who_waits_for_a_semaphore_is_told_by_function(direct, plan, base_dir):
    found = execute(direct(updating(plan, clients=16, seconds=5, stacks=True)))
    rows = table(found, "stacks")
    assert rows[0]["call"] in {"futex", "semop", "semtimedop"}
    assert any("PGSemaphore" in row["stack"] for row in rows)
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
@pytest.mark.usefixtures("loaded_before")
def test_the_statements_of_the_load_are_kept_and_not_those_before_it(
    direct, plan, base_dir
):
    plan = with_contrib(updating(plan, statements=True), service_account())
    settings = {**plan.settings, "shared_preload_libraries": "pg_stat_statements"}
    found = execute(direct(replace(plan, settings=settings)))
    rows = table(found, "statements")
    update = next(
        row for row in rows if row["query"].startswith("UPDATE pgbench_accounts")
    )
    assert (
        int(update["calls"])
        == int(update["rows"])
        >= found.measurements["transactions"]
    )
    assert not any("vacuum" in row["query"].lower() for row in rows)
    assert nothing_is_left(base_dir) == NOTHING
