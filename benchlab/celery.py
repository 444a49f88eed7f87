"""The Celery application. Celery only wakes workers: the queue itself lives in PostgreSQL."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as transport
from redis import Redis, WatchError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")
# Celery runs Django's checks and drops what they say. They load all pages: 25 MB and half a second
# of each worker. `manage.py doctor --before-start` has looked before.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

# Whoever sends gives up on a Redis that accepts and does not answer, and does not try again by
# itself. Whoever consumes waits in BRPOP for as long as there is no message, and has no such limit.
PATIENCE_OF_SENDERS = {"socket_timeout": 2, "max_retries": 0}


@contextmanager
def mutex(client: Redis, name: str, expire: int) -> Iterator[None]:
    """The lock of Celery's transport without Lua, which the embedded Redis does not have.

    Raises MutexHeld if somebody else has it. It ends by itself after `expire` seconds.
    """
    holder = uuid.uuid4().hex.encode()
    if not client.set(name, holder, nx=True, ex=expire):
        raise transport.MutexHeld
    try:
        yield
    finally:
        _release(client, name, holder)


def _release(client: Redis, name: str, holder: bytes) -> None:
    """Remove the lock, unless it has expired, or somebody else has it since."""
    with client.pipeline() as pipe:
        try:
            pipe.watch(name)  # type: ignore[no-untyped-call]
            if pipe.get(name) == holder:
                pipe.multi()
                pipe.delete(name)
                pipe.execute()
        except WatchError:
            return


transport.Mutex = mutex


class Transport(transport.Transport):
    """Celery's, without a timer that looks each second after bindings that expire: none does."""

    # Until a worker asks again for a message; Redis answers at once when there is one. A worker
    # that is asked to stop waits for this answer: see `TimeoutStopSec`.
    brpop_timeout = 10

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Called by a worker, each time that it has connected."""
        super().register_with_event_loop(connection, loop)
        self.cycle._binding_expiry_tref.cancel()  # type: ignore[union-attr]  # not in the stubs


TRANSPORT_ALIASES.update(
    dict.fromkeys(("redis", "rediss"), "benchlab.celery:Transport")
)


class Application(Celery):
    """Celery, with an end to the waiting of web requests, and workers for a silent Redis."""

    def connection_for_write(
        self, url: str | None = None, **options: Any
    ) -> Connection:
        """The connection of everything that sends. It raises within 2 s, or sends."""
        patience = PATIENCE_OF_SENDERS | (options.pop("transport_options", None) or {})
        return super().connection_for_write(url, transport_options=patience, **options)


app = Application("benchlab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
