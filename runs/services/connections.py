"""Connections to the results database, of which a process has a few for many threads."""

from django.db import connection


def give_back() -> None:
    """Let other threads use this one's connection: it will wait for something else now.

    Does nothing in a transaction, nor where each thread has a connection of its own.
    """
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()
