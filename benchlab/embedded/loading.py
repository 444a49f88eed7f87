"""The service that loads BenchLab once, and starts the instance's programs of Python from there.

Memory that nobody writes to is then shared by all of them (`benchlab.loader`). Linux only:
elsewhere, and where it does not answer, each program loads BenchLab itself.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import IO

from benchlab.embedded.processes import Pause, Program

# It loads BenchLab meanwhile.
ANSWER_SECONDS = 60.0
MOST_BYTES = 20


class Forked:
    """A program that the loader has forked for us, with what Program needs of subprocess.Popen.

    It is a child of this process: as an orphan it was adopted.
    """

    stdin: IO[bytes] | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, below 0 for a signal; None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # nobody knows how it ended
                self.returncode = 1
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, some seconds at most. Raises subprocess.TimeoutExpired."""
        until = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.02)
        return status

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Loader:
    """The service. `program` says by which Python, in which account and where its log lies."""

    name = "loader"

    def __init__(self, program: Program, pause: Pause) -> None:
        self._program = program
        self._pause = pause
        self._door: socket.socket | None = None

    @staticmethod
    def works_here(program: Program) -> bool:
        """Whether this process adopts what the loader forks for it, and may end it."""
        return sys.platform == "linux" and not program.account.by_sudo

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._program.running

    @property
    def ending(self) -> str:
        """How it ended, as `Program.ending`."""
        return self._program.ending

    def start(self) -> None:
        """Start it; it answers as soon as it has loaded BenchLab."""
        self._close()
        self._door, other_side = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET
        )
        with other_side:
            number = other_side.fileno()
            python = self._program.argv[0]
            self._program = replace(
                self._program,
                argv=[python, "-m", "benchlab.loader", str(number)],
                pass_fds=(number,),
            )
            self._program.start()

    def restart(self) -> None:
        """Start it again; what it has forked goes on."""
        self.start()

    def stop(self) -> None:
        """Stop it and wait; what it has forked goes on."""
        self._close()
        self._program.stop()

    def fork(self, program: Program, log: IO[bytes]) -> Forked | None:
        """Start a program (`python -m MODULE ...`); None where the loader does not answer."""
        _python, option, *arguments = map(str, program.argv)
        assert option == "-m"  # noqa: S101 - every program of Python is started so
        request = {
            "name": program.name,
            "arguments": arguments,
            "pass_fds": list(program.pass_fds),
        }
        if self._door is None or not self.running:
            return None
        try:
            socket.send_fds(
                self._door,
                [json.dumps(request).encode()],
                [log.fileno(), *program.pass_fds],
            )
            return self._adopted(int(self._answer(self._door)))
        except (OSError, ValueError):
            # It must not fork later, when the program was started without it.
            self.stop()
            return None

    def _adopted(self, pid: int) -> Forked:
        """The program. Raises ChildProcessError where it is not ours: we would not see its end."""
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            os.kill(pid, signal.SIGKILL)
            raise
        return Forked(pid)

    def _answer(self, door: socket.socket) -> bytes:
        until = time.monotonic() + ANSWER_SECONDS
        while not select.select([door], [], [], 0)[0]:
            if time.monotonic() > until or not self.running:
                raise TimeoutError
            self._pause(0.02)
        return door.recv(MOST_BYTES)

    def _close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
