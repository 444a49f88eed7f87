"""What monitoring asks (whether BenchLab is ready, its numbers), and how a host joins."""

from dataclasses import asdict
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
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
from runs.operations.services import hosts
from runs.shared.api.doors import Schema, taken
from runs.shared.api.parsing import StrictSerializer


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


class JoiningSerializer(StrictSerializer):
    """A host that wants to join: its token, and what it is."""

    token = serializers.CharField(max_length=200)
    name = serializers.CharField(max_length=100)
    release = serializers.CharField(max_length=40)
    at = serializers.FloatField(help_text="Seconds since 1970 by the host's clock.")


class JoinedSerializer(serializers.Serializer[Any]):
    """What a host gets: the variables of its environment, with secrets of its own."""

    host = serializers.IntegerField()
    name = serializers.CharField()
    may_log_in = serializers.BooleanField()
    environment = serializers.DictField(child=serializers.CharField())


class LeavingSerializer(StrictSerializer):
    """A host that leaves, and its proof, which is signed with its key."""

    host = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    proof = serializers.CharField(max_length=500)


@addresses.door({"host-join": addresses.acting(post=Right.LOOK)})
class HostJoinDoor(APIView):
    """A host joins by a token of one use (`manage.py join_token`)."""

    schema = Schema()

    @extend_schema(request=JoiningSerializer, responses={200: JoinedSerializer})
    def post(self, request: Request) -> Response:
        """What the host needs, once: over TLS, or from this machine itself."""
        joining = hosts.Joining(**taken(JoiningSerializer, request).validated_data)
        answer = hosts.join(joining=joining, is_protected=_is_protected(request))
        content = JoinedSerializer(answer).data
        return Response(content, headers={"Cache-Control": "no-store"})


@addresses.door({"host-leave": addresses.acting(post=Right.LOOK)})
class HostLeaveDoor(APIView):
    """A host leaves by itself."""

    schema = Schema()

    @extend_schema(request=LeavingSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """From now on it reaches nothing."""
        leaving = taken(LeavingSerializer, request).validated_data
        hosts.leave(host_id=leaving["host"], proof=leaving["proof"])
        return Response(status=204)


def _is_protected(request: Request) -> bool:
    """Whether nobody on the way reads the answer. A proxy on this machine is not its reader."""
    if request._request.is_secure():
        return True
    is_direct = "X-Forwarded-For" not in request.headers
    reader_address = str(request.META.get("REMOTE_ADDR", ""))
    return is_direct and hosts.is_local(reader_address)
