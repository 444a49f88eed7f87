"""Waking workers. Services name tasks here by their name only, and never import them.

A message carries keys, never what to do with them: the queue itself is in PostgreSQL, so a lost
message costs some seconds until the supervisor notices, and a doubled one changes nothing.
"""

from functools import partial

from django.db import transaction
from kombu.exceptions import OperationalError

from benchlab.celery import app

# A message that nobody took is worthless soon: the supervisor sends others.
EXPIRES_SECONDS = 60

EXECUTE_NEXT = "runs.execute_next"


def wake(server_id: int) -> None:
    """Once this transaction is committed, let a worker look at a server's queue."""
    transaction.on_commit(partial(_send, EXECUTE_NEXT, server_id))


def _send(task: str, *arguments: int) -> None:
    try:
        app.send_task(task, args=arguments, retry=False, expires=EXPIRES_SECONDS)
    except OperationalError:
        # Redis is away. The queue is safe in PostgreSQL; the supervisor wakes workers later.
        return
