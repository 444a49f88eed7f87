"""How gunicorn runs BenchLab: its settings, how patiently a request is read, and how it ends.

    gunicorn benchlab.wsgi:application --config python:benchlab.gunicorn

gunicorn reads WEB_CONCURRENCY, the number of processes, itself; one answers by 48 threads.
"""

import contextlib
import gc
import os
import socket
import threading
import time
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

from benchlab.request_time import Requests, described

# Loaded once, before the first request; the processes share what nobody writes to.
preload_app = True
worker_class = "benchlab.gunicorn.Worker"
# More than readers who wait for a database that hangs: probes are answered meanwhile.
threads = 48
# For a busy machine.
timeout = 90
logger_class = "benchlab.gunicorn.LinesAsOthers"
# It has one place for each home folder, where two instances would meet.
control_socket_disable = True

# An upload of a thousand runs makes a million objects: with Python's own 700 a processor needed 116
# ms to read them, without any collection 81.
OBJECTS_BEFORE_COLLECTION = 20_000


def when_ready(_server: Any) -> None:
    """Called once the application is loaded, before the processes that answer are forked.

    What is loaded stays: no collection looks at it again, and the processes go on sharing it.
    https://docs.python.org/3/library/gc.html#gc.freeze
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)


# Silence in the middle of a request, and the time that its first bytes have.
SILENCE_SECONDS = 5.0
# How long the other requests of a process have to end when one of them has to be ended with it.
GRACE_SECONDS = 5.0
# Received data extends the time for more: no connection of today is slower than that.
BYTES_PER_SECOND = 20_000


class ImpatientSocket:
    """A socket that is at its end when the other side is silent, or too slow."""

    def __init__(self, wrapped: socket.socket) -> None:
        self._wrapped = wrapped
        self._deadline = time.monotonic() + SILENCE_SECONDS

    def recv(self, size: int) -> bytes:
        """As socket.recv; nothing more comes after the time."""
        seconds_left = self._deadline - time.monotonic()
        try:
            if seconds_left <= 0:
                raise TimeoutError
            self._wrapped.settimeout(min(seconds_left, SILENCE_SECONDS))
            received = self._wrapped.recv(size)
        except TimeoutError:
            # For the parser as well as for the next request on the connection, which there is not.
            with contextlib.suppress(OSError):
                self._wrapped.shutdown(socket.SHUT_RD)
            return b""
        finally:
            self._wrapped.setblocking(True)
        self._deadline += len(received) / BYTES_PER_SECOND
        return received


class Connection(TConn):  # type: ignore[misc]
    """A connection whose requests are read impatiently, each from its own beginning."""

    def init(self) -> None:
        """Called at the beginning of each request."""
        super().init()
        if not self.is_http2:
            self.parser.unreader.sock = ImpatientSocket(self.sock)


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's own, with connections that are read impatiently, and requests that end."""

    alive: bool
    wsgi: Any

    def load_wsgi(self) -> None:
        """Called once in each process."""
        super().load_wsgi()
        self.requests = Requests(self.wsgi)
        self.wsgi = self.requests

    def notify(self) -> None:
        """Called every second by the main thread, which says that the process lives.

        Where a request takes longer than any may, it ends the process: others have some seconds.
        """
        super().notify()
        requests = getattr(self, "requests", None)
        if not self.alive or requests is None:
            return
        work = requests.overdue()
        if work is not None:
            self.alive = False
            # Threads that are still at work then would keep the process from its own end.
            ending = threading.Timer(GRACE_SECONDS, os._exit, (1,))
            ending.daemon = True
            ending.start()
            self.log.error("A request is ended with its process: %s", described(work))

    def handle(self, conn: Any) -> Any:
        """Handle a request on a connection; runs in a thread."""
        conn.__class__ = (
            Connection  # the worker makes its connections where nobody can choose
        )
        return super().handle(conn)


class LinesAsOthers(Logger):  # type: ignore[misc]
    """gunicorn's own lines in the form of all others."""

    def setup(self, cfg: Any) -> None:
        """Called once, in the process that starts the workers."""
        super().setup(cfg)
        if os.environ.get("BENCHLAB_LOG_FORMAT") == "json":
            from benchlab.logs import JSONFormatter  # noqa: PLC0415 - Django is set up by now

            for handler in self.error_log.handlers:
                handler.setFormatter(JSONFormatter())
