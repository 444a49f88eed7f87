"""Programs for other machines, as downloads: the upload client, and what comments in CI."""

import hashlib
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

CLIENT = "benchlab-upload"
COMMENT = "benchlab-comment"


@require_safe
def upload_client(_request: HttpRequest) -> HttpResponse:
    """The upload client from `script/`. Needs no login, since it contains no secret."""
    return _program(CLIENT)


@require_safe
def comment_client(_request: HttpRequest) -> HttpResponse:
    """The program that says the verdict in a pull or merge request; needs no login either."""
    return _program(COMMENT)


@cache
def upload_client_sha256() -> str:
    """What `sha256sum` says of the client."""
    return hashlib.sha256(_content(CLIENT)).hexdigest()


def _program(name: str) -> HttpResponse:
    response = HttpResponse(_content(name), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _content(name: str) -> bytes:
    return (Path(settings.BASE_DIR) / "script" / name).read_bytes()
