"""What becomes of a run's result and of its machines where something refuses to end."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from benchmarks.processes import concerning
from runs.execution.clusters import postgres
from runs.execution.steps import steps
from tests.ssh.directing import execute, left_running, names, processes_below

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]
prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def plan(plan):
    return replace(plan, parameters={"scale": 1, "duration": 1})


@pytest.fixture
def in_phase(monkeypatch):
    """Do something in the moment in which a director's run enters a phase."""

    def set_up(director, phase: str, act) -> None:
        told = director.reporter.phase

        async def entering(name):
            await told(name)
            if name == phase:
                act()

        monkeypatch.setattr(director.reporter, "phase", entering)

    return set_up


def children_of(pid: int) -> list[int]:
    """The processes that a postmaster has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def postmaster(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split()[0])


@prepared
def test_a_server_that_does_not_stop_costs_no_result(
    direct, plan, base_dir, in_phase, monkeypatch
):
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 1)
    monkeypatch.setattr(postgres, "SECONDS_BETWEEN_SIGNALS", 1)
    director = direct(plan)
    data = base_dir / "clusters" / "shared" / "data"
    in_phase(director, "collecting", lambda: os.kill(postmaster(data), signal.SIGSTOP))
    keep, kept = director.reporter.found, []

    async def storing(findings):
        """It is being ended meanwhile, and nothing is removed before the result is stored."""
        async with asyncio.timeout(60):
            while processes_below(data):
                await asyncio.sleep(0.1)
        kept.extend(names(base_dir / "runs"))
        await keep(findings)

    monkeypatch.setattr(director.reporter, "found", storing)
    found = execute(director)

    assert found.measurements["tps"] > 0
    assert kept == ["7-1"]
    commands = {each.name: each for each in director.reporter.commands}
    read, stopped = commands["count-latencies"], commands["stop"]
    assert (
        stopped.started < read.finished
    )  # what was recorded is read while the server stops
    [(code, message)] = director.reporter.events
    assert (code, "Step stop" in message) == ("stop_failed", True)
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
    assert names(base_dir / "clusters") == ["shared"]


@prepared
@pytest.mark.parametrize("seconds_left", [0, 4])
def test_a_server_that_was_killed_leaves_no_shared_memory(
    direct, plan, base_dir, in_phase, seconds_left
):
    """Even where one of its processes takes longer to end than the postmaster."""
    director = direct(plan)
    data = base_dir / "clusters" / "shared" / "data"
    segments, files, late = [], set(), []

    def kill():
        lines = (data / "postmaster.pid").read_text().splitlines()
        segments.append(lines[6].split()[1])
        maps = Path(f"/proc/{lines[0]}/maps").read_text()
        # What it has made since stays, as long as other servers of the account may have made it.
        noted = (data.parent / "shared-memory").read_text().split()
        files.update(
            map(
                Path,
                {*re.findall(r"/dev/shm/PostgreSQL\.\d+", maps)}.intersection(noted),
            )
        )
        last = min(children_of(int(lines[0])))
        os.kill(last, signal.SIGSTOP)
        late.append(Timer(seconds_left, os.kill, (last, signal.SIGKILL)))
        for each in concerning(str(data)):
            if each.pid != last:
                os.kill(each.pid, signal.SIGKILL)
        late[0].start()

    in_phase(director, "collecting", kill)
    execute(director)
    late[0].join()
    there = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    assert segments[0] not in [line.split()[1] for line in there]
    assert not any(map(Path.exists, files))


@prepared
def test_memory_that_another_server_keeps_unmapped_is_left_to_it(
    direct, plan, base_dir, in_phase, account
):
    """A segment that is pinned, as that of statistics, is mapped by nobody in between.

    The results database of the tests, or another run's server, is the neighbour.
    """
    director = direct(plan)
    data = base_dir / "clusters" / "shared" / "data"
    pinned = Path(f"/dev/shm/PostgreSQL.{os.getpid()}")
    neighbour = []

    def kill():
        owner = (data / "postmaster.pid").stat()
        pinned.touch()
        os.chown(pinned, owner.st_uid, owner.st_gid)
        program = pinned.parent / f"{pinned.name}-neighbour" / "postgres"
        program.parent.mkdir()
        program.write_bytes(Path("/bin/sleep").read_bytes())
        program.chmod(0o755)
        as_owner = {} if os.getuid() == owner.st_uid else {"user": owner.st_uid}
        neighbour.append(subprocess.Popen([program, "60"], **as_owner))
        for each in concerning(str(data)):
            os.kill(each.pid, signal.SIGKILL)

    in_phase(director, "collecting", kill)
    try:
        execute(director)
        assert pinned.exists()
    finally:
        for each in neighbour:
            each.kill()
            each.wait()
        pinned.unlink(missing_ok=True)
        shutil.rmtree(f"{pinned}-neighbour", ignore_errors=True)


def test_programs_that_are_removed_meanwhile_cost_no_result_and_leave_no_server(
    direct, plan, base_dir, in_phase, binaries, account
):
    bindir = base_dir.parent / f"{base_dir.name}-bin"
    bindir.symlink_to(binaries.postgresql16)
    director = direct(replace(plan, bindir=str(bindir), cluster_key=""))
    in_phase(director, "collecting", bindir.unlink)

    found = execute(director)

    assert found.measurements["tps"] > 0
    assert [code for code, _message in director.reporter.events] == ["stop_failed"]
    assert left_running(base_dir) == []
    assert names(base_dir / "clusters") == names(base_dir / "runs") == []


def test_an_error_of_benchlab_after_the_load_keeps_what_is_left_of_it(
    direct, plan, base_dir, monkeypatch
):
    director = direct(replace(plan, cluster_key=""))

    async def failing(findings):
        raise RuntimeError("a fault of BenchLab")

    monkeypatch.setattr(director.reporter, "found", failing)

    with pytest.raises(RuntimeError) as told:
        execute(director)

    [note] = told.value.__notes__
    assert f"{base_dir}/runs/7-1 on 127.0.0.1" in note
    assert (
        "tps = "
        in (base_dir / "runs" / "7-1" / "steps" / "pgbench" / "out").read_text()
    )
    assert left_running(base_dir) == []
    assert names(base_dir / "clusters") == []


def test_what_does_not_end_keeps_the_folder_that_leads_to_it(
    direct, plan, base_dir, monkeypatch
):
    monkeypatch.setattr(steps, "_STOP", "exit 1")
    director = direct(replace(plan, cluster_key=""))

    assert execute(director).measurements["tps"] > 0
    assert [code for code, _message in director.reporter.events] == [
        "cleanup_incomplete"
    ]
    assert names(base_dir / "runs") == ["7-1"]
    assert names(base_dir / "clusters") == ["run-7"]
