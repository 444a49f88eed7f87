"""Child processes with a name and a log, and the care for those that die.

An exception raised by a signal handler could strike between a fork and the line that remembers the
new process. So the handler only writes to a pipe, and waiting is what raises.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Protocol, Self

from benchlab.embedded.account import Account, Child
from benchlab.embedded.descendants import Process, started
from benchlab.embedded.errors import StartError, StopError

LOG_KEPT_BYTES = 10_000_000
# What is killed ends at once, unless it cannot be killed at all.
KILLED_SECONDS = 5.0

Pause = Callable[[float], None]


@dataclass
class Program:
    """One child process at a time, and how it is started and stopped.

    `stops` lists signals with the seconds that each gets; whoever is left afterwards is killed,
    together with the rest of its process group. `fork` starts it in another way, where it can.
    """

    name: str
    argv: Sequence[str | Path]
    account: Account
    log: Path
    env: Mapping[str, str]
    cwd: Path
    stops: Sequence[tuple[signal.Signals, float]] = ((signal.SIGTERM, 5.0),)
    stdin: bytes = b""
    pass_fds: Sequence[int] = ()
    fork: "Callable[[Program, IO[bytes]], Child | None] | None" = None
    process: Child | None = None
    _log_began: int = field(default=0, init=False)
    _was_asked: bool = field(default=False, init=False)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self.process.pid if self.process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def ending(self) -> str:
        """How it ended: by which signal, or with which status; empty while it runs."""
        status = self.process.poll() if self.process is not None else None
        if status is None:
            return ""
        if status < 0:
            return f"by signal {-status} ({signal.Signals(-status).name})"
        return f"with status {status}"

    def start(self) -> None:
        """Start it. Raises StartError when there is nothing to execute."""
        self._was_asked = False
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_KEPT_BYTES:
            self.log.replace(self.log.with_name(self.log.name + ".1"))
        with self.log.open("ab") as log:
            self._log_began = log.tell()
            forked = self.fork(self, log) if self.fork else None
            self.process = forked or self._spawned(log)
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.process.stdin as pipe:
                pipe.write(self.stdin)

    def _spawned(self, log: IO[bytes]) -> Child:
        try:
            return self.account.spawn(
                self.argv,
                env=self.env,
                cwd=self.cwd,
                stdin=subprocess.PIPE if self.stdin else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=self.pass_fds,
            )
        except OSError as error:
            raise StartError(f"{self.name} cannot be started: {error}") from error

    def restart(self) -> None:
        """Restart it after it died, without leftovers of its process group."""
        self._kill_group()
        self.start()

    def ask_to_stop(self) -> None:
        """Send the first of the signals, once, and do not wait."""
        if not self._was_asked:
            self._was_asked = True
            self._signal(self.stops[0][0])

    def stop(self) -> None:
        """Stop it and wait; its output is in the log.

        Raises StopError if sudo does not let us end it any more.
        """
        if self.process is None:
            return
        self.ask_to_stop()
        for number, patience in self.stops:
            if number != self.stops[0][0]:
                self._signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                break
        by_sudo = self.account.owned_below(self.process) if self.account.by_sudo else []
        self._kill_group()
        if by_sudo:  # sudo itself may have ended, and what it has started not
            self._wait_for_the_end_of(by_sudo)
        self.process.wait()

    def _wait_for_the_end_of(self, killed: Sequence[Process]) -> None:
        until = time.monotonic() + KILLED_SECONDS
        while survivors := [
            process for process in killed if started(process.pid) == process.started
        ]:
            if time.monotonic() > until:
                pids = " ".join(str(process.pid) for process in survivors)
                raise StopError(
                    f"{self.name} is still running: sudo does not let us end programs of"
                    f" {self.account.name} any more. As root: kill {pids}"
                )
            time.sleep(0.05)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.account.send(self.process, number)

    def _kill_group(self) -> None:
        if self.process is not None:
            if self.account.by_sudo:
                self.account.send(self.process, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def output(self) -> str:
        """What it has logged since its start."""
        with self.log.open("rb") as log:
            log.seek(self._log_began)
            return log.read().decode(errors="replace")

    def last_words(self) -> str:
        """The end of what it has logged since its start, and where the rest is."""
        words = self.output().splitlines()[-15:]
        return "\n".join(
            [*(f"  {line}" for line in words), f"  (all of it: {self.log})"]
        )

    def failed(self) -> StartError:
        """The error to raise when it ended instead of serving."""
        status = self.process.poll() if self.process is not None else None
        return StartError(
            f"{self.name} did not start (exit {status}):\n{self.last_words()}"
        )


def reason(output: str) -> str:
    """The line in which a command of manage.py says why it ended; empty where it does not."""
    *_before, last_line = ["", *output.strip().splitlines()]
    for mark in ("BenchLab: ", "CommandError: "):
        if last_line.startswith(mark):
            return last_line.removeprefix(mark)
    return ""


def wait_for_end(program: Program, pause: Pause) -> int:
    """Start it, wait for its end, return its exit status; it is stopped when pause() raises."""
    program.start()
    assert program.process is not None  # noqa: S101 - start() has set it
    try:
        while program.process.poll() is None:
            pause(0.05)
    finally:
        program.stop()
    return program.process.wait()


class Service(Protocol):
    """What a supervisor needs to know of a part of the instance."""

    name: str

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""

    @property
    def running(self) -> bool:
        """Whether it runs."""

    @property
    def ending(self) -> str:
        """How it ended, as `Program.ending`."""

    def restart(self) -> None:
        """Start it again at its old address. Does not wait until it serves."""

    def stop(self) -> None:
        """Stop it and wait."""


class Supervisor:
    """Restarts services that die: at once, then after 1, 2, 4 ... 30 s while they keep dying."""

    LONGEST_DELAY = 30.0
    # What is no child of ours ends without a word.
    LONGEST_WAIT = 10.0
    STEADY_AFTER = 60.0

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ):
        self._say = say
        self._clock = clock
        self._deaths: dict[str, int] = {}
        self._started: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def look_after(self, services: Sequence[Service]) -> bool:
        """Restart whatever is dead and due. Whether something was restarted."""
        restarted = False
        for service in services:
            if service.running:
                continue
            if service.name not in self._due:
                self._due[service.name] = self._next_time(service)
            if self._clock() >= self._due[service.name]:
                restarted = True
                self._restart(service)
        return restarted

    @property
    def patience(self) -> float:
        """Seconds until the next look, while no child of this process ends."""
        return 1.0 if self._due else self.LONGEST_WAIT

    def _next_time(self, service: Service) -> float:
        now = self._clock()
        if now - self._started.get(service.name, 0.0) > self.STEADY_AFTER:
            self._deaths[service.name] = 0
        deaths = self._deaths.get(service.name, 0)
        self._deaths[service.name] = deaths + 1
        delay = 0.0 if deaths == 0 else min(2.0 ** (deaths - 1), self.LONGEST_DELAY)
        self._say(
            f"{service.name} ended {service.ending}; it starts again in {delay:.0f} s"
        )
        return now + delay

    def _restart(self, service: Service) -> None:
        del self._due[service.name]
        self._started[service.name] = self._clock()
        try:
            service.restart()
        except StartError as error:
            self._say(str(error))


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP, CHILD = b"!", b"."


class Interrupted(Exception):
    """A signal asked this process to stop."""


class Interrupts:
    """While entered, SIGINT, SIGTERM and SIGHUP end the present and every later pause()."""

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        self._is_asked = False
        os.set_blocking(self._writing, False)
        self._before = {signals: signal.getsignal(signals) for signals in SIGNALS}
        for signals in SIGNALS:
            # nohup's wish is kept; an ignored SIGINT is only what a shell does to `server &`
            if (
                signals is not signal.SIGHUP
                or self._before[signals] is not signal.SIG_IGN
            ):
                signal.signal(signals, self._note)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for signals, handler in self._before.items():
            signal.signal(signals, handler)
        os.close(self._reading)
        os.close(self._writing)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, CHILD if number == signal.SIGCHLD else STOP)

    def pause(self, seconds: float) -> None:
        """Sleep; raises Interrupted as soon as a signal came, now or earlier."""
        until = time.monotonic() + seconds
        self.wait_for_child(0)
        while (seconds_left := until - time.monotonic()) > 0:
            self.wait_for_child(seconds_left)

    def wait_for_child(self, seconds: float) -> None:
        """The same, but no longer than until a child ends, or since one has ended."""
        if not self._is_asked and select.select([self._reading], [], [], seconds)[0]:
            self._is_asked = STOP in os.read(self._reading, 4096)
        if self._is_asked:
            raise Interrupted
