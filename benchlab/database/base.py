"""Connections: what each request would ask PostgreSQL is asked only when it may have changed."""

import select
from contextlib import suppress
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg import IsolationLevel
from psycopg_pool import ConnectionPool, PoolTimeout

from benchlab.database.patience import PatientConnection
from benchlab.database.turns import turns

# A connection that has something to say is asked whether it works.
CHECK_SECONDS = 2.0
CHANGED = select.POLLIN | select.POLLHUP | select.POLLERR


class DatabaseWrapper(base.DatabaseWrapper):
    """Looks at a pooled connection's socket, where Django sends a statement for each request."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection that works: one that was closed meanwhile goes, and the pool makes another.

        A server that ends, or ends a connection, says so; of one that is silent TCP finds out.
        Raises PoolTimeout.
        """
        if self.pool is None:
            self.isolation_level = IsolationLevel.READ_COMMITTED
            return PatientConnection.connect(**conn_params)
        while True:
            try:
                connection = super().get_new_connection(conn_params)
            except PoolTimeout:
                turns.refused()
                raise
            if _works(connection):
                turns.taken()
                return connection
            connection.close()
            self.pool.putconn(connection)

    def _set_autocommit(self, autocommit: bool) -> None:
        # psycopg locks, and asks libpq for the state, also where nothing changes.
        if self.connection.autocommit != autocommit:
            super()._set_autocommit(autocommit)  # type: ignore[misc]  # no stub


def _works(connection: PatientConnection) -> bool:
    """Whether PostgreSQL has said nothing since the last statement, or answers one."""
    with suppress(psycopg.Error):
        poll = select.poll()
        poll.register(connection.fileno(), CHANGED)
        if poll.poll(0):
            connection.patience = CHECK_SECONDS
            ConnectionPool.check_connection(connection)
            # A worker's statements may take longer; a request sets its own limit.
            connection.patience = None
        return True
    return False
