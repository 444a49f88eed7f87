"""The answer that shows a supervisor that this process is alive."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process answers. What it needs is `/readyz`: a process that waits for its
    database is not repaired by a restart."""
    return JsonResponse({"status": "ok"})
