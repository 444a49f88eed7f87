"""Preflight over the API: a campaign's problems, before it is queued; asked for, then polled."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from runs.api.campaigns.drafts import CampaignDraftSerializer
from runs.api.doors import Schema
from runs.models import ServerCheck
from runs.selectors.servers import servers as check_selectors
from runs.services.access import audit
from runs.services.servers import checks
from runs.services.servers.machine_checks import Finding

SECONDS_BETWEEN_POLLS = 1


class FindingSerializer(serializers.Serializer[Finding]):
    """An error forbids the campaign; a warning makes its numbers doubtful."""

    server = serializers.CharField()
    code = serializers.CharField()
    level = serializers.ChoiceField(["error", "warning"])
    message = serializers.CharField()
    remedy = serializers.CharField()


class PreflightSerializer(serializers.Serializer[dict[str, Any]]):
    """What was found, in how many seconds. `answered`: whether every server could be asked."""

    clear = serializers.BooleanField(source="is_clear")
    answered = serializers.BooleanField(source="has_answers")
    seconds = serializers.FloatField()
    findings = FindingSerializer(many=True)


class CheckProblemSerializer(serializers.Serializer[Any]):
    """Why there is no answer, and what to do about it."""

    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()


class CheckSerializer(serializers.Serializer[ServerCheck]):
    """How far a check is: `answer` once it is done, `problem` if it failed."""

    address = ""
    id = serializers.UUIDField()
    url = serializers.SerializerMethodField()
    state = serializers.ChoiceField(choices=ServerCheck.State.choices)
    problem = serializers.SerializerMethodField()

    def get_url(self, check: ServerCheck) -> str:
        """The address to ask until `state` is `done` or `failed`."""
        return reverse(self.address, args=[check.pk], request=self.context.get("request"))

    @extend_schema_field(CheckProblemSerializer(allow_null=True))
    def get_problem(self, check: ServerCheck) -> dict[str, str] | None:
        """Null unless it failed."""
        if check.state != ServerCheck.State.FAILED:
            return None
        return {name: getattr(check, name) for name in ("code", "message", "remedy")}


class PreflightCheckSerializer(CheckSerializer):
    """How far a preflight is: `answer` once it is done, `problem` if it failed."""

    address = "api:preflight-check"
    answer = PreflightSerializer(allow_null=True)


class PreflightDoor(APIView):
    """Preflight of a campaign that is not queued yet."""

    schema = Schema()

    @extend_schema(request=CampaignDraftSerializer, responses={202: PreflightCheckSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Have a worker ask the servers. The body is that of a new campaign.

        The answer comes at once; its `url` (also in `Location`) has the findings seconds later.
        """
        given = CampaignDraftSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        check = checks.of_draft(draft=given.unchecked_draft())
        return accepted(PreflightCheckSerializer(check, context={"request": request}).data)


class PreflightCheckDoor(APIView):
    """A preflight that was asked for."""

    schema = Schema()

    @extend_schema(responses={200: PreflightCheckSerializer})
    def get(self, request: Request, check_id: UUID) -> Response:
        """How far it is. Only whoever asked for it finds it, for a day."""
        check = own_check(check_id)
        if check is None or not check.is_preflight:
            raise NotFound(_("There is no such preflight of yours."))
        return so_far(check, PreflightCheckSerializer(check, context={"request": request}).data)


def own_check(check_id: UUID) -> ServerCheck | None:
    """The check, if whoever asks now may read it; overdue ones are given up before."""
    checks.give_up_the_overdue()
    actor = audit.present()
    return check_selectors.readable(check_id, name=actor.name, by_way_of=actor.by_way_of)


def accepted(told: Mapping[str, Any]) -> Response:
    """202 for a check that a worker makes."""
    return _to_be_asked_again(Response(told, 202, headers={"Location": told["url"]}))


def so_far(check: ServerCheck, told: Mapping[str, Any]) -> Response:
    """What is known of a check; it says when to ask again while it is open."""
    return _to_be_asked_again(Response(told)) if check.is_open else Response(told)


def _to_be_asked_again(answer: Response) -> Response:
    answer["Retry-After"] = str(SECONDS_BETWEEN_POLLS)
    return answer
