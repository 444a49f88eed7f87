"""How many pages a minute; the API has its own door for the same counters."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from runs.api.rate_limit import RateLimit

# What supervisors ask, and what counts itself.
NOT_COUNTED = ("/healthz", "/readyz", "/metrics", "/api/")


def limit_pages(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: 429 with `Retry-After` beyond the limits of settings."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(NOT_COUNTED):
            return get_response(request)
        limit = RateLimit()
        if limit.allow_page(request):
            return get_response(request)
        response = render(request, "429.html", status=429)
        response.headers["Retry-After"] = str(round(limit.wait()))
        return response

    return answer
