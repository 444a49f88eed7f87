"""The answer that tells a supervisor whether this process lives."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process answers. What it needs is `/readyz`: a process that waits for its
    database is not mended by being started again."""
    return JsonResponse({"status": "ok"})
