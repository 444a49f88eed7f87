"""Preflight over the API: a campaign's problems, before it is queued."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.api.campaigns.drafts import CampaignDraftSerializer
from runs.api.doors import Schema
from runs.services.campaigns.designs import resolve
from runs.services.servers import preflight, turns
from runs.services.servers.machine_checks import Finding


class FindingSerializer(serializers.Serializer[Finding]):
    """An error forbids the campaign; a warning makes its numbers doubtful."""

    server = serializers.CharField()
    code = serializers.CharField()
    level = serializers.ChoiceField(["error", "warning"])
    message = serializers.CharField()
    remedy = serializers.CharField()


class PreflightSerializer(serializers.Serializer[preflight.Preflight]):
    """What was found, in how many seconds. `answered`: whether every server could be asked."""

    clear = serializers.BooleanField(source="is_clear")
    answered = serializers.SerializerMethodField()
    seconds = serializers.FloatField()
    findings = FindingSerializer(many=True)

    def get_answered(self, found: preflight.Preflight) -> bool:
        """Whether every server could be asked."""
        return found.has_answers


class PreflightDoor(APIView):
    """Preflight of a campaign that is not queued yet."""

    schema = Schema()

    @extend_schema(request=CampaignDraftSerializer, responses={200: PreflightSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask the servers now; takes up to some seconds. The body is that of a new campaign."""
        given = CampaignDraftSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with turns.turn():
            found = preflight.of_design(resolve(given.unchecked_draft()))
        return Response(PreflightSerializer(found).data)
