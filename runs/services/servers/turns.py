"""Limits web requests that talk to servers: few at a time, so that silent machines never hold
every thread of the pages, and only one inspection of a server at a time.

Workers have threads of their own for this and are not limited.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.utils.translation import gettext as _

from runs.models import Server
from runs.services.errors import ServiceError

# Per process of the web service, which has four threads or more.
AT_ONCE = 2
# The first half of the advisory lock's key; the second is the server's.
LOCK = 0x6C6F6F6B

_turns = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def turn(server: Server | None = None) -> Iterator[None]:
    """Talk to servers within a request; with `server`, nobody else inspects it at the same time.

    Never waits. Raises ServiceError `busy_with_servers` or `server_looked_at`.
    """
    if not _turns.acquire(blocking=False):
        raise ServiceError(
            "busy_with_servers",
            _("BenchLab is waiting for other servers to answer."),
            remedy=_("Try again in a moment."),
        )
    try:
        with _look_at(server.pk if server is not None else None):
            yield
    finally:
        _turns.release()


@contextmanager
def _look_at(server_id: int | None) -> Iterator[None]:
    if server_id is None:
        yield
        return
    key = [LOCK, server_id % 2**31]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        if not cursor.fetchone()[0]:
            raise ServiceError(
                "server_looked_at",
                _("BenchLab is looking at this server already."),
                remedy=_("Try again in a moment."),
            )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)
