"""The parent of an instance's programs: it loads BenchLab once, and they share that memory.

    python -m benchlab.parent DESCRIPTOR

Started by `benchlab.embedded.parent`, whose requests come through the socket DESCRIPTOR: the
arguments of Python for a program, for which it is forked and answers the process id; or a process
id, for which the exit status is answered. It holds no connection and no thread, ends when the
socket's other side does, and its programs go on without it.
"""

import gc
import json
import os
import runpy
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

MOST_BYTES = 65_536


class Forks:
    """Answers requests in the parent. In a forked program `serve` returns its arguments."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._ended: dict[int, int] = {}

    def serve(self) -> list[str]:
        """Answer until the other side is gone, which raises SystemExit."""
        signal.signal(signal.SIGCHLD, self._reap)
        while True:
            received, descriptors, _flags, _from = socket.recv_fds(self._door, MOST_BYTES, 1)
            if not received:
                raise SystemExit(0)
            request = json.loads(received)
            if "argv" not in request:
                self._answer({"status": self._status(request["pid"])})
            elif pid := os.fork():
                os.close(descriptors[0])
                self._answer({"pid": pid})
            else:
                self._become(request["name"], descriptors[0])
                return list(request["argv"])

    def _answer(self, answer: dict[str, Any]) -> None:
        self._door.send(json.dumps(answer).encode())

    def _reap(self, *_: object) -> None:
        for pid in iter(self._dead, 0):
            assert pid in self._ended  # noqa: S101 - _dead has noted it

    def _dead(self) -> int:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid:
            self._ended[pid] = os.waitstatus_to_exitcode(status)
        return pid

    def _status(self, pid: int) -> int | None:
        """Of a program that has ended; None of one that a former parent has forked."""
        self._reap()
        return self._ended.pop(pid, None)

    def _become(self, name: str, log: int) -> None:
        """Have nothing of the parent but its memory, and be a session and group of its own."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        self._door.close()
        for standard in (1, 2):
            os.dup2(log, standard)
        os.close(log)
        Path("/proc/self/comm").write_text(name)  # what `ps -o comm` and `top` show


def load() -> None:
    """Import what the programs need, and keep it from being collected. Opens nothing."""
    import gunicorn.app.wsgiapp  # noqa: F401, PLC0415

    import benchlab.worker  # noqa: F401, PLC0415
    from benchlab import quick_celery, wsgi  # noqa: F401, PLC0415
    from benchlab.celery import app  # noqa: PLC0415
    from runs.execution import ssh  # noqa: PLC0415

    quick_celery.load()
    app.loader.import_default_modules()
    ssh.load()
    if (threads := threading.active_count()) > 1:
        raise SystemExit(f"{threads} threads have been started: no program can be forked safely")
    gc.collect()
    gc.freeze()


def main() -> None:
    """Load, serve; in a forked program, run it."""
    door = socket.socket(fileno=int(sys.argv[1]))
    load()
    option, module, *arguments = Forks(door).serve()
    assert option == "-m"  # noqa: S101 - the only form of its requests
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
