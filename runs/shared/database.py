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
    return isinstance(
        error.__cause__, errors.LockNotAvailable | errors.DeadlockDetected
    )


def give_back() -> None:
    """Let other threads use this one's connection: it will wait for something else now.

    Does nothing in a transaction, nor where each thread has a connection of its own.
    """
    if (
        connection.settings_dict["OPTIONS"].get("pool")
        and not connection.in_atomic_block
    ):
        connection.close()


def has_any(*rows: QuerySet[Any]) -> bool:
    """Whether any of these has a row. One query, which ends at the first."""
    first_rows, *further_rows = (
        queryset.order_by().values_list(Value(1))[:1] for queryset in rows
    )
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


def perform_named(statements: Mapping[str, Statement]) -> dict[str, Rows]:
    """`perform`, with the rows of each statement under its name."""
    return dict(zip(statements, perform(statements.values()), strict=True))


def perform(statements: Iterable[Statement]) -> list[Rows]:
    """Execute statements in order, and return the rows of each. Call it in a transaction.

    Each sees what was committed before it started itself, so one can wait for a lock, and the next
    one can read what the lock protects. They are sent together, and planned once for a connection:
    https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html
    https://www.psycopg.org/psycopg3/docs/advanced/prepare.html

    Raises Django's error of the first that fails; those behind it are not executed.
    """
    wrapper: Any = connection  # benchlab.database's
    wrapper.ensure_connection()
    cursors = []
    with wrapper.wrap_database_errors, wrapper.connection.pipeline():
        for statement in statements:
            # A cursor has the rows of one statement.
            cursor = wrapper.prepared_cursor()
            cursor.execute(statement.sql, statement.parameters)
            cursors.append(cursor)
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


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
    """An array of numbers as PostgreSQL reads it, of whatever type the statement says."""
    return (
        "{"
        + ",".join("NULL" if number is None else repr(number) for number in values)
        + "}"
    )


def array_of_words(words: Iterable[str]) -> str:
    """An array of texts that are letters, digits and underscores alone, as of an enumeration."""
    return "{" + ",".join(words) + "}"


def ask(questions: Mapping[str, Statement]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each query under its name, by column: all of them in one statement.

    Values are those of JSON: numbers, text, booleans. Call it in a transaction.
    """
    columns = ", ".join(
        f"(SELECT coalesce(json_agg(row_to_json(answer)), '[]') FROM ({question.sql}) AS answer)"  # noqa: S608
        for question in questions.values()
    )
    parameters = [
        value for question in questions.values() for value in question.parameters
    ]
    (rows,) = perform([Statement(f"SELECT {columns}", tuple(parameters))])
    return dict(zip(questions, rows[0], strict=True))
