"""Several statements in one message: the round trip costs more than most statements."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from django.db import connection

Rows = list[tuple[Any, ...]]
# How often a connection executes the same statement until it prepares it.
PREPARED_AFTER = 3


class Statement(NamedTuple):
    """SQL, and the values for its placeholders."""

    sql: str
    parameters: tuple[Any, ...] = ()


def perform(statements: Iterable[Statement]) -> list[Rows]:
    """Execute statements in order, and return the rows of each. Call it in a transaction.

    If one fails, all end. Each sees what was committed before it started itself, so one can wait
    for a lock, and the next one can read what the lock protects.
    """
    listed = list(statements)
    if not listed:
        return []
    asked = ";\n".join(each.sql for each in listed)
    if settings.PGBOUNCER:
        values = [value for each in listed for value in each.parameters]
        with connection.cursor() as cursor:
            cursor.execute(asked, values)
            return _all_rows(cursor)

    # As Django's cursors do it, which cannot prepare: for limits of time, and tests that count.
    def execute(*_asked: Any) -> list[Rows]:
        if connection.queries_logged:
            connection.queries_log.append({"sql": asked, "time": "0"})
        return _pipelined(listed)

    proceed: Callable[..., Any] = execute
    for wrapper in reversed(connection.execute_wrappers):
        proceed = partial(wrapper, proceed)
    connection.ensure_connection()
    found: list[Rows] = proceed(asked, None, False, {"connection": connection, "cursor": None})
    return found


def _pipelined(listed: Iterable[Statement]) -> list[Rows]:
    """PostgreSQL plans a statement once for a connection, which often costs more than its work."""
    connection.validate_no_broken_transaction()
    raw: Any = connection.connection
    # Only here: else the connection counts Django's own statements, each with its values, keeps the
    # text of the last hundred, and forgets how often ours were executed.
    raw.prepare_threshold = PREPARED_AFTER
    try:
        with connection.wrap_database_errors, raw.pipeline():
            cursors = [
                psycopg.Cursor(raw).execute(
                    each.sql, [_literal(value) for value in each.parameters]
                )
                for each in listed
            ]
    except Exception:
        # What came after the one that failed was not prepared, though psycopg has noted it so.
        raw._prepared.clear()
        raise
    finally:
        raw.prepare_threshold = None
    return [_rows(cursor) for cursor in cursors]


def _literal(value: Any) -> Any:
    """A list of numbers or plain texts as PostgreSQL reads an array; anything else as it is.

    psycopg looks at each value for its type, which costs more than the rest of a short statement,
    and chooses smallint or bigint by size: then the same statement is prepared several times.
    """
    if type(value) is not list:
        return value
    texts = []
    for each in value:
        kind = type(each)
        if kind is str:
            escaped = each.replace("\\", "\\\\").replace('"', '\\"')
            texts.append(f'"{escaped}"')
        elif kind is int or kind is float:
            texts.append(repr(each))
        elif each is None:
            texts.append("NULL")
        else:
            return value
    return f"{{{','.join(texts)}}}"


def _all_rows(cursor: Any) -> list[Rows]:
    found = [_rows(cursor)]
    while cursor.nextset():
        found.append(_rows(cursor))
    return found


def ask(questions: Mapping[str, Statement]) -> dict[str, Rows]:
    """Run queries in one message; the rows of each under its name."""
    return dict(zip(questions, perform(questions.values()), strict=True))


def _rows(cursor: Any) -> Rows:
    # Not its description, for which psycopg makes an object of each column.
    found = cursor.pgresult
    return cursor.fetchall() if found is not None and found.nfields else []
