"""What monitoring asks: whether BenchLab is ready, and its numbers."""

from dataclasses import asdict
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from runs.access import addresses
from runs.access.api.authentication import (
    BearerAuthentication,
    CookieAuthentication,
    reader,
)
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.operations.selectors import prometheus, readiness


@addresses.page("readyz")
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when everything that BenchLab needs is there, else 503; at most two seconds old.

    Everybody learns which check failed; whoever operates BenchLab also why, and what to do.
    """
    state_of_readiness = readiness.get()
    body: dict[str, object] = {
        "status": "ready" if state_of_readiness.is_ready else "not ready",
        "checks": {
            outcome.check: outcome.status for outcome in state_of_readiness.outcomes
        },
    }
    if _may_operate(request):
        body["details"] = [asdict(outcome) for outcome in state_of_readiness.outcomes]
    headers = {"Cache-Control": "no-store"}
    return JsonResponse(
        body, status=200 if state_of_readiness.is_ready else 503, headers=headers
    )


def _may_operate(request: HttpRequest) -> bool:
    """Asked last: who asks is known by the database, which may be away."""
    asking = Request(
        request, authenticators=[BearerAuthentication(), CookieAuthentication()]
    )
    try:
        return permissions.may(reader(asking), Right.OPERATE)
    except (DatabaseError, APIException):
        return False


class PlainText(BaseRenderer):
    """The text format of Prometheus."""

    media_type = "text/plain"
    format = "txt"

    def render(self, data: Any, *_arguments: Any, **_more: Any) -> str:
        """Of problems; the metrics themselves are written already."""
        return f"{data}\n"


@addresses.page("metrics", Right.OPERATE)
class MetricsDoor(APIView):
    """GET `/metrics` for Prometheus, by a token with the scope `monitor`."""

    renderer_classes = (PlainText,)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Computed from the database now: it does not matter which process answers."""
        return HttpResponse(
            prometheus.exposition(), content_type=prometheus.CONTENT_TYPE
        )
