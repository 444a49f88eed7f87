"""What the services log: lines for people, or JSON objects for programs, with request and run."""

import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from runs.operations.services import signs

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
RUN_ID: ContextVar[int | None] = ContextVar("run_id", default=None)
# What a proxy in front calls a request, if it is a name and not a text to be smuggled into logs.
GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Standard fields of a record; everything else was given as `extra`.
OWN = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"})
# JSON has the run as a number.
_NOT_TOLD = OWN | {"of_run"}

logger = logging.getLogger("benchlab.requests")


class Context(logging.Filter):
    """Adds the request and the run in which a line is logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let everything through."""
        record.request_id = REQUEST_ID.get()
        run_id = RUN_ID.get()
        record.run_id = run_id
        record.of_run = "" if run_id is None else f"run {run_id}: "
        return True


class JSONFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """The object; what JSON has no form for is written as text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {
            name: value
            for name, value in vars(record).items()
            if name not in _NOT_TOLD and value not in ("", None)
        }
        line.pop("request", None)  # Django's own records carry the request itself
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


@contextmanager
def bind_run(run_id: int) -> Iterator[None]:
    """Everything logged in this context belongs to this run."""
    token = RUN_ID.set(run_id)
    try:
        yield
    finally:
        RUN_ID.reset(token)


def number_requests(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: a request has an id, which its answer and its log records carry.

    Logged is the name of the address: its path may be a secret, as that of an invitation.
    """

    from benchlab.request_counts import note  # noqa: PLC0415 -- only web counts requests

    def answer(request: HttpRequest) -> HttpResponseBase:
        given_id = request.headers.get("X-Request-ID", "")
        token = REQUEST_ID.set(
            given_id if GIVEN_ID.fullmatch(given_id) else uuid.uuid4().hex
        )
        began = time.monotonic()
        try:
            response = get_response(request)
            response.headers["X-Request-ID"] = REQUEST_ID.get()
            seconds = time.monotonic() - began
            note(request.path, response.status_code, seconds)
            match = request.resolver_match
            fields: dict[str, Any] = {
                "method": request.method,
                "address": match.view_name if match else "",
                "status": response.status_code,
                "ms": round(seconds * 1000, 1),
            }
            if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
                signs.count_http_error(address=fields["address"] or "none")
            logger.info("%(method)s %(address)s %(status)s", fields, extra=fields)
        finally:
            REQUEST_ID.reset(token)
        return response

    return answer
