"""Errors of the API: one shape for all of them, `application/problem+json` (RFC 9457)."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import exceptions
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

from benchlab import statement_limits
from runs.api.parsing import QueryFault, TooLarge
from runs.api.remedies import REMEDIES
from runs.services.errors import Refused, ServiceError

MEDIA_TYPE = "application/problem+json"

Fault = dict[str, str]

STATUSES = {
    "invalid": HTTPStatus.BAD_REQUEST,
    "contradicts": HTTPStatus.UNPROCESSABLE_ENTITY,
    "conflict": HTTPStatus.CONFLICT,
}


def problem_json(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an exception; None lets an unforeseen one go on to Django, which logs it."""
    if isinstance(exc, ServiceError):
        return _of_service(exc)
    if isinstance(exc, Refused):
        return _of_document(exc)
    if isinstance(exc, RequestDataTooBig):
        exc = TooLarge()
    if code := statement_limits.problem(exc):
        return _without_database(code)
    response = exception_handler(exc, context)
    if response is None:
        return None
    exc = _as_api_exception(exc)
    if isinstance(exc, exceptions.ValidationError):
        place = "?" if isinstance(exc, QueryFault) else _prefix(context.get("request"))
        faults = list(_faults(exc.detail, place))
        body = problem(response.status_code, "invalid", _summary(faults), faults)
    else:
        body = problem(response.status_code, _code(exc), str(exc.detail), _of_body(exc))
    response.data = body
    response.content_type = MEDIA_TYPE
    return response


def _of_service(error: ServiceError) -> Response:
    """422 where one input is at fault, 409 where the state of things forbids it."""
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error.field else HTTPStatus.CONFLICT
    fault = {"pointer": f"/{error.field}", "code": error.code, "message": error.message}
    if error.remedy:
        fault["remedy"] = error.remedy
    body = problem(status, error.code, error.message, [fault] if error.field else [])
    if error.remedy:
        body["remedy"] = error.remedy
    return Response(body, status=status, content_type=MEDIA_TYPE)


_WITHOUT_DATABASE = {
    "too_busy": (
        gettext_lazy("The database is busy with other requests."),
        gettext_lazy("Try again in a few seconds."),
    ),
    "too_slow": (
        gettext_lazy("The database needed longer than a request may take."),
        gettext_lazy("Ask for less: one campaign, a further filter, or a smaller page_size."),
    ),
    "disk_full": (
        gettext_lazy("The database's disk is full. Nothing was stored."),
        gettext_lazy("An operator has to free space; then send the same again."),
    ),
    "database_away": (
        gettext_lazy("The database does not answer."),
        gettext_lazy(
            "Try again in a few seconds. If this continues, /readyz shows an operator what is "
            "wrong."
        ),
    ),
    "files_away": (
        gettext_lazy("The store of files does not answer."),
        gettext_lazy("Try again later; manage.py doctor says what is wrong."),
    ),
    "file_changed": (
        gettext_lazy("The content of this file is not what was stored."),
        gettext_lazy("An operator has to bring it back from a backup; see the log for its name."),
    ),
}


def _without_database(code: str) -> Response:
    """503: the database was asked for too much or by too many, or cannot answer."""
    message, remedy = map(str, _WITHOUT_DATABASE[code])
    body = problem(HTTPStatus.SERVICE_UNAVAILABLE, code, message) | {"remedy": remedy}
    again = {"Retry-After": str(statement_limits.RETRY_SECONDS)}
    return Response(body, status=503, headers=again, content_type=MEDIA_TYPE)


def _of_document(refused: Refused) -> Response:
    """Every fault of a request; if there is only one, its message is the summary."""
    faults = [
        {name: text for name, text in vars(fault).items() if text} for fault in refused.faults
    ]
    status = STATUSES[refused.kind]
    code = faults[0]["code"] if len({fault["code"] for fault in faults}) == 1 else refused.kind
    if refused.kind == "invalid":
        code = "invalid"
    body = problem(status, code, _summary(faults), faults)
    return Response(body, status=status, content_type=MEDIA_TYPE)


def problem(
    status: int, code: str, detail: str, faults: list[Fault] | None = None
) -> dict[str, Any]:
    """The body of an error."""
    # Half of a surrogate pair, as JSON may have it, is in no text that can be sent.
    faults = [
        {key: _sendable(text) for key, text in (_with_remedy(fault)).items()}
        for fault in faults or []
    ]
    found = {
        "type": f"urn:benchlab:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": _sendable(detail),
        "code": code,
        "errors": faults,
    }
    if not faults and code in REMEDIES:
        found["remedy"] = str(REMEDIES[code])
    return found


def _with_remedy(fault: Fault) -> Fault:
    """The fault with what to send instead, where that can be said."""
    remedy = REMEDIES.get(fault["code"])
    return fault if remedy is None or "remedy" in fault else fault | {"remedy": str(remedy)}


def _of_body(exc: exceptions.APIException) -> list[Fault]:
    """What is wrong with a body that cannot be read: the place is all of it, or a header."""
    if isinstance(exc, exceptions.UnsupportedMediaType):
        pointer = "/Content-Type"
    elif isinstance(exc, exceptions.ParseError | TooLarge):
        pointer = "/"
    else:
        return []
    return [{"pointer": pointer, "code": _code(exc), "message": str(exc.detail)}]


def _sendable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _as_api_exception(exc: Exception) -> exceptions.APIException:
    """Django's own exceptions as the framework's, as its handler understands them."""
    if isinstance(exc, exceptions.APIException):
        return exc
    if isinstance(exc, Http404):
        return exceptions.NotFound()
    if isinstance(exc, PermissionDenied):
        return exceptions.PermissionDenied()
    raise TypeError(f"{type(exc).__name__} has no answer.")


def _code(exc: exceptions.APIException) -> str:
    codes = exc.get_codes()
    return codes if isinstance(codes, str) else exc.default_code


def _prefix(request: Request | None) -> str:
    """What a request without a body gets wrong is its query: `?version`, not `/version`."""
    return "?" if request is not None and request.method in SAFE_METHODS else "/"


def _faults(detail: Any, pointer: str) -> Iterator[Fault]:
    """Every fault in the framework's nest of dicts and lists, with the path that leads to it."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _faults(inner, _below(pointer, name))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            is_nested = isinstance(inner, dict | list)
            yield from _faults(inner, _below(pointer, index) if is_nested else pointer)
    else:
        code = getattr(detail, "code", None) or "invalid"
        yield {"pointer": pointer, "code": code, "message": str(detail)}


def _below(pointer: str, name: object) -> str:
    """The path one step down. A fault of the object itself (`non_field_errors`) stays there."""
    if name == "non_field_errors":
        return pointer
    step = str(name).replace("~", "~0").replace("/", "~1")
    return f"{pointer}{step}" if pointer in ("?", "/") else f"{pointer}/{step}"


def _summary(faults: list[Fault]) -> str:
    if len(faults) == 1:
        return f"{faults[0]['pointer']}: {faults[0]['message']}"
    return _("%(count)d faults; they are listed in “errors”.") % {"count": len(faults)}
