"""Connections to the results database, of which a process has a few for many threads."""

from django.db import connection
from django.db.models import Func, TextField, Value

# How long a transaction that has locked leases may ask nothing.
IDLE_SECONDS = 30.0


def give_back() -> None:
    """Let other threads use this one's connection: it will wait for something else now.

    Does nothing in a transaction, nor where each thread has a connection of its own.
    """
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()


def ends_if_idle(seconds: float = IDLE_SECONDS) -> Func:
    """For a query that locks leases: PostgreSQL ends its transaction after so long without another.

    Else a worker that was frozen in it would keep its servers from all others.
    """
    name = Value("idle_in_transaction_session_timeout")
    limit, is_local = Value(f"{seconds:.0f}s"), Value(True)
    return Func(name, limit, is_local, function="set_config", output_field=TextField())
