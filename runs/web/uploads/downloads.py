"""Programs for other machines, as downloads: the upload client."""

import hashlib
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

CLIENT = "benchlab-upload"


@require_safe
def upload_client(_request: HttpRequest) -> HttpResponse:
    """The upload client, as it lies in `script/`. Needs no login: there is no secret in it."""
    response = HttpResponse(_client(), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{CLIENT}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def upload_client_sha256() -> str:
    """What `sha256sum` says of the client."""
    return hashlib.sha256(_client()).hexdigest()


@cache
def _client() -> bytes:
    return (Path(settings.BASE_DIR) / "script" / CLIENT).read_bytes()
