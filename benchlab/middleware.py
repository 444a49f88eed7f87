"""Middleware: headers, refused addresses, packed answers, and how many pages a minute."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.utils.translation import gettext as _

from runs.shared.api.errors import MEDIA_TYPE, problem
from runs.shared.api.rate_limit import RateLimit

Answer = Callable[[HttpRequest], HttpResponseBase]

# Plotly adds two style elements to the page: an empty one, which it fills by the DOM, and that of a
# kind of map which BenchLab does not draw. An update of Plotly may need another second one.
PLOTLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
)
# Nothing from elsewhere, no script or style within a page, no frame. Pages have none of them.
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": " ".join(("'self'", *PLOTLY_STYLES)),
    # A download of a chart as an image goes through data: and blob: addresses of our own.
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
# Plotly writes style attributes into its drawings, and Swagger into its pages; neither is markup
# that a reader of BenchLab has sent.
STYLE_ATTRIBUTES = {"style-src-attr": "'unsafe-inline'"}
SWAGGER = POLICY | {"style-src": "'self' 'unsafe-inline'"}


# A host, as a source of a policy may name it.
HOST = re.compile(r"[A-Za-z0-9.\-]+(?::\d+)?|\[[0-9A-Fa-f:.]+\](?::\d+)?")


def _text(policy: dict[str, str]) -> str:
    return "; ".join(f"{name} {sources}" for name, sources in policy.items())


def build_page_policy() -> dict[str, str]:
    """The policy of pages. A login by OpenID Connect is a form that leads on to the provider.

    Browsers apply form-action to where a form's answer redirects (CSP level 3 leaves it to them,
    and Chromium does), so the provider's origin is allowed where one is configured.
    """
    policy = POLICY | STYLE_ATTRIBUTES
    issuer = urlsplit(settings.OPENID_ISSUER)
    if issuer.scheme in {"https", "http"} and HOST.fullmatch(issuer.netloc):
        policy["form-action"] = f"'self' {issuer.scheme}://{issuer.netloc}"
    return policy


def content_security_policy(get_response: Answer) -> Answer:
    """Middleware: the policy of pages, and that of the API's own documentation."""
    for_pages, for_swagger = _text(build_page_policy()), _text(SWAGGER)

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        # Django's own error pages, which only developers see, have styles in them.
        if not settings.DEBUG:
            is_swagger = request.path == "/api/docs/"
            policy = for_swagger if is_swagger else for_pages
            response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return answer


def keep_private(get_response: Answer) -> Answer:
    """Middleware: what was asked for with a login or a token is kept by no cache and no browser."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        is_known = (
            settings.SESSION_COOKIE_NAME in request.COOKIES
            or "Authorization" in (request.headers)
        )
        if is_known:
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return answer


PlainAnswer = Callable[[HttpRequest], HttpResponse]
API = "/api/v1/"


def end_with_slash(get_response: PlainAnswer) -> PlainAnswer:
    """Middleware: an address of the API works without its last slash.

    A redirect would lose the body of a POST, and curl would call that a success.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(API) and not request.path_info.endswith("/"):
            request.path_info += "/"
            request.path += "/"
        return get_response(request)

    return answer


def refuse_nul(get_response: PlainAnswer) -> PlainAnswer:
    """Middleware: refuses NUL, which PostgreSQL cannot store and would answer with an error."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "\0" not in request.path and "%00" not in request.META.get(
            "QUERY_STRING", ""
        ):
            return get_response(request)
        message = _("The address has a character that cannot be stored (NUL).")
        if not request.path.startswith("/api/"):
            return HttpResponseBadRequest(
                message, content_type="text/plain; charset=utf-8"
            )
        body = problem(400, "not_storable", message)
        return JsonResponse(body, status=400, content_type=MEDIA_TYPE)

    return answer


LEAST_BYTES = 1024
# What is text; images and artifacts are packed already, or not worth it.
PACKED = (
    "text/",
    "application/json",
    "application/problem+json",
    "application/x-ndjson",
)


class Compress(GZipMiddleware):
    """Middleware: Django's, which pads each answer by up to 100 random bytes.

    Without that the length of a page would say whether a guess of its CSRF token is right (BREACH).
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """The answer, packed if it is text, long enough, and the client takes it."""
        kind = response.headers.get("Content-Type", "")
        is_short = (
            not response.streaming
            and len(getattr(response, "content", b"")) < LEAST_BYTES
        )
        if is_short or not kind.startswith(PACKED):
            return response
        return super().process_response(request, response)


# What supervisors ask, and what counts itself.
NOT_COUNTED = ("/healthz", "/readyz", "/metrics", "/api/")


def limit_pages(get_response: Answer) -> Answer:
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
