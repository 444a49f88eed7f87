"""Addresses that no page has: refused before anybody looks for them."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.utils.translation import gettext as _

from runs.api.errors import MEDIA_TYPE, problem

Answer = Callable[[HttpRequest], HttpResponse]
API = "/api/v1/"


def end_with_slash(get_response: Answer) -> Answer:
    """Middleware: an address of the API works without its last slash.

    A redirect would lose the body of a POST, and curl would call that a success.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(API) and not request.path_info.endswith("/"):
            request.path_info += "/"
            request.path += "/"
        return get_response(request)

    return answer


def refuse_nul(get_response: Answer) -> Answer:
    """Middleware: refuses NUL, which PostgreSQL cannot store and would answer with an error."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "\0" not in request.path and "%00" not in request.META.get("QUERY_STRING", ""):
            return get_response(request)
        message = _("The address has a character that cannot be stored (NUL).")
        if not request.path.startswith("/api/"):
            return HttpResponseBadRequest(message, content_type="text/plain; charset=utf-8")
        body = problem(400, "not_storable", message)
        return JsonResponse(body, status=400, content_type=MEDIA_TYPE)

    return answer
