"""The Celery application. Celery only wakes workers: the queue itself lives in PostgreSQL."""

import os
from typing import Any

from celery import Celery
from kombu import Connection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")

# Whoever sends gives up on a Redis that accepts and does not answer, and does not try again by
# itself. Whoever consumes waits in BRPOP for as long as there is no message, and has no such limit.
PATIENCE_OF_SENDERS = {"socket_timeout": 2, "max_retries": 0}


class Application(Celery):
    """Celery, with an end to the waiting of web requests, and workers for a silent Redis."""

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        """The connection of everything that sends. It raises within 2 s, or sends."""
        patience = PATIENCE_OF_SENDERS | (options.pop("transport_options", None) or {})
        return super().connection_for_write(url, transport_options=patience, **options)


app = Application("benchlab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
