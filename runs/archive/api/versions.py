"""The answer from one PostgreSQL version to another, with every step between them."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.archive.selectors import version_answers, version_line
from runs.archive.selectors.version_answers import Step, VersionAnswer
from runs.shared.api import doors
from runs.shared.api.answers import AnswerSerializer
from runs.shared.api.doors import QueryDoor

LONGEST = 9  # digits of a number of clients
STATES = version_answers.RANK


class StepSerializer(serializers.Serializer[Step]):
    """From one version to another: what is said, and who says so.

    `state` is `decided` (tested), `printed` (a publication without the spread), `undecided`,
    `words` (printed as a picture) or `unknown`. `ratio` is head / base, by what is
    surest and newest. Where several tables print it and nothing was tested, `printed_ratios` has
    each one's, and `short` says from the least to the greatest.
    """

    base = serializers.CharField()
    head = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    ratio = serializers.FloatField(
        source="best.found.ratio", allow_null=True, default=None
    )
    low = serializers.FloatField(source="best.found.low", allow_null=True, default=None)
    high = serializers.FloatField(
        source="best.found.high", allow_null=True, default=None
    )
    verdict = serializers.CharField(
        source="best.found.verdict", allow_null=True, default=None
    )
    clients = serializers.IntegerField(
        source="best.clients", allow_null=True, default=None
    )
    printed_ratios = serializers.ListField(child=serializers.FloatField())
    short = serializers.CharField()
    basis = serializers.CharField()
    campaign = serializers.CharField(
        source="campaign.slug", allow_null=True, default=None
    )


class VersionAnswerSerializer(serializers.Serializer[VersionAnswer]):
    """What is known of `head` against `base`, and of each step between them."""

    theme = serializers.ChoiceField(choices=tuple(version_answers.LOADS))
    clients = serializers.IntegerField(allow_null=True)
    base = serializers.CharField()
    head = serializers.CharField()
    question = serializers.CharField()
    answer = serializers.SerializerMethodField()
    details = serializers.ListField(child=serializers.CharField())
    steps = StepSerializer(many=True)

    @extend_schema_field(AnswerSerializer)
    def get_answer(self, found: VersionAnswer) -> Any:
        """What the page of versions says."""
        return AnswerSerializer(found).data


@addresses.door(
    {
        "version-answer": addresses.reading(),
    }
)
class VersionDoor(QueryDoor):
    """The line through versions."""

    parameters = ("theme", "from", "to", "clients")

    @extend_schema(
        operation_id="versions_retrieve",
        parameters=[
            OpenApiParameter("theme", enum=tuple(version_answers.LOADS)),
            OpenApiParameter(
                "from", description="A major version: 13.", enum=version_line.MAJORS
            ),
            OpenApiParameter(
                "to", description="A newer one: 17.", enum=version_line.MAJORS
            ),
            OpenApiParameter(
                "clients", int, description="Without it, where both versions do most."
            ),
        ],
        responses=VersionAnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Say what is known from one version to another, and of each step between them."""
        query = request.query_params
        theme = query.get("theme", version_line.READ)
        if theme not in version_answers.LOADS:
            load_names = ", ".join(version_answers.LOADS)
            message = _("There is no such line; known are: %(known)s.") % {
                "known": load_names
            }
            raise doors.refuse("theme", "invalid_choice", message)
        base, head = _major(query, "from"), _major(query, "to")
        if base and head and not version_answers.is_upwards(base, head):
            raise doors.refuse(
                "to", "invalid", _("Give a version that is newer than “from”.")
            )
        used = version_line.used(theme, to=reader(request))
        line = version_line.read(used, clients=_clients(query))
        version_answer = version_answers.answer(line, theme, base=base, head=head)
        return Response(VersionAnswerSerializer(version_answer).data)


def _major(query: Any, name: str) -> str:
    major = str(query.get(name, ""))
    if major and major not in version_line.MAJORS:
        major_names = ", ".join(version_line.MAJORS)
        message = _("There is no such version; known are: %(known)s.") % {
            "known": major_names
        }
        raise doors.refuse(name, "invalid_choice", message)
    return major


def _clients(query: Any) -> int | None:
    text = str(query.get("clients", ""))
    if not text:
        return None
    if not text.isdecimal() or len(text) > LONGEST or int(text) == 0:
        raise doors.refuse("clients", "invalid", _("Give a whole number of clients."))
    return int(text)
