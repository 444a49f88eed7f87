"""Headers of every answer: what a browser may load, and what it may cache."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

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


def of_pages() -> dict[str, str]:
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
    for_pages, for_swagger = _text(of_pages()), _text(SWAGGER)

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
        is_known = settings.SESSION_COOKIE_NAME in request.COOKIES or "Authorization" in (
            request.headers
        )
        if is_known:
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return answer
