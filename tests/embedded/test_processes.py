import itertools
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchlab.embedded.account import myself
from benchlab.embedded.errors import StartError
from benchlab.embedded.parent import Parent
from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.processes import Interrupted, Interrupts, Program, Supervisor, wait_for_end


def program(tmp_path: Path, script: str, **options: object) -> Program:
    return Program(
        name="part",
        argv=["/bin/sh", "-c", script],
        account=myself(),
        log=tmp_path / "part.log",
        env=os.environ,
        cwd=tmp_path,
        **options,
    )


def test_a_program_stops_with_everything_in_its_group(tmp_path: Path) -> None:
    part = program(tmp_path, "sleep 60 & echo $!; wait")
    part.start()
    while not (child := part.log.read_text().strip()):
        time.sleep(0.01)
    part.stop()
    assert not part.running
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}/exe").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{child}/exe").exists()


def test_a_program_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    part = program(
        tmp_path,
        "trap '' TERM; echo up; while :; do sleep 0.1; done",
        stops=((signal.SIGTERM, 0.3),),
    )
    part.start()
    while not part.log.read_text():
        time.sleep(0.01)
    part.stop()
    assert part.process is not None
    assert part.process.returncode == -signal.SIGKILL


def test_the_last_words_are_those_of_this_start(tmp_path: Path) -> None:
    part = program(tmp_path, "echo said $$; exit 3")
    first = wait_for_end(part, time.sleep)
    before = part.last_words()
    wait_for_end(part, time.sleep)
    assert first == 3
    assert part.last_words().count("said") == 1
    assert part.last_words() != before
    assert str(part.log) in str(part.failed())


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    part = program(tmp_path, "")
    part.argv = ["/no/such/program"]
    with pytest.raises(StartError, match="part cannot be started"):
        part.start()


class Mortal:
    """A service that dies at once, each time."""

    name = "mortal"
    pid = None
    running = False

    def __init__(self) -> None:
        self.restarts = 0

    def restart(self) -> None:
        self.restarts += 1

    def stop(self) -> None:
        pass


def test_a_service_that_keeps_dying_is_restarted_ever_more_slowly() -> None:
    now, mortal, said, restarts = 0.0, Mortal(), [], []
    supervisor = Supervisor(said.append, clock=lambda: now + 1000)
    while now < 100:
        before = mortal.restarts
        supervisor.look_after([mortal])
        if mortal.restarts > before:
            restarts.append(now)
        now += 0.5
    gaps = [later - earlier for earlier, later in itertools.pairwise(restarts)]
    assert gaps == [1.5, 2.5, 4.5, 8.5, 16.5, 30.5, 30.5]


def test_a_service_that_lived_long_is_restarted_at_once() -> None:
    now, mortal = 1000.0, Mortal()
    supervisor = Supervisor(lambda _line: None, clock=lambda: now)
    supervisor.look_after([mortal])
    mortal.running = True
    now += 61
    supervisor.look_after([mortal])
    mortal.running = False
    supervisor.look_after([mortal])
    assert mortal.restarts == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_this_pause_and_every_later_one(number: signal.Signals) -> None:
    with Interrupts() as interrupts:
        interrupts.pause(0)
        os.kill(os.getpid(), number)
        for _ in range(2):
            with pytest.raises(Interrupted):
                interrupts.pause(10)


def test_the_programs_of_an_interrupted_wait_are_stopped(tmp_path: Path) -> None:
    def interrupted(_seconds: float) -> None:
        raise Interrupted

    part = program(tmp_path, "sleep 60")
    with pytest.raises(Interrupted):
        wait_for_end(part, interrupted)
    assert not part.running


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Parent]:
    program_of_parent = program(tmp_path, "")
    program_of_parent.argv = [sys.executable]
    program_of_parent.cwd = REPOSITORY
    found = Parent(program_of_parent, time.sleep)
    found.start()
    yield found
    found.stop()


def forked(parent: Parent, tmp_path: Path, name: str, *arguments: str) -> Program:
    made = program(tmp_path, "", stops=((signal.SIGTERM, 5.0),))
    made.name, made.argv = name, [sys.executable, *arguments]
    made.log, made.fork = tmp_path / f"{name}.log", parent.fork
    made.start()
    return made


@pytest.mark.skipif(not Parent.works_here(), reason="needs Linux")
def test_programs_share_what_their_parent_has_loaded_and_outlive_it(
    parent: Parent, tmp_path: Path
) -> None:
    wrong = forked(parent, tmp_path, "wrong", "-m", "json.tool", "/no/such/file")
    assert wrong.process is not None
    assert wrong.process.wait(10) == 2
    assert "/no/such/file" in wrong.last_words()

    server = forked(parent, tmp_path, "server", "-m", "http.server", "0", "--bind", "127.0.0.1")
    while "Serving" not in server.log.read_text():
        time.sleep(0.01)
    status = Path(f"/proc/{server.pid}/status").read_text().split()
    assert status[status.index("Name:") + 1] == "server"
    assert int(status[status.index("PPid:") + 1]) == parent.pid
    assert status[status.index("Threads:") + 1] == "1"
    assert os.getsid(server.pid or 0) == os.getpgid(server.pid or 0) == server.pid
    loaded = Path(f"/proc/{server.pid}/maps").read_text()
    assert "psycopg" in loaded
    assert len(list(Path(f"/proc/{server.pid}/fd").iterdir())) == 4  # three, and what it listens on

    os.kill(parent.pid or 0, signal.SIGKILL)
    while parent.running:
        time.sleep(0.01)
    assert server.running
    alone = forked(parent, tmp_path, "alone", "-c", "print('started without a parent')")
    assert alone.process is not None
    assert alone.process.wait(10) == 0
    parent.restart()
    server.restart()
    assert int(Path(f"/proc/{server.pid}/stat").read_text().split()[3]) == parent.pid
    server.stop()
    assert server.process is not None
    assert server.process.returncode == -signal.SIGTERM
