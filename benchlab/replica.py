"""Reads of web requests from a streaming standby, where DATABASE_REPLICA_URL names one.

Everything else reads from the primary: workers, control, commands, writes, requests with a token,
logins and accounts, what is read in a transaction, and exports, which are read while they are
sent. A browser that wrote something has a cookie with the position of the primary's log after it:
its reads come from the standby again when that has replayed it.
"""

import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase

ALIAS = "replica"
COOKIE = "benchlab_seen"
COOKIE_SECONDS = 24 * 3600
POSITION = re.compile(r"[0-9A-F]{1,8}/[0-9A-F]{1,8}")
# A standby that does not answer is not asked again for so long.
PAUSE_SECONDS = 5.0
# Whether it is a standby, which follows its primary, and has replayed the log up to a position.
IS_USABLE = (
    "SELECT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver)"
    " AND coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, true)"
)


class _Reads:
    """Which server the reads of one request go to: decided by its first one."""

    def __init__(self, position: str | None) -> None:
        self._position = position
        self._alias: str | None = None
        self.has_written = False

    def alias(self) -> str:
        """The primary once the request has written: it reads what it wrote."""
        if self.has_written or connection.in_atomic_block:
            return DEFAULT_DB_ALIAS
        if self._alias is None:
            self._alias = (
                ALIAS if _standby.is_usable(self._position) else DEFAULT_DB_ALIAS
            )
        return self._alias


class _Standby:
    def __init__(self) -> None:
        self._silent_until = 0.0

    def is_usable(self, position: str | None) -> bool:
        """Whether it can be read from, at this position or after it. One statement."""
        if time.monotonic() < self._silent_until:
            return False
        try:
            with connections[ALIAS].cursor() as cursor:
                cursor.execute(IS_USABLE, [position])
                return bool(cursor.fetchone()[0])
        except Error:
            connections[ALIAS].close()
            self._silent_until = time.monotonic() + PAUSE_SECONDS
            return False

    def forget(self) -> None:
        """Ask it again at once."""
        self._silent_until = 0.0


_standby = _Standby()
forget = _standby.forget
_present: ContextVar[_Reads | None] = ContextVar("reads", default=None)


class Router:
    """Django's router of databases: only reads within a safe request leave the primary."""

    def db_for_read(self, model: Any, **_hints: Any) -> str:
        """The standby for results; who asks is read from the primary."""
        reads = _present.get()
        if reads is None or model._meta.app_label != "runs":
            return DEFAULT_DB_ALIAS
        return reads.alias()

    def db_for_write(self, model: Any, **_hints: Any) -> str:
        """The primary, and so for what the request reads afterwards."""
        reads = _present.get()
        if reads is not None:
            reads.has_written = True
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *_objects: Any, **_hints: Any) -> bool:
        """Both are the same database."""
        return True

    def allow_migrate(self, db: str, *_args: Any, **_hints: Any) -> bool:
        """The standby gets what the primary has."""
        return db == DEFAULT_DB_ALIAS


class ReadReplica:
    """Middleware: lets the router send reads of safe requests to the standby."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response; after a write with the cookie that says up to where to wait."""
        if "Authorization" in request.headers:
            return self._get_response(request)
        reads = None
        if request.method in {"GET", "HEAD"}:
            position = request.COOKIES.get(COOKIE, "")
            reads = _Reads(position if POSITION.fullmatch(position) else None)
        token = _present.set(reads)
        try:
            response = self._get_response(request)
        finally:
            _present.reset(token)
        if reads is None or reads.has_written:
            self._remember(response)
        return response

    def _remember(self, response: HttpResponseBase) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_current_wal_insert_lsn()")
                position = str(cursor.fetchone()[0])
        except Error:
            return  # the primary is gone, and with it what was written
        response.set_cookie(
            COOKIE,
            position,
            max_age=COOKIE_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
