import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchlab.embedded import descendants
from benchlab.embedded.account import myself
from benchlab.embedded.loading import Loader
from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.processes import Program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def program_in(folder: Path, name: str, *arguments: str) -> Program:
    return Program(
        name=name,
        argv=[sys.executable, *arguments],
        account=myself(),
        log=folder / f"{name}.log",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        cwd=REPOSITORY,
    )


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loader]:
    """One for all tests; this process adopts as an instance does."""
    descendants.become_subreaper()
    loader = Loader(program_in(tmp_path_factory.mktemp("loader"), "loader"), time.sleep)
    loader.start()
    yield loader
    loader.stop()
    ctypes.CDLL(None).prctl(descendants.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def start(loader: Loader, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    programs = []

    def fork(name: str, *arguments: str) -> Program:
        forked = program_in(tmp_path, name, *arguments)
        forked.fork = loader.fork
        forked.start()
        programs.append(forked)
        return forked

    yield fork
    for forked in programs:
        forked.stop()


SERVER = ("-m", "http.server", "0", "--bind", "127.0.0.1")


def serving(server: Program) -> None:
    until = time.monotonic() + 60
    while "Serving" not in server.output() and time.monotonic() < until:
        time.sleep(0.01)
    assert "Serving" in server.output()


def private_kilobytes(pid: int) -> int:
    """What no other process has of its memory."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def test_a_program_is_ours_and_shares_what_the_loader_has_loaded(
    loader: Loader, start: Callable[..., Program]
) -> None:
    server = start("server", *SERVER)
    serving(server)
    status = Path(f"/proc/{server.pid}/status").read_text().split()
    assert status[status.index("Name:") + 1] == "server"
    assert int(status[status.index("PPid:") + 1]) == os.getpid()
    assert status[status.index("Threads:") + 1] == "1"
    assert os.getsid(server.pid or 0) == os.getpgid(server.pid or 0) == server.pid
    assert "psycopg" in Path(f"/proc/{server.pid}/maps").read_text()
    # Standard input, output and errors, and what it listens on.
    assert len(list(Path(f"/proc/{server.pid}/fd").iterdir())) == 4
    # BenchLab takes 100 MB.
    assert private_kilobytes(server.pid or 0) < 30_000

    server.stop()
    assert server.process is not None
    assert server.process.poll() == -signal.SIGTERM


def test_it_is_known_how_a_program_has_ended(start: Callable[..., Program]) -> None:
    wrong = start("wrong", "-m", "json.tool", "/no/such/file")
    assert wrong.process is not None
    assert wrong.process.wait(60) == 2
    assert wrong.ending == "with status 2"
    assert "/no/such/file" in wrong.last_words()


def test_a_program_that_nobody_adopts_is_started_without_the_loader(
    loader: Loader, start: Callable[..., Program]
) -> None:
    """Nobody would know when it ends."""
    prctl = ctypes.CDLL(None).prctl
    prctl(descendants.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    try:
        server = start("server", *SERVER)
    finally:
        prctl(descendants.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    serving(server)
    assert "psycopg" not in Path(f"/proc/{server.pid}/maps").read_text()
    assert not loader.running
    loader.restart()


def test_programs_outlive_the_loader_and_start_without_it(
    loader: Loader, start: Callable[..., Program]
) -> None:
    server = start("server", *SERVER)
    serving(server)
    os.kill(loader.pid or 0, signal.SIGKILL)
    while loader.running:
        time.sleep(0.01)
    assert server.running
    alone = start("alone", *SERVER)
    serving(alone)
    assert "psycopg" not in Path(f"/proc/{alone.pid}/maps").read_text()

    alone.stop()
    loader.restart()
    alone.restart()
    serving(alone)
    assert "psycopg" in Path(f"/proc/{alone.pid}/maps").read_text()
