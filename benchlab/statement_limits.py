"""How long one statement of a request may take, by kind of request; a 503 says what to do then.

The limit is a setting of the connection, set again only when the next request is of another kind.
Behind PgBouncer, which lends one connection to many, it is left to the role (docs/deployment.md).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast

from django.conf import settings
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import FileResponse, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from psycopg.errors import QueryCanceled
from psycopg_pool import PoolTimeout

from benchlab.bucket import StoreError

# Pages and reads of the API answer at once; writes may wait for each other, exports read it all.
PAGE, READ, WRITE, EXPORT = 10, 15, 60, 600
RETRY_SECONDS = 5


def seconds(request: HttpRequest) -> int:
    """The limit of a request's statements."""
    if request.GET.get("format") == "csv" or "/export/" in request.path:
        return EXPORT
    if request.method not in {"GET", "HEAD", "OPTIONS"}:
        return WRITE
    return READ if request.path.startswith("/api/") else PAGE


def problem(error: BaseException) -> str:
    """`too_slow` of a statement that was ended, `too_busy` without a connection, `files_away` of a
    bucket that does not answer, else nothing."""
    if isinstance(error, StoreError):
        return "files_away"
    if isinstance(error, OperationalError):
        if isinstance(error.__cause__, QueryCanceled):
            return "too_slow"
        if isinstance(error.__cause__, PoolTimeout):
            return "too_busy"
    return ""


class LimitStatements:
    """Middleware: sets the limit with a request's first statement, and answers what exceeds it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response of the view, or of `process_exception`."""
        if settings.PGBOUNCER:
            return self._get_response(request)
        limit = seconds(request)

        def execute(proceed: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            # A transaction that has failed takes nothing else.
            if not str(sql).startswith("ROLLBACK"):
                _set(limit * 1000, context["connection"])
            return proceed(sql, params, many, context)

        with ExitStack() as wrapped:
            for each in connections.all():
                wrapped.enter_context(each.execute_wrapper(execute))
            response = self._get_response(request)
        if isinstance(response, StreamingHttpResponse) and not isinstance(response, FileResponse):
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
        if not code:
            return None
        response = render(request, "503.html", {"code": code}, status=503)
        response.headers["Retry-After"] = str(RETRY_SECONDS)
        return response


def _unhurried(content: Iterator[bytes]) -> Iterator[bytes]:
    connection.ensure_connection()
    _set(EXPORT * 1000, connection)
    yield from content


def _set(milliseconds: int, of: BaseDatabaseWrapper) -> None:
    raw: Any = of.connection
    if getattr(raw, "benchlab_limit", math.inf) == milliseconds:
        return
    is_local = of.in_atomic_block
    # Not counted as a query of the page's own. What a transaction sets may be rolled back.
    raw.execute(f"SET {'LOCAL ' if is_local else ''}statement_timeout = {milliseconds}")
    if not is_local:
        raw.benchlab_limit = milliseconds
