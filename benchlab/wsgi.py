"""The WSGI entry point for gunicorn."""

import gc
import os
from collections.abc import Callable, Iterable
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from django.core.wsgi import get_wsgi_application
from django.template.loader import get_template
from django.urls import URLResolver, get_resolver
from django.utils import translation

from benchlab import THRESHOLDS

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
            told = {"wsgi.input": body, "CONTENT_LENGTH": str(length)}
            return wrapped({**environ, **told}, start_response)

    return answer


def _copy(received: IO[bytes], to: IO[bytes]) -> int:
    """Copy a body and give its length; one that breaks off is shorter than said, as others are."""
    length = 0
    while length < MOST_IN_CHUNKS:
        try:
            part = received.read(min(65_536, MOST_IN_CHUNKS - length))
        except OSError:
            return length + 1
        if not part:
            break
        length += to.write(part)
    return length


def prepare() -> None:
    """Load now what the first request would have to wait for, and keep it from being collected."""
    waiting = [get_resolver()]
    while waiting:
        patterns = waiting.pop().url_patterns  # imports all pages and addresses of the API
        waiting += [each for each in patterns if isinstance(each, URLResolver)]
    # Most pages calculate. This loads all functions that `runs.arrays` names.
    from scipy.special import stdtr  # noqa: F401, PLC0415

    get_template("base.html")
    for language in ("en", "ja"):
        with translation.override(language):
            translation.gettext("Server")
    gc.collect()
    gc.freeze()  # collections pass over what stays until the end
    gc.set_threshold(*THRESHOLDS)


application = read_chunks(get_wsgi_application())
prepare()
