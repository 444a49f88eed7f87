"""The results database: connections shared by threads, and several statements in one message."""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, TextField, Value
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.waiting import Ready, Wait

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


def ends_if_idle(seconds: float = IDLE_SECONDS) -> Func:
    """For a query that locks leases: PostgreSQL ends its transaction after so long without another.

    Else a worker that was frozen in it would keep its servers from all others.
    """
    name = Value("idle_in_transaction_session_timeout")
    limit, is_local = Value(f"{seconds:.0f}s"), Value(True)
    return Func(name, limit, is_local, function="set_config", output_field=TextField())


Rows = list[tuple[Any, ...]]
# The most statements that a connection keeps prepared; beyond them the text is sent each time.
MOST_PREPARED = 100
# A kept plan may have been made when tables had no rows, and then reads all of them for each key:
# seconds for a thousand runs. For more keys than these, making a plan anew costs little.
FEW = 50
DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class Statement(NamedTuple):
    """SQL, and the values for its placeholders, each `%s`.

    A value has no type of its own, as text has none: where PostgreSQL cannot infer it, name it
    (`%s::bigint`). The text is constant, or connections would prepare it again and again.
    """

    sql: str
    parameters: tuple[Any, ...] = ()


BEGIN, COMMIT = Statement("BEGIN"), Statement("COMMIT")
FORGET_PLANS = Statement("DISCARD PLANS")
# How many messages a connection sends until it makes its plans anew for the first time.
FIRST_PLANS = 8


def perform(
    statements: Iterable[Statement], *, keeps_plans: bool = True, commits: bool = False
) -> list[Rows]:
    """Execute statements in order, and return the rows of each. Call it in a transaction.

    `keeps_plans`: prepare them, and use the plans of those that are prepared; see FEW.
    `commits`: nothing else follows in the transaction. If it is the outermost one, it is committed
    in the same message, and Django finds nothing left to commit.

    If one fails, all end. Each sees what was committed before it started itself, so one can wait
    for a lock, and the next one can read what the lock protects.
    """
    listed = list(statements)
    if not listed:
        return []
    # Not by `connection`, which looks for it at each use.
    database = connections[DEFAULT_DB_ALIAS]
    asked = ";\n".join(each.sql for each in listed)
    if settings.PGBOUNCER:
        values = [value for each in listed for value in each.parameters]
        with database.cursor() as cursor:
            cursor.execute(asked, values)
            return _all_rows(cursor)

    # As Django's cursors do it, which cannot prepare: for limits of time, and tests that count.
    def execute(*_asked: Any) -> list[Rows]:
        if database.queries_logged:
            database.queries_log.append({"sql": asked, "time": "0"})
        end = [COMMIT] if commits and len(database.atomic_blocks) == 1 else []
        return _pipelined(database, [*listed, *end], keeps_plans=keeps_plans)[: len(listed)]

    proceed: Callable[..., Any] = execute
    for wrapper in reversed(database.execute_wrappers):
        proceed = partial(wrapper, proceed)
    database.ensure_connection()
    found: list[Rows] = proceed(asked, None, False, {"connection": database, "cursor": None})
    return found


def _pipelined(
    database: BaseDatabaseWrapper, listed: Sequence[Statement], *, keeps_plans: bool
) -> list[Rows]:
    """Send all in one packet, and then read all results.

    By libpq itself: psycopg's pipeline sends a packet for each statement, and waits after BEGIN,
    which costs the application and PostgreSQL more than most statements do.
    """
    database.validate_no_broken_transaction()
    raw: Any = database.connection
    if not hasattr(raw, "benchlab_prepared"):
        raw.benchlab_prepared, raw.benchlab_reader = {}, Transformer(raw)
        raw.benchlab_messages = 0
    first = [BEGIN] if _begins(raw) else []
    if keeps_plans and _plans_are_old(raw):
        first.append(FORGET_PLANS)
    asked = [*first, *listed]
    values = [[_literal(value) for value in each.parameters] for each in asked]
    with database.wrap_database_errors:
        try:
            results = raw.wait(_exchanged(raw, asked, values, keeps_plans=keeps_plans))
        except BaseException:
            raw.close()  # nobody knows what of it has arrived
            raise
        for result in results:
            if result.status not in DONE:
                raise errors.error_from_result(result)
        return [_loaded(raw.benchlab_reader, result) for result in results[len(first) :]]


def _begins(raw: Any) -> bool:
    """Whether to begin the transaction, which Django leaves to its first statement."""
    return not raw.autocommit and raw.pgconn.transaction_status == pq.TransactionStatus.IDLE


def _plans_are_old(raw: Any) -> bool:
    """Whether this message has twice the number of the one that last made plans anew.

    For tables of a page or two PostgreSQL plans to read all of them, or takes any index, and it
    would keep the plan until they are analysed, a minute later, while each upload makes them
    larger. Plans of foreign keys and triggers are kept and forgotten with those of statements.
    """
    raw.benchlab_messages += 1
    number: int = raw.benchlab_messages
    return number >= FIRST_PLANS and number.bit_count() == 1


def _exchanged(
    raw: Any,
    listed: Sequence[Statement],
    values: Sequence[Sequence[bytes | None]],
    *,
    keeps_plans: bool,
) -> Generator[Wait, Ready, list[pq.abc.PGresult]]:
    """The result of each statement; of those behind one that failed, that they were not executed.

    Raises OperationalError where the connection is lost.
    """
    link: pq.abc.PGconn = raw.pgconn
    known: dict[str, bytes] = raw.benchlab_prepared
    new: list[str] = []  # for each result: what it prepares
    link.enter_pipeline_mode()
    for each, given in zip(listed, values, strict=True):
        name = known.get(each.sql) if keeps_plans else None
        if name is None and keeps_plans and len(known) < MOST_PREPARED:
            name = known[each.sql] = b"benchlab_%d" % len(known)
            link.send_prepare(name, _numbered(each.sql))
            new.append(each.sql)
        if name is None:
            link.send_query_params(_numbered(each.sql), given)
        else:
            link.send_query_prepared(name, given)
        new.append("")
    link.pipeline_sync()
    found = yield from _received(link)
    link.exit_pipeline_mode()
    for sql, result in zip(new, found, strict=True):
        # What comes after an error is not prepared.
        if sql and result.status not in DONE:
            del known[sql]
    return [
        each for sql, each in zip(new, found, strict=True) if not sql or each.status not in DONE
    ]


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


def _loaded(reader: Any, result: pq.abc.PGresult) -> Rows:
    if not result.nfields:
        return []
    reader.set_pgresult(result)
    rows: Rows = reader.load_rows(0, result.ntuples, tuple)
    return rows


def _all_rows(cursor: Any) -> list[Rows]:
    found = [_rows(cursor)]
    while cursor.nextset():
        found.append(_rows(cursor))
    return found


def _rows(cursor: Any) -> Rows:
    # Not its description, for which psycopg makes an object of each column.
    found = cursor.pgresult
    return cursor.fetchall() if found is not None and found.nfields else []


def ask(questions: Mapping[str, Statement], *, keeps_plans: bool = True) -> dict[str, Rows]:
    """Run queries in one message; the rows of each under its name."""
    found = perform(questions.values(), keeps_plans=keeps_plans)
    return dict(zip(questions, found, strict=True))
