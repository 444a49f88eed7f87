"""Several statements in one message: the round trip costs more than most statements."""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.waiting import Ready, Wait

Rows = list[tuple[Any, ...]]
# The most statements that a connection keeps prepared; beyond them the text is sent each time.
MOST_PREPARED = 100
DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class Statement(NamedTuple):
    """SQL, and the values for its placeholders, each `%s`.

    A value has no type of its own, as text has none: where PostgreSQL cannot infer it, name it
    (`%s::bigint`). The text is constant, or connections would prepare it again and again.
    """

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


def _pipelined(listed: Sequence[Statement]) -> list[Rows]:
    """Send all in one packet, and then read all results.

    By libpq itself: psycopg's pipeline sends a packet for each statement, and waits after BEGIN,
    which costs the application and PostgreSQL more than most statements do.
    """
    connection.validate_no_broken_transaction()
    raw: Any = connection.connection
    if not hasattr(raw, "benchlab_prepared"):
        raw.benchlab_prepared, raw.benchlab_reader = {}, Transformer(raw)
    values = [[_literal(value) for value in each.parameters] for each in listed]
    with connection.wrap_database_errors:
        try:
            results = raw.wait(_exchanged(raw, listed, values))
        except BaseException:
            raw.close()  # nobody knows what of it has arrived
            raise
        for result in results:
            if result.status not in DONE:
                raise errors.error_from_result(result)
        return [_loaded(raw.benchlab_reader, result) for result in results]


def _exchanged(
    raw: Any, listed: Sequence[Statement], values: Sequence[Sequence[bytes | None]]
) -> Generator[Wait, Ready, list[pq.abc.PGresult]]:
    """The result of each statement, or what came before the first error and the error."""
    link: pq.abc.PGconn = raw.pgconn
    new: dict[int, str] = {}
    link.enter_pipeline_mode()
    sent = _begin(raw)
    for each, given in zip(listed, values, strict=True):
        name = raw.benchlab_prepared.get(each.sql)
        if name is None and len(raw.benchlab_prepared) < MOST_PREPARED:
            name = b"benchlab_%d" % len(raw.benchlab_prepared)
            raw.benchlab_prepared[each.sql] = name
            link.send_prepare(name, _numbered(each.sql))
            new[sent] = each.sql
            sent += 1
        if name is None:
            link.send_query_params(_numbered(each.sql), given)
        else:
            link.send_query_prepared(name, given)
        sent += 1
    link.pipeline_sync()
    found = yield from _received(link)
    link.exit_pipeline_mode()
    for place, sql in new.items():
        # What comes after an error is not prepared.
        if found[place].status not in DONE:
            del raw.benchlab_prepared[sql]
    failed = [each for each in found if each.status not in DONE]
    asked = [each for place, each in enumerate(found) if place not in new]
    return failed[:1] or asked[len(asked) - len(listed) :]


def _begin(raw: Any) -> int:
    """Begin the transaction that Django leaves to the first statement; how many were sent."""
    if raw.autocommit or raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return 0
    raw.pgconn.send_query_params(b"BEGIN", None)
    return 1


def _received(link: pq.abc.PGconn) -> Generator[Wait, Ready, list[pq.abc.PGresult]]:
    """All results up to the end of the pipeline; meanwhile, what did not fit is sent."""
    while link.flush():
        if (yield Wait.RW) & Ready.R:
            link.consume_input()
    found: list[pq.abc.PGresult] = []
    while True:
        while link.is_busy():
            if (yield Wait.R):
                link.consume_input()
        result = link.get_result()
        if result is None:
            if link.status == pq.ConnStatus.BAD:
                raise errors.OperationalError(link.get_error_message())
        elif result.status == pq.ExecStatus.PIPELINE_SYNC:
            return found
        else:
            found.append(result)


@cache
def _numbered(sql: str) -> bytes:
    """The text with placeholders as PostgreSQL has them: $1, $2."""
    numbers = iter(range(1, 1 + sql.count("%s")))
    put = re.sub("%[s%]", lambda each: f"${next(numbers)}" if each[0] == "%s" else "%", sql)
    return put.encode()


def _literal(value: Any) -> bytes | None:
    """A value as PostgreSQL reads it; a list as an array of numbers, texts or times.

    psycopg looks at each value for its type, which costs more than the rest of a short statement,
    and chooses smallint or bigint by size: then the same statement is prepared several times.
    """
    if type(value) is not list:
        return None if value is None else _text(value).encode()
    texts = []
    for each in value:
        kind = type(each)
        if kind is str:
            escaped = each.replace("\\", "\\\\").replace('"', '\\"')
            texts.append(f'"{escaped}"')
        elif each is None:
            texts.append("NULL")
        else:
            texts.append(repr(each) if kind is int or kind is float else f'"{_text(each)}"')
    return f"{{{','.join(texts)}}}".encode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no literal")


def _loaded(reader: Transformer, result: pq.abc.PGresult) -> Rows:
    if not result.nfields:
        return []
    reader.set_pgresult(result)
    return reader.load_rows(0, result.ntuples, tuple)


def _all_rows(cursor: Any) -> list[Rows]:
    found = [_rows(cursor)]
    while cursor.nextset():
        found.append(_rows(cursor))
    return found


def _rows(cursor: Any) -> Rows:
    # Not its description, for which psycopg makes an object of each column.
    found = cursor.pgresult
    return cursor.fetchall() if found is not None and found.nfields else []


def ask(questions: Mapping[str, Statement]) -> dict[str, Rows]:
    """Run queries in one message; the rows of each under its name."""
    return dict(zip(questions, perform(questions.values()), strict=True))
