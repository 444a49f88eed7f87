"""Connections: what each request would ask PostgreSQL is asked only when it may have changed."""

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg import IsolationLevel
from psycopg_pool import ConnectionPool, PoolTimeout

from benchlab.database.patience import PatientConnection
from benchlab.database.turns import turns

# A connection that has something to say is asked whether it works.
CHECK_SECONDS = 2.0
CHANGED = select.POLLIN | select.POLLHUP | select.POLLERR


class DatabaseWrapper(base.DatabaseWrapper):
    """Looks at a pooled connection's socket, where Django sends a statement for each request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._before_transaction: Callable[[], None] | None = None

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

    def prepared_cursor(self) -> CursorWrapper:
        """A cursor like `cursor()` whose statements PostgreSQL plans once for a connection.

        Values stay on the server's side, as `server_side_binding` of all cursors would have them:
        https://docs.djangoproject.com/en/5.2/ref/databases/#server-side-parameters-binding
        Statements are prepared as `prepare_threshold` among the OPTIONS says.
        """
        self.ensure_connection()
        with self.wrap_database_errors:
            cursor: Any = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]  # no stub
            wrapped: CursorWrapper = self._prepare_cursor(cursor)  # type: ignore[attr-defined]  # no stub
            return wrapped

    @contextmanager
    def prepare_transactions(self, prepare: Callable[[], None]) -> Iterator[None]:
        """Call `prepare` before each transaction begins: what it sets is not rolled back."""
        before, self._before_transaction = self._before_transaction, prepare
        try:
            yield
        finally:
            self._before_transaction = before

    def _set_autocommit(self, autocommit: bool) -> None:
        # psycopg locks, and asks libpq for the state, also where nothing changes.
        if self.connection.autocommit == autocommit:
            return
        if not autocommit and self._before_transaction is not None:
            self._before_transaction()
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
