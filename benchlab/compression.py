"""Answers that are packed with gzip: pages, JSON and CSV, streams too."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

LEAST_BYTES = 1024
# What is text; images and artifacts are packed already, or not worth it.
PACKED = ("text/", "application/json", "application/problem+json", "application/x-ndjson")


class Compress(GZipMiddleware):
    """Middleware: Django's, which pads each answer by up to 100 random bytes.

    Without that the length of a page would say whether a guess of its CSRF token is right (BREACH).
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """The answer, packed if it is text, long enough, and the client takes it."""
        kind = response.headers.get("Content-Type", "")
        is_short = not response.streaming and len(getattr(response, "content", b"")) < LEAST_BYTES
        if is_short or not kind.startswith(PACKED):
            return response
        return super().process_response(request, response)
