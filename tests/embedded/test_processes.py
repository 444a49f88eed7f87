import itertools
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchlab.embedded.account import myself
from benchlab.embedded.errors import StartError
from benchlab.embedded.processes import (
    Interrupted,
    Interrupts,
    Program,
    Supervisor,
    wait_for_end,
)


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


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("kill -9 $$", "by signal 9 (SIGKILL)"),
        ("exit 3", "with status 3"),
        ("exit", "with status 0"),
    ],
)
def test_a_program_says_how_it_ended(tmp_path: Path, command: str, ending: str) -> None:
    part = program(tmp_path, command)
    assert part.ending == ""
    part.start()
    part.process.wait()
    assert part.ending == ending


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
    ending = "by signal 9 (SIGKILL)"

    def __init__(self) -> None:
        self.restarts = 0

    def restart(self) -> None:
        self.restarts += 1

    def stop(self) -> None:
        pass


def test_a_service_that_keeps_dying_is_restarted_ever_more_slowly() -> None:
    now = 0.0
    mortal = Mortal()
    said = []
    restarts = []
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


def test_a_child_that_ends_cuts_short_what_waits_for_it_and_no_pause() -> None:
    with Interrupts() as interrupts:
        began = time.monotonic()
        with subprocess.Popen(["sleep", "0.2"]):
            interrupts.wait_for_child(3600)  # longer than a test may take
        assert time.monotonic() - began > 0.1
        with subprocess.Popen(["true"]):
            interrupts.pause(0.5)
        assert time.monotonic() - began >= 0.6


def test_the_programs_of_an_interrupted_wait_are_stopped(tmp_path: Path) -> None:
    def interrupted(_seconds: float) -> None:
        raise Interrupted

    part = program(tmp_path, "sleep 60")
    with pytest.raises(Interrupted):
        wait_for_end(part, interrupted)
    assert not part.running
