"""Answers that other sites show and read: pictures, feeds, and public reads of the API.

What is asked for with a login or a token is for who asked: no site may frame or read it, and no
cache keeps it. Whatever anybody may see has a tag, and caches keep it for some minutes. Pages of
other sites frame it and read it where `BENCHLAB_EMBED_ORIGINS` names them; a browser shows an image
anywhere.
"""

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.decorators import decorator_from_middleware

SECONDS = 300
ALL = "*"


# What a browser takes from a 304, too, in place of what it has kept.
_OF_BROWSERS = (
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Content-Security-Policy",
    "Cross-Origin-Resource-Policy",
)


class _Tagged(ConditionalGetMiddleware):
    """Django's, whose 304 has what browsers ask of the whole answer as well."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """The answer with its tag, or 304 where the reader has it."""
        answer: HttpResponseBase = super().process_response(request, response)
        if answer is not response:
            for name in _OF_BROWSERS:
                if name in response.headers:
                    answer.headers[name] = response.headers[name]
            if getattr(response, "xframe_options_exempt", False):
                answer.xframe_options_exempt = True  # type: ignore[attr-defined]
        return answer


tagged = decorator_from_middleware(_Tagged)


def site(request: HttpRequest) -> str:
    """The site's own address without a slash: `BENCHLAB_URL`, else as it was asked for."""
    return settings.PUBLIC_URL.rstrip("/") or request.build_absolute_uri("/")[:-1]


def is_of_nobody(request: HttpRequest) -> bool:
    """Whether a request has neither a login nor a token: what it gets, everybody may see."""
    is_known = settings.SESSION_COOKIE_NAME in request.COOKIES
    return not is_known and "Authorization" not in request.headers


def opened(
    request: HttpRequest, response: HttpResponseBase, *, seconds: int = SECONDS
) -> HttpResponseBase:
    """The answer with what caches and browsers need to know; after `seconds` they ask again."""
    patch_vary_headers(response, ("Cookie", "Authorization", "Origin"))
    if not is_of_nobody(request):
        patch_cache_control(response, private=True, no_store=True)
        return response
    patch_cache_control(response, public=True, max_age=seconds)
    if origin := allowed_origin(request):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = "ETag, Link"
    return response


def allowed_origin(request: HttpRequest) -> str:
    """What the asking page's origin is told; empty where it may not read."""
    if ALL in settings.EMBED_ORIGINS:
        return ALL
    origin: str = request.headers.get("Origin", "")
    return origin if origin in settings.EMBED_ORIGINS else ""


def framed(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """A picture as `opened`, which pages of the named sites may have in a frame as well.

    Whatever it says, nothing in it acts: it may have styles of its own, and that is all.
    """
    ancestors = "'none'"
    if is_of_nobody(request) and settings.EMBED_ORIGINS:
        ancestors = " ".join(("'self'", *settings.EMBED_ORIGINS))
        # Old browsers know this header alone, and only for one site.
        response.xframe_options_exempt = True  # type: ignore[attr-defined]
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors {ancestors}"
    )
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return opened(request, response)
