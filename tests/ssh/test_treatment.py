"""The treatment of a run on a real machine: caches and processors."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import preflight
from runs.execution.errors import TargetProblem
from runs.execution.machine import cpus, privileged
from tests.ssh.directing import execute, names, watched, when_measuring
from tests.ssh.sudo import needs_writable, sysctl

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


def note_codes(found) -> dict[str, str]:
    return {note.code: note.level for note in found.notes}


def dropped() -> int:
    counters = dict(
        line.split() for line in Path("/proc/vmstat").read_text().splitlines()
    )
    return int(counters["drop_pagecache"])


# Cold caches.


def test_caches_are_emptied_before_the_start_and_nothing_is_read_ahead(
    direct, treated, allow
):
    needs_writable("/proc/sys/vm/drop_caches")
    allow("drop_caches")
    before = dropped()
    director = direct(treated(cold_cache=True), privileges=("drop_caches",))
    found = execute(director)
    steps = director.reporter.steps
    # Other tests of this machine empty them too.
    assert dropped() > before
    assert (
        steps.index("stop-after-load")
        < steps.index("drop-caches")
        < steps.index("start")
    )
    assert "prewarm" not in steps
    assert note_codes(found)["cold_cache"] == "info"
    assert not {"prewarm_extension", "prewarm_sequential"} & set(note_codes(found))
    dropping = director.reporter.commands[steps.index("drop-caches")]
    assert dropping.argv == ("sudo", "-n", *privileged.DROP_CACHES)


@pytest.mark.on_disk
@prepared
def test_a_cold_run_reads_the_data_from_the_disk(direct, treated, allow, base_dir):
    """The kernel counts for each process what came from a device; the data is read first."""
    needs_writable("/proc/sys/vm/drop_caches")
    allow("drop_caches")
    data = next((base_dir / "clusters").glob("*/data/base/*/*_vm")).parent
    for file in data.iterdir():
        file.read_bytes()
    largest = max(data.iterdir(), key=lambda each: each.stat().st_size)
    assert resident(largest) > 0.9
    director = direct(
        replace(treated(cold_cache=True), run_id=8), privileges=("drop_caches",)
    )

    async def look(_bench):
        look.share = resident(largest)

    director.procedure = type("Looks", (), {"measure": staticmethod(look)})()
    execute(director)
    assert look.share < 0.5


def resident(path: Path) -> float:
    """The share of a file that is in the machine's cache."""
    told = subprocess.run(
        ["fincore", "--bytes", "--noheadings", "--output", "RES", path],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(told.stdout) / path.stat().st_size


@prepared
def test_caches_that_may_not_be_emptied_end_the_run_with_what_to_do(
    direct, treated, base_dir
):
    director = direct(treated(cold_cache=True))
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "privilege_missing"
    assert "Tick it" in told.value.remedy
    assert names(base_dir / "runs") == []


@pytest.mark.refused
@prepared
def test_sudo_that_refuses_ends_the_run_and_its_words_are_kept(direct, treated, allow):
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(cold_cache=True), privileges=("drop_caches",)))
    assert told.value.code == "privilege_missing"
    assert "password is required" in told.value.message
    assert "sudoers" in told.value.remedy


# Processors.


def allowed(pid: str) -> str:
    status = Path("/proc", pid, "status").read_text()
    return re.search(r"Cpus_allowed_list:\s*(\S+)", status).group(1)


def pids_of(program: str, folder: Path) -> list[str]:
    """The processes of a program that have to do with the folder, and all their children."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
                if Path(words[0].decode()).name == program and str(
                    folder
                ).encode() in b" ".join(words):
                    children = (
                        (each / "task" / each.name / "children").read_text().split()
                    )
                    found += [each.name, *children]
            except (OSError, UnicodeDecodeError):
                continue
    return found


@prepared
def test_server_and_pgbench_run_on_their_own_processors(direct, treated, base_dir):
    first, second = sorted(cpus.parse(allowed("self")))[:2]
    director = direct(treated(5, server_cpus=str(first), pgbench_cpus=str(second)))
    seen = {}

    def orders():
        for order in when_measuring(director, "go_on"):
            if director.bench.running_step == "pgbench":
                for program in ("postgres", "pgbench"):
                    for pid in pids_of(program, base_dir):
                        try:
                            seen.setdefault(program, {})[pid] = allowed(pid)
                        except OSError:
                            continue
            yield order

    found = watched(director, orders())
    # The postmaster, its helpers, and a backend for each client.
    assert len(seen["postgres"]) > 5
    assert set(seen["postgres"].values()) == {str(first)}
    assert set(seen["pgbench"].values()) == {str(second)}
    assert note_codes(found)["cpus_pinned"] == "info"
    commands = {each.name: each.argv for each in director.reporter.commands}
    assert commands["start"][:3] == ("taskset", "-c", str(first))
    assert ("taskset", "-c", str(second)) == commands["pgbench"][2:5]


@pytest.mark.parametrize("wanted", ["0,4000", "4000"])
@prepared
def test_processors_that_are_not_there_end_the_run(direct, treated, wanted):
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(server_cpus=wanted)))
    assert told.value.code == "cpus_not_there"


def test_a_machine_says_what_it_has_for_a_treatment(on_host, base):
    target = on_host(lambda host: preflight.look(host, base, [], []))
    assert "taskset" in target.tools
    assert ("perf" in target.tools) == (shutil.which("perf") is not None)
    assert target.paranoia == sysctl("kernel.perf_event_paranoid")
    has_governors = Path("/sys/devices/system/cpu/cpu0/cpufreq").exists()
    assert bool(target.governors) == has_governors
