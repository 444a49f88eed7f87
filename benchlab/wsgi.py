"""The WSGI entry point for gunicorn."""

import os
from collections.abc import Callable, Iterable
from tempfile import SpooledTemporaryFile
from typing import IO, Any

# Verdicts of pages need it, and modules load it when first used.
import scipy.special  # noqa: F401
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]
MOST_IN_MEMORY = 2**20
# One byte more than the API takes, so that what is larger is refused as such.
MOST_IN_CHUNKS = 10 * 2**20 + 1


def read_chunks(wrapped: Application) -> Application:
    """A body sent in chunks gets a length: without one Django reads nothing of it."""

    def answer(environ: Environ, start_response: Any) -> Iterable[bytes]:
        is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not is_chunked or environ.get("CONTENT_LENGTH"):
            return wrapped(environ, start_response)
        with SpooledTemporaryFile(MOST_IN_MEMORY) as body:
            length = _copy(environ["wsgi.input"], body)
            body.seek(0)
            body_length = {"wsgi.input": body, "CONTENT_LENGTH": str(length)}
            return wrapped({**environ, **body_length}, start_response)

    return answer


def _copy(received: IO[bytes], target: IO[bytes]) -> int:
    """Copy a body and give its length; one that breaks off is shorter than said, as others are."""
    length = 0
    while length < MOST_IN_CHUNKS:
        try:
            chunk = received.read(min(65_536, MOST_IN_CHUNKS - length))
        except OSError:
            return length + 1
        if not chunk:
            break
        length += target.write(chunk)
    return length


application = read_chunks(get_wsgi_application())
# Django imports pages and API when it first looks for an address; gunicorn's workers share them.
get_resolver().url_patterns  # noqa: B018 - a property that imports
