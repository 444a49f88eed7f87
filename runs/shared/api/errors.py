"""Errors of the API: one shape for all of them, `application/problem+json` (RFC 9457)."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

from benchlab import statement_limits
from runs.shared.api.parsing import QueryFault, TooLarge
from runs.shared.api.upload_limits import MOST_BYTES
from runs.shared.errors import Refused, ServiceError

REMEDIES: dict[str, str | Promise] = {
    "ambiguous_revision": _("Write more digits of the commit."),
    "broken_off": _("Send the request again, complete."),
    "campaign_name": _("Choose a name without two hyphens in a row."),
    "campaign_not_uploaded": _("Choose another name for the campaign of uploads."),
    "campaign_taken": _("Choose another name, or use a token of that project."),
    "campaign_missing": _("Add “campaign” with the name of the campaign."),
    "configuration_differs": _(
        "Leave the configuration out, or choose another campaign name."
    ),
    "does_not_exist": _("Look for the name in the list of the same kind in the API."),
    "either_or": _("Send one of the two, and leave the other out."),
    "empty": _("Leave the field out, or fill it."),
    "empty_parameter": _("Give the parameter a value, or leave it out."),
    "environment_unknown": _('Send an object such as {"os_name": "Debian 13"}.'),
    "external_id_taken": _("Give each run an external id of its own, or leave it out."),
    "failed_with_figures": _("Remove “measurements”, or send “status”: “partial”."),
    "hardware_unknown": _(
        'Send an object such as {"cpu_model": "EPYC 9354", "cores": 32}.'
    ),
    "idempotency_key_reused": _("Send each upload with its own key."),
    "in_the_future": _("Set the clock of the sending machine, and its time zone."),
    "invalid_choice": _("Write one of the words listed."),
    "level_differs": _("Leave the field out: it is in the output."),
    "level_twice": _("Write the level in the same way as before."),
    "metric_conflict": _(
        "Convert the values, use another name, or have a maintainer correct the metric"
        " on the project's page of metrics."
    ),
    "metric_unknown": _(
        "Add “unit” (such as “ms”) and “direction” (higher, lower or neutral)."
    ),
    "metric_case": _("Write the name of the metric that is there already."),
    "negative": _(
        "Send what was measured; leave the metric out where nothing was measured."
    ),
    "negative_time": _("Send seconds or moments in their order, 0 or above."),
    "no_time_zone": _("Write date, time and zone, such as 2026-01-31T12:00:00Z."),
    "not_a_key": _("Send the output of uuidgen, a new one for each upload."),
    "not_a_level": _("Write a number, true, false or a text that is not empty."),
    "not_a_list": _("Write a list: [ ... ]."),
    "not_a_name": _("Use letters, digits, dots, hyphens and underscores."),
    "not_a_number": _("Write a number without quotes, such as 1000.5."),
    "not_a_sha": _("Write the output of “git rev-parse HEAD”."),
    "not_a_side": _(
        "Write campaign:nightly, revision:main, revision:4f1c09d or run:4711."
    ),
    "not_a_slug": _("Write a name such as nightly-tpcb."),
    "not_a_string": _("Write a text in double quotes."),
    "not_a_time": _("Write date, time and zone, such as 2026-01-31T12:00:00Z."),
    "not_a_url": _("Write an address such as https://example.org/commit/4f1c09d."),
    "not_a_version": _("Write what SHOW server_version prints, such as 18.1."),
    "not_an_object": _("Write an object: { ... }."),
    "not_finite": _("Write a number between -1e24 and 1e24, or leave it out."),
    "not_gzip": _(
        "Compress the body with gzip, or leave the header Content-Encoding out."
    ),
    "not_json": _(
        "Send one JSON object, with the header Content-Type: application/json."
    ),
    "not_multipart": _(
        "Let the HTTP client make the form, such as curl -F run=@run.json."
    ),
    "not_storable": _("Remove the character."),
    "not_utf_8": _("Encode the body as UTF-8."),
    "out_of_range": _("Send a value within the bounds; check its unit."),
    "own_parent": _("List the parents only, without the commit itself."),
    "repeated": _("Keep one of them."),
    "repeated_key": _("Keep one of the two."),
    "repeated_parameter": _("Keep one of them."),
    "required": _("Add the field."),
    "reserved": _("Choose another name; “round” says which runs were made together."),
    "same_commit": _("Name the branch as base, or another commit."),
    "scenario_differs": _("Leave the scenario out, or choose another campaign name."),
    "server_unknown": _(
        "Register the server first, or describe the machine in “hardware”."
    ),
    "tool_unknown": _("Name a known tool, or send “measurements”."),
    "too_deep": _("Send a flatter object."),
    "too_large": format_lazy(
        _("Send at most {most} MB a request."), most=MOST_BYTES // 2**20
    ),
    "too_long": _("Shorten the text."),
    "too_many": _("Send fewer, or in several requests."),
    "too_old": _("Check the date, and the version that was measured."),
    "unknown_campaign": _("Look for its name at /api/v1/campaigns/."),
    "unknown_field": _("Remove the field, or correct its name."),
    "unknown_name": _("Leave the filter out, or correct the name."),
    "unknown_parameter": _("Remove the parameter, or correct its name."),
    "unknown_metric": _("Use the name of a metric as runs/<id>/ has it, such as tps."),
    "unknown_ref": _("Upload a run of the branch first, or correct its name."),
    "unknown_revision": _("Upload a run of the commit first, or name its branch."),
    "unknown_run": _("Look for its number at /api/v1/runs/."),
    "unknown_setting": _(
        "Correct the name; anything that is not a setting of PostgreSQL goes into “labels”."
    ),
    "unsupported_media_type": _("Send the header Content-Type: application/json."),
    "version_differs": _("Leave the version out of one of the two places."),
    "version_unknown": _("Give the version of the server that was measured."),
    # The framework's own
    "blank": _("Leave the field out, or fill it."),
    "date": _("Write date, time and zone, such as 2026-01-31T12:00:00Z."),
    "invalid": _("Send a value of the kind that the description at /api/docs/ has."),
    "max_length": _("Shorten the text."),
    "max_string_length": _("Shorten the number."),
    "max_value": _("Send a value within the bounds."),
    "method_not_allowed": _("Use a method that the header Allow names."),
    "min_length": _("Send a longer text."),
    "min_value": _("Send a value within the bounds."),
    "not_a_dict": _("Write an object: { ... }."),
    "not_found": _("Check the address; the API is described at /api/docs/."),
    "null": _("Leave the field out, or fill it."),
    "parse_error": _(
        "Send one JSON object, with the header Content-Type: application/json."
    ),
    "unknown_format": _("Leave “format” out for JSON."),
}


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
        return _answer_service_error(exc)
    if isinstance(exc, Refused):
        return _answer_refused(exc)
    if isinstance(exc, RequestDataTooBig):
        exc = TooLarge()
    if code := statement_limits.problem(exc):
        return _answer_without_database(code)
    response = exception_handler(exc, context)
    if response is None:
        return None
    # The framework's handler has answered, which knows two of Django's own.
    if not isinstance(exc, exceptions.APIException):
        is_missing = isinstance(exc, Http404)
        exc = exceptions.NotFound() if is_missing else exceptions.PermissionDenied()
    if isinstance(exc, exceptions.ValidationError):
        prefix = "?" if isinstance(exc, QueryFault) else _prefix(context.get("request"))
        faults = list(_faults(exc.detail, prefix))
        body = problem(response.status_code, "invalid", _summary(faults), faults)
    else:
        body = problem(
            response.status_code, _code(exc), str(exc.detail), _body_faults(exc)
        )
    response.data = body
    response.content_type = MEDIA_TYPE
    return response


def _answer_service_error(error: ServiceError) -> Response:
    """422 where one input is at fault, 409 where the state of things forbids it."""
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error.field else HTTPStatus.CONFLICT
    fault = {"pointer": f"/{error.field}", "code": error.code, "message": error.message}
    remedy_fields = {"remedy": error.remedy} if error.remedy else {}
    body = problem(
        status,
        error.code,
        error.message,
        [fault | remedy_fields] if error.field else [],
    )
    return Response(body | remedy_fields, status=status, content_type=MEDIA_TYPE)


_WITHOUT_DATABASE = {
    "too_busy": (
        _("The database is busy with other requests."),
        _("Try again in a few seconds."),
    ),
    "too_slow": (
        _("The database needed longer than a request may take."),
        _("Ask for less: one campaign, a further filter, or a smaller page_size."),
    ),
    "disk_full": (
        _("The database's disk is full. Nothing was stored."),
        _("An operator has to free space; then send the same again."),
    ),
    "database_away": (
        _("The database does not answer."),
        _(
            "Try again in a few seconds. If this continues, /readyz shows an operator what is "
            "wrong."
        ),
    ),
    "files_away": (
        _("The store of files does not answer."),
        _("Try again later; manage.py doctor says what is wrong."),
    ),
    "file_changed": (
        _("The content of this file is not what was stored."),
        _("An operator has to bring it back from a backup; see the log for its name."),
    ),
}


def _answer_without_database(code: str) -> Response:
    """503: the database was asked for too much or by too many, or cannot answer."""
    message, remedy = map(str, _WITHOUT_DATABASE[code])
    body = problem(HTTPStatus.SERVICE_UNAVAILABLE, code, message) | {"remedy": remedy}
    again = {"Retry-After": str(statement_limits.RETRY_SECONDS)}
    return Response(body, status=503, headers=again, content_type=MEDIA_TYPE)


def _answer_refused(refused: Refused) -> Response:
    """Every fault of a request; if there is only one, its message is the summary."""
    faults = [
        {name: text for name, text in vars(fault).items() if text}
        for fault in refused.faults
    ]
    status, codes = STATUSES[refused.kind], {fault["code"] for fault in faults}
    is_one = len(codes) == 1 and refused.kind != "invalid"
    body = problem(
        status, codes.pop() if is_one else refused.kind, _summary(faults), faults
    )
    return Response(body, status=status, content_type=MEDIA_TYPE)


def problem(
    status: int, code: str, detail: str, faults: list[Fault] | None = None
) -> dict[str, Any]:
    """The body of an error."""
    with_remedies = [
        {"remedy": str(REMEDIES[fault["code"]]), **fault}
        if fault["code"] in REMEDIES
        else fault
        for fault in faults or ()
    ]
    # Half of a surrogate pair, as JSON may have it, is in no text that can be sent.
    faults = [
        {key: _sendable(text) for key, text in fault.items()} for fault in with_remedies
    ]
    body = {
        "type": f"urn:benchlab:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": _sendable(detail),
        "code": code,
        "errors": faults,
    }
    if not faults and code in REMEDIES:
        body["remedy"] = str(REMEDIES[code])
    return body


def _body_faults(exc: exceptions.APIException) -> list[Fault]:
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
            yield from _faults(inner, _step_down(pointer, name))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            is_nested = isinstance(inner, dict | list)
            yield from _faults(
                inner, _step_down(pointer, index) if is_nested else pointer
            )
    else:
        code = getattr(detail, "code", None) or "invalid"
        yield {"pointer": pointer, "code": code, "message": str(detail)}


def _step_down(pointer: str, name: object) -> str:
    """The path one step down. A fault of the object itself (`non_field_errors`) stays there."""
    if name == "non_field_errors":
        return pointer
    step = str(name).replace("~", "~0").replace("/", "~1")
    return f"{pointer}{step}" if pointer in ("?", "/") else f"{pointer}/{step}"


def _summary(faults: list[Fault]) -> str:
    if len(faults) == 1:
        return f"{faults[0]['pointer']}: {faults[0]['message']}"
    return _("%(count)d faults; they are listed in “errors”.") % {"count": len(faults)}
