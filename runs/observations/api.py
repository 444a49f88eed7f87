"""Observations: designs that come back, their editions, and what the newest says."""

from functools import cached_property
from typing import Any, cast

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import person, project_of
from runs.access.selectors.permission_table import Right
from runs.campaigns.api.drafts import ConfigurationField, LevelField
from runs.campaigns.services.campaign_limits import (
    LONGEST_SLICE_SECONDS,
    MOST_REPEATS,
    REPEATS,
)
from runs.models import Edition, Observation, Server
from runs.models.observations import Releases
from runs.observations.selectors import answers, editions
from runs.observations.selectors.answers import EditionAnswer
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan
from runs.scenarios import registry
from runs.shared.api import doors
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.parsing import StrictSerializer
from runs.shared.api.shapes import shape

AnswerSerializer = shape(EditionAnswer)


class EditionSerializer(serializers.Serializer[Edition]):
    """An edition: its campaigns, one of each design, and people's words."""

    edition = serializers.CharField(source="label")
    created_at = serializers.DateTimeField()
    campaigns = serializers.SerializerMethodField()
    purpose = serializers.CharField()
    discussion = serializers.CharField()
    conclusion = serializers.CharField()
    history = serializers.CharField()
    licence = serializers.CharField()

    def get_campaigns(self, edition: Edition) -> list[str]:
        """Their slugs."""
        return list(edition.campaigns.order_by("pk").values_list("slug", flat=True))


class ObservationSerializer(serializers.Serializer[Observation]):
    """An observation in a list, the newest edition last."""

    slug = serializers.CharField()
    title = serializers.CharField()
    server = serializers.CharField(source="server.slug")
    anchor = serializers.CharField()
    versions = serializers.ListField(child=serializers.CharField())
    releases = serializers.CharField()
    editions = serializers.SerializerMethodField()

    def get_editions(self, observation: Observation) -> list[str]:
        """What they are called, in their order."""
        editions = sorted(observation.editions.all(), key=lambda edition: edition.pk)
        return [edition.label for edition in editions]


class ObservationDetailSerializer(ObservationSerializer):
    """An observation with its newest edition, null before the first."""

    newest = serializers.SerializerMethodField()
    summary = serializers.SerializerMethodField()
    answer = serializers.SerializerMethodField()

    @extend_schema_field(EditionSerializer(allow_null=True))
    def get_newest(self, observation: Observation) -> dict[str, Any] | None:
        """The newest edition."""
        newest = _newest(observation)
        return EditionSerializer(newest).data if newest else None

    @cached_property
    def _said(self) -> EditionAnswer | None:
        """The answer of the newest edition; it takes twenty queries a scenario."""
        newest = _newest(cast(Observation, self.instance))
        return answers.answer_edition(newest) if newest else None

    def get_summary(self, _observation: Observation) -> list[str]:
        """The sentences of the answer."""
        return list(self._said.sentences) if self._said else []

    @extend_schema_field(AnswerSerializer(allow_null=True))
    def get_answer(self, _observation: Observation) -> dict[str, Any] | None:
        """What the page and the report of the newest edition say; null before the first."""
        return AnswerSerializer(self._said).data if self._said else None


class DesignSerializer(StrictSerializer):
    """What one scenario measures in each edition."""

    scenario = serializers.CharField(max_length=120)
    levels = serializers.DictField(child=serializers.ListField(child=LevelField()))
    parameters = serializers.DictField(child=serializers.IntegerField(min_value=0))
    repeats = serializers.IntegerField(
        min_value=1, max_value=MOST_REPEATS, default=REPEATS
    )
    slice_seconds = serializers.IntegerField(
        min_value=1,
        max_value=LONGEST_SLICE_SECONDS,
        default=None,
        allow_null=True,
        help_text="Measure the cells of a round in turn, in slices of so many seconds.",
    )

    def validate_scenario(self, slug: str) -> str:
        """One that BenchLab can run."""
        slugs = [scenario.slug for scenario in registry.every()]
        if slug not in slugs:
            raise serializers.ValidationError(", ".join(slugs), "unknown_scenario")
        return slug


class NewObservationSerializer(StrictSerializer):
    """An observation to be made. `hours`, if given, decides the repeats."""

    title = serializers.CharField(max_length=150)
    server = serializers.SlugRelatedField(
        slug_field="slug", queryset=Server.objects.exclude(base_dir="")
    )
    designs = DesignSerializer(many=True, allow_empty=False)
    versions = serializers.ListField(
        child=serializers.CharField(max_length=10), default=list
    )
    releases = serializers.ChoiceField(Releases.choices, default=Releases.ALIKE)
    anchor = serializers.CharField(max_length=10, default="")
    configuration = ConfigurationField()
    hours = serializers.FloatField(min_value=0.01, max_value=10_000, required=False)
    night_from = serializers.TimeField(required=False)
    night_until = serializers.TimeField(required=False)
    time_zone = serializers.CharField(max_length=60, default="UTC")

    def plan(self) -> Plan:
        """Only of a valid body."""
        fields = dict(self.validated_data)
        night = (fields.pop("night_from", None), fields.pop("night_until", None))
        designs = [
            Design(**fields_of_design) for fields_of_design in fields.pop("designs")
        ]
        return Plan(
            designs=designs, night=night if None not in night else None, **fields
        )


class NewEditionSerializer(StrictSerializer):
    """An edition to be queued; without a name it has that of its year."""

    edition = serializers.CharField(max_length=40, default="")


@addresses.door(
    {
        "observation-begin": addresses.acting(post=Right.QUEUE),
        "observation-detail": addresses.reading(),
        "observation-list": addresses.reading(post=Right.QUEUE),
    }
)
class ObservationDoor(ReadOnlyDoor[Observation]):
    """Observations: the same design again each year. The newest first."""

    queryset = Observation.objects.all()
    listed = staticmethod(editions.listed)
    serializer_class = ObservationSerializer
    detail_serializer_class = ObservationDetailSerializer
    filterset_class = None
    lookup_field = "slug"

    @extend_schema(request=NewObservationSerializer)
    def create(self, request: Request) -> Response:
        """Store what is observed. Nothing is queued before its first edition begins."""
        body = doors.taken(NewObservationSerializer, request)
        observation = observations.create(
            plan=body.plan(),
            by=person(request),
            project=project_of(request, Right.QUEUE),
        )
        return self.shown(
            self.get_queryset().get(pk=observation.pk), status.HTTP_201_CREATED
        )

    @extend_schema(
        request=NewEditionSerializer, responses={201: ObservationDetailSerializer}
    )
    @action(detail=True, methods=["post"])
    def begin(self, request: Request, slug: str) -> Response:
        """Queue the next edition: a campaign of each design over what is installed now."""
        body = doors.taken(NewEditionSerializer, request)
        observation = self.get_object()
        label = body.validated_data["edition"]
        observations.begin(observation=observation, by=person(request), label=label)
        return self.shown(status=status.HTTP_201_CREATED)


def _newest(observation: Observation) -> Edition | None:
    return max(observation.editions.all(), key=lambda edition: edition.pk, default=None)
