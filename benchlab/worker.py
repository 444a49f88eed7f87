"""How gunicorn runs BenchLab: its settings, its worker, and what is made before the first request.

    gunicorn benchlab.wsgi:application --config python:benchlab.worker

One process answers by 24 threads. gunicorn's parent then loads nothing of BenchLab, and its process
makes what the first page needs before it takes a request. `WEB_CONCURRENCY` asks for more
processes: the parent loads and makes it all once, and they share that memory.
"""

import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

# Django is imported below, where it is used: the parent of one process has no use for it.

workers = int(os.environ.get("WEB_CONCURRENCY") or 1)
preload_app = workers > 1
worker_class = "benchlab.worker.Worker"
threads = 24
# For a process that loads BenchLab on a busy machine, and says nothing meanwhile.
timeout = 90
logger_class = "benchlab.worker.LinesAsOthers"
# It has one place for each home folder, where two instances would meet.
control_socket_disable = True

# Silence in the middle of a request, and the time that its first bytes have.
SILENCE_SECONDS = 5.0
# Received data extends the time for more: no connection of today is slower than that.
BYTES_PER_SECOND = 20_000

# A database that is away or slow delays the start, or the next process, by no more. Only the search
# for its address cannot be interrupted.
WARMING_SECONDS = 3
# For the workers that are forked one after the other.
PARENT_KEEPS_SECONDS = 5.0


class ImpatientSocket:
    """A socket that is at its end when the other side is silent, or too slow."""

    def __init__(self, wrapped: socket.socket) -> None:
        self._wrapped = wrapped
        self._deadline = time.monotonic() + SILENCE_SECONDS

    def recv(self, size: int) -> bytes:
        """As socket.recv; nothing more comes after the time."""
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._wrapped.settimeout(min(left, SILENCE_SECONDS))
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
    """For `gunicorn --worker-class benchlab.worker.Worker`."""

    def load_wsgi(self) -> None:
        """Called in the new process: load the application, unless the parent has.

        A wrong setting ends the service with its line, where gunicorn would begin one process after
        the other.
        """
        try:
            super().load_wsgi()
        except SystemExit as wrong:
            print(wrong.code, file=sys.stderr, flush=True)
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from None

    def handle(self, conn: Any) -> Any:
        """Handle a request on a connection; runs in a thread."""
        conn.__class__ = Connection  # the worker makes its connections where nobody can choose
        return super().handle(conn)


# In the parent, and in what is forked from it.
_is_warm = False
_warmed_at = -PARENT_KEEPS_SECONDS


def on_starting(server: Any) -> None:
    """Called by gunicorn in the parent, before anybody can connect."""
    if server.cfg.preload_app:
        _warm_within_seconds()


def pre_fork(server: Any, _worker: Any) -> None:
    """Called by gunicorn in the parent before each fork, also of one that follows another."""
    if server.cfg.preload_app and time.monotonic() - _warmed_at > PARENT_KEEPS_SECONDS:
        _warm_within_seconds()


def post_worker_init(worker: Any) -> None:
    """Called by gunicorn in the new process, before it takes requests."""
    if not worker.cfg.preload_app:
        _warm_within_seconds()
    if not _is_warm:
        threading.Thread(target=_warm_alone, name="benchlab-warm", daemon=True).start()


def _warm_within_seconds() -> None:
    """Make or renew what the first page keeps, and leave no connection and no thread behind."""
    global _is_warm, _warmed_at  # noqa: PLW0603 - of the process, for those that it forks
    _is_warm = False
    with contextlib.suppress(_TooLate), _without_pool(), _at_most(WARMING_SECONDS):
        _is_warm = _warm()
    _warmed_at = time.monotonic()
    gc.collect()
    gc.freeze()  # collections write to nothing of it, and pass over it


class _TooLate(BaseException):
    """Nothing that answers errors may answer this one."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _TooLate in the block, wherever it waits. For the main thread."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, end)
    # Again, in case that it was raised where it cannot be passed on, as in a destructor.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _without_pool() -> Iterator[None]:
    """A connection of this thread alone: a pool has threads, which no fork would take along."""
    from django.db import DEFAULT_DB_ALIAS, connections  # noqa: PLC0415 - see above

    pooled = connections[DEFAULT_DB_ALIAS]
    options = {**pooled.settings_dict["OPTIONS"], "connect_timeout": WARMING_SECONDS}
    options.pop("pool", None)
    single = type(pooled)({**pooled.settings_dict, "OPTIONS": options}, DEFAULT_DB_ALIAS)
    connections[DEFAULT_DB_ALIAS] = single
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = pooled
        single.close()


def _warm_alone() -> None:
    from django.db import connections  # noqa: PLC0415 - see above

    try:
        _warm()
    finally:
        connections.close_all()


def _warm() -> bool:
    """Whether the first page is made. It is not where the database is away."""
    from runs.web import home  # noqa: PLC0415 - Django is set up by the application

    try:
        home.warm()
    except Exception:
        # Each request tells of a database that is away; the first page is then made by the first.
        logging.getLogger(__name__).info("The first page is not prepared.", exc_info=True)
        return False
    return True


class LinesAsOthers(Logger):  # type: ignore[misc]
    """gunicorn's own lines in the form of all others; for `gunicorn --logger-class`."""

    def setup(self, cfg: Any) -> None:
        """Called once, in the process that starts the workers."""
        super().setup(cfg)
        if os.environ.get("BENCHLAB_LOG_FORMAT") == "json":
            from benchlab.logs import JSONFormatter  # noqa: PLC0415 - see above

            for handler in self.error_log.handlers:
                handler.setFormatter(JSONFormatter())
