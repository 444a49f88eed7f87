"""Two sides in turn: each command executed, with its time, its processor time and its memory."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

BASE, HEAD = "base", "head"
# More of what a command prints is not a result.
LARGEST_OUTPUT = 64 * 1024 * 1024
KIB = 1024
CHUNK = 64 * KIB
# What a command gets to end by itself after it was told to.
GRACE_SECONDS = 5.0
# What a command printed is read by then, if nothing of it goes on.
LEFT_BEHIND_SECONDS = 1.0
TAIL = 2000


class CommandFailed(Exception):
    """A command did not end well. `output` is the end of what it said."""

    def __init__(self, message: str, output: str) -> None:
        self.output = output
        super().__init__(message)


class OutOfTime(Exception):
    """The time that was given is over: a command was ended before it was done."""


@dataclass(frozen=True)
class Execution:
    """One execution of a command.

    `seconds` are those of the clock, `cpu_seconds` those of all its processes' processor time, and
    `peak_bytes` is the largest memory of one of them, 0 where the system does not tell. `began_at`
    is in seconds since 1970.
    """

    stdout: bytes
    stderr: bytes
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    began_at: float = 0.0


@dataclass
class Rounds:
    """The executions of both sides; a round has one of each."""

    base: list[Execution] = field(default_factory=list)
    head: list[Execution] = field(default_factory=list)

    def __len__(self) -> int:
        """Whole rounds: what the other side lacks does not count."""
        return min(len(self.base), len(self.head))


def execute(
    command: str,
    *,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Execution:
    """Execute a command line by the shell, in this program's environment or in the given one.

    Raises CommandFailed unless it ends with 0, and OutOfTime after `timeout` seconds.
    """
    began, began_at = time.monotonic(), time.time()
    process = subprocess.Popen(  # noqa: S602 - it is the user's own command line
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    # Pipes, as a program that writes to /dev/stdout would begin a file anew.
    streams = [_Stream(pipe) for pipe in (process.stdout, process.stderr) if pipe]
    try:
        status, usage = _wait(process, None if timeout is None else began + timeout)
    except BaseException:
        _end(process)
        raise
    seconds = time.monotonic() - began
    outputs = [stream.text() for stream in streams]
    if status != 0:
        said = (outputs[1] or outputs[0])[-TAIL:].decode(errors="replace")
        raise CommandFailed(f"{command!r} {_ended(status)}", said)
    return Execution(
        outputs[0],
        outputs[1],
        seconds,
        usage.ru_utime + usage.ru_stime if usage else 0.0,
        _peak(usage.ru_maxrss) if usage else 0,
        began_at,
    )


def _peak(largest: int) -> int:
    """The largest memory of a command, in bytes; 0 where it is below that of this program.

    A new process begins as a copy of this one, and the system counts that.
    """
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if largest <= own_peak:
        return 0
    return largest if sys.platform == "darwin" else largest * KIB


def take_turns(
    commands: Mapping[str, str],
    rounds: Rounds,
    *,
    budget: float | None = None,
    draw: random.Random | None = None,
) -> Iterator[int]:
    """Measure round after round, without end: after each its number.

    Raises OutOfTime where a command is at work after `budget` seconds in all, and what `execute`
    raises.

    The order of the first round is drawn, and each further one turns that of the round before: what
    drifts evenly takes part in both sides alike.
    """
    order = (draw or random.Random()).sample([BASE, HEAD], 2)  # noqa: S311 - an order, no secret
    until = None if budget is None else time.monotonic() + budget
    number = 0
    while True:
        number += 1
        for side in order:
            executions = rounds.base if side == BASE else rounds.head
            timeout = None if until is None else until - time.monotonic()
            executions.append(execute(commands[side], timeout=timeout))
        order.reverse()
        yield number


def _wait(process: subprocess.Popen[bytes], until: float | None) -> tuple[int, Any]:
    while True:
        pid, status, usage = os.wait4(process.pid, 0 if until is None else os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if until is not None and time.monotonic() > until:
            raise OutOfTime(f"{process.args!r} takes longer than the time that is left")
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it with all that it has started."""
    if process.returncode is not None:
        return
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
            process.wait(GRACE_SECONDS)
        except (ProcessLookupError, ChildProcessError):
            return
        except subprocess.TimeoutExpired:
            continue
        return


class _Stream:
    """What a command prints to a pipe, read as it comes so that the command never waits."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._content = bytearray()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def text(self) -> bytes:
        """All of it. A process that the command has left behind is not waited for."""
        self._thread.join(LEFT_BEHIND_SECONDS)
        return bytes(self._content)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), CHUNK):
                self._content += chunk[: LARGEST_OUTPUT - len(self._content)]


def _ended(status: int) -> str:
    if status < 0:
        return f"was ended by signal {-status}"
    return f"ended with {status}"
