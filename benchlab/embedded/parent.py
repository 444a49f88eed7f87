"""The process that loads BenchLab once, and from which the instance's programs are forked.

Memory that nobody writes to is then shared by all of them. Linux only: elsewhere, and where the
parent does not answer, each program loads BenchLab itself.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import IO, Any

from benchlab.embedded.processes import Pause, Program

# It loads BenchLab meanwhile.
ANSWER_SECONDS = 60.0
MOST_BYTES = 65_536


class Forked:
    """A process that the parent has forked, with what Program needs of subprocess.Popen."""

    stdin = None

    def __init__(self, pid: int, parent: "Parent") -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent
        self._descriptor = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to it, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._descriptor], [], [], timeout)[0]:
            self.returncode = self._parent.status(self.pid)
            os.close(self._descriptor)
        return self.returncode


class Parent:
    """The parent, a service of the instance. `pause` ends waits for its answers.

    `program` says who it is and where its log lies; its descriptors are passed on.
    """

    name = "parent"

    def __init__(self, program: Program, pause: Pause) -> None:
        self._program = program
        self._pause = pause
        self._python = program.argv[0]
        self._passed = tuple(program.pass_fds)
        self._door: socket.socket | None = None

    @staticmethod
    def works_here() -> bool:
        """Whether programs can be forked from it on this system."""
        return sys.platform == "linux"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._program.running

    def start(self) -> None:
        """Start it; it answers as soon as it has loaded BenchLab."""
        self._close()
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._program.argv = [self._python, "-m", "benchlab.parent", str(number)]
            self._program.pass_fds = (*self._passed, number)
            self._program.start()

    def restart(self) -> None:
        """Start it again; what the former one has forked goes on."""
        self.start()

    def stop(self) -> None:
        """Stop it; what it has forked goes on."""
        self._program.stop()
        self._close()

    def fork(self, program: Program, log: IO[bytes]) -> Forked | None:
        """Start a program of Python from it; None if it does not answer, or is not running."""
        request = {"name": program.name, "argv": [str(word) for word in program.argv[1:]]}
        try:
            answer = self._ask(request, [log.fileno()], ANSWER_SECONDS, self._pause)
            return Forked(answer["pid"], self)
        except (OSError, ValueError):
            return None

    def status(self, pid: int) -> int:
        """The exit status of a process that it has forked, and that has ended; -1 if unknown."""
        try:
            # Asked while the instance stops as well, when no pause is left.
            found = self._ask({"pid": pid}, [], 1.0, time.sleep)["status"]
        except (OSError, ValueError):
            return -1
        return -1 if found is None else int(found)

    def _ask(self, request: Any, descriptors: list[int], seconds: float, pause: Pause) -> Any:
        """Ask and wait; raises OSError, or ValueError where there is no answer."""
        if self._door is None or not self.running:
            raise ConnectionError
        socket.send_fds(self._door, [json.dumps(request).encode()], descriptors)
        until = time.monotonic() + seconds
        while not select.select([self._door], [], [], 0)[0]:
            if time.monotonic() > until or not self.running:
                self.stop()  # it must not fork later, when the program was started without it
                raise TimeoutError
            pause(0.02)
        return json.loads(self._door.recv(MOST_BYTES))

    def _close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
