"""The results database: connections shared by threads, and statements in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Func, QuerySet, TextField, Value
from psycopg import errors

# How long a transaction that has locked leases may ask nothing.
IDLE_SECONDS = 30.0
# What changes a table waits no longer for its lock. Below PostgreSQL's deadlock_timeout (1 s): the
# change gives way, and no request or vacuum.
LOCK_SECONDS = 0.5


def is_wait(error: BaseException) -> bool:
    """Whether a statement was ended because it waited for a lock."""
    return isinstance(error.__cause__, errors.LockNotAvailable | errors.DeadlockDetected)


def give_back() -> None:
    """Let other threads use this one's connection: it will wait for something else now.

    Does nothing in a transaction, nor where each thread has a connection of its own.
    """
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()


def has_any(*rows: QuerySet[Any]) -> bool:
    """Whether any of these has a row. One query, which ends at the first."""
    first_rows, *further_rows = (queryset.order_by().values_list(Value(1))[:1] for queryset in rows)
    return bool(first_rows.union(*further_rows, all=True)[:1])


def ends_if_idle(seconds: float = IDLE_SECONDS) -> Func:
    """For a query that locks leases: PostgreSQL ends its transaction after so long without another.

    Else a worker that was frozen in it would keep its servers from all others.
    """
    name = Value("idle_in_transaction_session_timeout")
    limit, is_local = Value(f"{seconds:.0f}s"), Value(True)
    return Func(name, limit, is_local, function="set_config", output_field=TextField())


Rows = list[tuple[Any, ...]]


class Statement(NamedTuple):
    """SQL, and the values for its placeholders, each `%s`."""

    sql: str
    parameters: tuple[Any, ...] = ()


def perform(statements: Iterable[Statement]) -> list[Rows]:
    """Execute statements in order, and return the rows of each. Call it in a transaction.

    Each sees what was committed before it started itself, so one can wait for a lock, and the next
    one can read what the lock protects.
    """
    row_sets: list[Rows] = []
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.sql, statement.parameters)
            row_sets.append(cursor.fetchall() if cursor.description else [])
    return row_sets


def copy(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Store rows by COPY. Call it in a transaction; raises Django's errors."""
    names = ", ".join(map(connection.ops.quote_name, columns))
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copied,
    ):
        for row in rows:
            copied.write_row(row)


def array(values: Iterable[float | None]) -> str:
    """An array of numbers as COPY reads it."""
    return "{" + ",".join("NULL" if number is None else repr(number) for number in values) + "}"


def ask(questions: Mapping[str, Statement]) -> dict[str, Rows]:
    """The rows of each query under its name."""
    return dict(zip(questions, perform(questions.values()), strict=True))
