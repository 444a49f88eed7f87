"""gunicorn's worker with threads, which does not wait forever for a client's data."""

import contextlib
import logging
import os
import socket
import threading
import time
from typing import Any

from django.db import connections
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

from benchlab.logs import JSONFormatter

# Silence in the middle of a request, and the time that its first bytes have.
SILENCE_SECONDS = 5.0
# Received data extends the time for more: no connection of today is slower than that.
BYTES_PER_SECOND = 20_000


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

    def init_process(self) -> None:
        """Called in the new process: it answers, and meanwhile makes what the first page needs."""
        threading.Thread(target=_warm, name="benchlab-warm", daemon=True).start()
        super().init_process()

    def handle(self, conn: Any) -> Any:
        """Handle a request on a connection; runs in a thread."""
        conn.__class__ = Connection  # the worker makes its connections where nobody can choose
        return super().handle(conn)


def _warm() -> None:
    from runs.web import home  # noqa: PLC0415 - Django is set up by the application

    try:
        home.warm()
    except Exception:
        # A database that is away is told by each request; the first page is then made by the first.
        logging.getLogger(__name__).info("The first page is not prepared.", exc_info=True)
    finally:
        connections.close_all()


class LinesAsOthers(Logger):  # type: ignore[misc]
    """gunicorn's own lines in the form of all others; for `gunicorn --logger-class`."""

    def setup(self, cfg: Any) -> None:
        """Called once, in the process that starts the workers."""
        super().setup(cfg)
        if os.environ.get("BENCHLAB_LOG_FORMAT") == "json":
            for handler in self.error_log.handlers:
                handler.setFormatter(JSONFormatter())
