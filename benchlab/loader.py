"""Loads BenchLab once for all programs of an instance, which share that memory.

    python -m benchlab.loader DESCRIPTOR

Started by `benchlab.embedded.loading`, whose requests come through the socket DESCRIPTOR, each for
one program of Python. The program is forked from this process and belongs to the instance, as if it
had started it itself. This process holds no connection and no thread; it ends with the socket's
other side, and the programs go on without it.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from benchlab.celery import app

# Of web, control and workers.
LOADED = (
    "celery.bin.worker",
    "gunicorn.app.wsgiapp",
    "benchlab.gunicorn",
    "benchlab.wsgi",
    "asyncssh",
)
MOST_BYTES = 65_536
MOST_DESCRIPTORS = 2


def load() -> None:
    """Import what the programs need. Opens nothing."""
    for module in LOADED:
        importlib.import_module(module)
    app.loader.import_default_modules()
    if threading.active_count() > 1:
        raise SystemExit("A thread has been started: no program can be forked safely.")
    # Collections would write to what is loaded, so that it was shared no longer.
    gc.collect()
    gc.freeze()


def serve(door: socket.socket) -> dict[str, Any]:
    """Fork a program for each request, and answer its process id. Returns in the program only.

    Raises SystemExit when the other side is gone.
    """
    while True:
        request, descriptors = socket.recv_fds(door, MOST_BYTES, MOST_DESCRIPTORS)[:2]
        if not request:
            raise SystemExit(0)
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            # As an orphan the program belongs to the instance, which adopts those below it.
            program = os.fork()
            if program:
                os.write(writing, str(program).encode())
                os._exit(0)
            os.close(reading)
            os.close(writing)
            door.close()
            wanted: dict[str, Any] = json.loads(request)
            prepare(wanted, descriptors)
            return wanted
        os.close(writing)
        os.waitpid(between, 0)
        door.send(os.read(reading, 20))
        for descriptor in (reading, *descriptors):
            os.close(descriptor)


def prepare(wanted: dict[str, Any], descriptors: list[int]) -> None:
    """Make this process a program: a session of its own, a log, and the socket it listens on."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    log, *others = descriptors
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    for descriptor, number in zip(others, wanted["pass_fds"], strict=True):
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.set_inheritable(number, True)
    # What `ps -o comm` and `top` show.
    Path("/proc/self/comm").write_text(wanted["name"])


def main() -> None:
    """Load and serve; in a forked program, run it."""
    door = socket.socket(fileno=int(sys.argv[1]))
    load()
    wanted = serve(door)
    module, *arguments = wanted["arguments"]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
