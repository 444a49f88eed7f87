"""A connection that does not wait for ever for a PostgreSQL that hangs.

PostgreSQL ends a statement that takes too long by itself. One that is frozen ends nothing, and its
machine goes on to acknowledge what it is sent, so TCP does not notice either.
"""

from typing import Any

import psycopg
from psycopg import errors


class PatientConnection(psycopg.Connection[Any]):
    """Closes itself where nothing comes back within `patience`, in seconds; None: waits."""

    patience: float | None = None

    def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None
    ) -> Any:
        """As psycopg's. Raises OperationalError after `patience`."""
        if timeout is not None or self.patience is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience)
        except errors._WaitTimeout as error:
            self.pgconn.finish()
            message = f"PostgreSQL has not answered in {self.patience:g} s"
            raise psycopg.OperationalError(message) from error
