"""How long one statement of a request may take, by kind of request; a 503 says what to do then.

So does one where the database is away, full or busy. A 500 would say that BenchLab has a fault, and
that the same request will fail again.

The limit is a setting of the connection, set again only when the next request is of another kind.
Behind PgBouncer, which lends one connection to many, it is left to the role (docs/deployment.md).
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import psycopg
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.defaults import server_error
from psycopg import errors
from psycopg_pool import PoolTimeout

from benchlab.bucket import ContentChanged, StoreError
from runs.operations.selectors import health_checks

# Pages and reads of the API answer at once; writes may wait for each other, exports read it all.
PAGE = 10
READ = 15
WRITE = 60
EXPORT = 600
RETRY_SECONDS = 5
# What PostgreSQL has not ended by itself so long after the limit: it hangs.
GRACE_SECONDS = 2

# Others hold what the request needs; the same request may succeed in a moment.
_BUSY = (
    errors.TooManyConnections,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.SerializationFailure,
)


def seconds(request: HttpRequest) -> int:
    """The limit of a request's statements."""
    if request.GET.get("format") == "csv" or "/export/" in request.path:
        return EXPORT
    if request.method not in {"GET", "HEAD", "OPTIONS"}:
        return WRITE
    return READ if request.path.startswith("/api/") else PAGE


def problem(error: BaseException) -> str:
    """What keeps the database from answering, as a code; nothing where the error is another one.

    `too_slow`: the statement was ended. `too_busy`: others hold what it needs. `disk_full`.
    `database_away`: it does not answer, starts or ends. `files_away`: the bucket does not answer.
    `file_changed`: what the store of files gives back is not what was stored.
    """
    if isinstance(error, ContentChanged):
        return "file_changed"
    if isinstance(error, StoreError):
        return "files_away"
    if not isinstance(error, OperationalError | InterfaceError):
        return ""
    match error.__cause__:
        case errors.QueryCanceled():
            return "too_slow"
        case PoolTimeout():
            return "too_busy" if _answers() else "database_away"
        case errors.DiskFull():
            return "disk_full"
        case errors.DatabaseError() as cause if isinstance(cause, _BUSY):
            return "too_busy"
    return "database_away"


def _answers() -> bool:
    """Whether the database takes a connection, or would if it had not too many."""
    try:
        health_checks.connected().close()
    except psycopg.OperationalError as error:
        return isinstance(error, errors.TooManyConnections) or "too many" in str(error)
    return True


def server_error_page(request: HttpRequest) -> HttpResponse:
    """What Django calls for an exception that nothing has answered: also those of middleware."""
    error = sys.exception()
    code = problem(error) if error else ""
    return _page(code) if code else server_error(request)


def _page(code: str) -> HttpResponse:
    # Without the request: who is logged in is asked of the database.
    response = HttpResponse(render_to_string("503.html", {"code": code}), status=503)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


class LimitStatements:
    """Middleware: sets the limit with a request's first statement, and answers what exceeds it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response of the view, or of `process_exception`."""
        limit = seconds(request)
        # A transaction that was open before the request ends after it: one setting holds in it.
        outer = {
            connection.alias
            for connection in connections.all()
            if connection.in_atomic_block
        }
        held: set[str] = set()

        def execute(
            proceed: Any, sql: Any, params: Any, many: bool, context: Any
        ) -> Any:
            connection = context["connection"]
            if str(sql).startswith("ROLLBACK"):
                # A transaction that has failed takes nothing else; the setting may be taken back.
                held.discard(connection.alias)
            elif connection.alias not in held:
                _set(limit * 1000, connection)
                held.update(outer & {connection.alias})
            return proceed(sql, params, many, context)

        with ExitStack() as wrapped:
            connection: Any
            for connection in connections.all():
                wrapped.enter_context(connection.execute_wrapper(execute))
                # In a transaction it would be set anew for each one, and could be rolled back.
                set_limit = partial(_set, limit * 1000, connection)
                wrapped.enter_context(connection.prepare_transactions(set_limit))
            response = self._get_response(request)
        if isinstance(response, StreamingHttpResponse) and not isinstance(
            response, FileResponse
        ):
            # Read when this request has left all middleware.
            response.streaming_content = _unhurried(
                cast(Iterator[bytes], response.streaming_content)
            )
        return response

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponseBase | None:
        """A page that says what to do; the API has its own."""
        code = problem(exception)
        return _page(code) if code else None


def _unhurried(content: Iterator[bytes]) -> Iterator[bytes]:
    connection.ensure_connection()
    _set(EXPORT * 1000, connection)
    yield from content


def _set(milliseconds: int, connection: BaseDatabaseWrapper) -> None:
    raw: Any = connection.connection
    raw.patience = milliseconds / 1000 + GRACE_SECONDS
    if settings.PGBOUNCER:
        return  # it lends the connection for one transaction: what is set is another's next
    if getattr(raw, "benchlab_limit", math.inf) == milliseconds:
        return
    is_local = connection.in_atomic_block
    # Not counted as a query of the page's own. What a transaction sets may be rolled back.
    with connection.wrap_database_errors:
        raw.execute(
            f"SET {'LOCAL ' if is_local else ''}statement_timeout = {milliseconds}"
        )
    if not is_local:
        raw.benchlab_limit = milliseconds
