"""Campaigns: a list with the states of their runs, and one with its cells."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import asker, person, project_of, reader
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.campaigns.api.drafts import CampaignDraftSerializer
from runs.campaigns.api.extras import EXTRAS, CampaignExtras
from runs.campaigns.filters import CampaignFilters
from runs.campaigns.selectors import answers, campaigns, sentences
from runs.campaigns.selectors.campaigns import CampaignRow
from runs.campaigns.services import campaigns as campaign_service
from runs.campaigns.services import kept_verdicts, repeats
from runs.campaigns.services.campaign_limits import HIGHEST_PRIORITY
from runs.campaigns.services.kept_verdicts import Verdicts
from runs.cells.selectors.series_cells import CONFIGURATION
from runs.histories.api.histories import ExpectedSerializer, expect
from runs.models import Campaign, Cell, CellSummary
from runs.models.campaigns import Origin
from runs.shared.api import doors
from runs.shared.api.answers import AnswerSerializer
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.shapes import JudgedSerializer, computed


class CampaignSerializer(serializers.Serializer[CampaignRow]):
    """A campaign in a list. `runs` has the number of runs in each state that occurs."""

    slug = serializers.CharField(source="campaign.slug")
    title = serializers.CharField(source="campaign.title")
    origin = serializers.ChoiceField(source="campaign.origin", choices=Origin.choices)
    state = serializers.ChoiceField(
        source="campaign.state", choices=Campaign.State.choices
    )
    scenario = serializers.CharField(source="campaign.scenario.slug")
    is_paused = computed(
        serializers.BooleanField, lambda row: row.campaign.paused_at is not None
    )
    priority = serializers.IntegerField(source="campaign.priority")
    runs = serializers.DictField(source="run_counts", child=serializers.IntegerField())
    created_at = serializers.DateTimeField(source="campaign.created_at")
    url = serializers.HyperlinkedRelatedField[Campaign](
        "api:campaign-detail", source="campaign", lookup_field="slug", read_only=True
    )


class CellSummarySerializer(serializers.Serializer[CellSummary]):
    """A metric over the finished repeats of a cell."""

    metric = serializers.CharField(source="metric.name")
    unit = serializers.CharField(source="metric.unit")
    direction = serializers.CharField(source="metric.direction")
    n = serializers.IntegerField(allow_null=True)
    median = serializers.FloatField()
    minimum = serializers.FloatField()
    maximum = serializers.FloatField()
    mean = serializers.FloatField()


class CellSerializer(serializers.Serializer[Cell]):
    """A combination of levels, and what its repeats gave."""

    levels = serializers.DictField()
    version = serializers.CharField()
    summaries = CellSummarySerializer(many=True)
    judged = JudgedSerializer(help_text="How many of its runs have each judgement.")
    is_machine_taken = serializers.BooleanField(
        help_text="Whether most of its runs are invalid, so that there is no answer about it."
    )


class CampaignDetailSerializer(CampaignSerializer):
    """A campaign with its cells. `repeats` is null where a publication does not print them."""

    question = serializers.CharField(source="campaign.question")
    factors = serializers.DictField(
        source="campaign.factors", child=serializers.ListField()
    )
    parameters = serializers.DictField(source="campaign.parameters")
    treatment = serializers.DictField(source="campaign.treatment")
    repeats = serializers.IntegerField(source="campaign.known_repeats", allow_null=True)
    seed = serializers.IntegerField(source="campaign.seed")
    most_attempts = serializers.IntegerField(source="campaign.most_attempts")
    topology = serializers.CharField(
        source="campaign.topology.slug", allow_null=True, default=None
    )
    configuration = serializers.CharField(
        source="campaign.configuration.slug", allow_null=True, default=None
    )
    configurations = serializers.SerializerMethodField()
    reproduces = serializers.CharField(source="campaign.reproduces")
    expected_every = serializers.SerializerMethodField()
    tracked_ref = serializers.CharField(source="campaign.tracked_ref")
    cells = computed(
        serializers.ListField,
        lambda row: campaigns.cells_in_full(row.campaign),
        child=CellSerializer(),
    )
    summary = serializers.SerializerMethodField()
    answer = serializers.SerializerMethodField()

    @extend_schema_field(AnswerSerializer(allow_null=True))
    def get_answer(self, row: CampaignRow) -> Any:
        """What its page says first, with its interval; null where `summary` is."""
        if kept_verdicts.is_wide(row.run_counts) and kept_verdicts.latest(
            row.campaign.pk
        ):
            return None
        return AnswerSerializer(answers.read_answer(row.campaign)).data

    def get_summary(self, row: CampaignRow) -> list[str] | None:
        """What its page says first: a sentence for each two things that it compares.

        Null while control makes those of a campaign of more than 10,000 runs.
        """
        if kept_verdicts.is_wide(row.run_counts) and (
            latest := kept_verdicts.latest(row.campaign.pk)
        ):
            return (
                list(Verdicts(*latest.value).sentences) if latest.is_current else None
            )
        return sentences.list_sentences(row.campaign)

    def get_configurations(self, row: CampaignRow) -> list[str]:
        """The slugs of all configurations, the baseline first."""
        configuration = row.campaign.configuration
        return (
            [configuration.slug]
            if configuration
            else list(row.campaign.factors.get(CONFIGURATION, ()))
        )

    def get_expected_every(self, row: CampaignRow) -> float | None:
        """Seconds within which uploads are expected."""
        every = row.campaign.expected_every
        return None if every is None else every.total_seconds()


class PrioritySerializer(serializers.Serializer[Any]):
    """A place among the campaigns that wait for a server."""

    priority = serializers.IntegerField(
        min_value=-HIGHEST_PRIORITY, max_value=HIGHEST_PRIORITY
    )


class RoundsSerializer(serializers.Serializer[Any]):
    """How many more rounds, a run of each cell each."""

    rounds = serializers.IntegerField(min_value=1)


@addresses.door(
    {
        "campaign-annotations": addresses.reading(post=Right.ANNOTATE),
        "campaign-cancel": addresses.acting(post=Right.QUEUE),
        "campaign-detail": addresses.reading(patch=Right.EXPECT),
        "campaign-list": addresses.reading(post=Right.QUEUE),
        "campaign-pause": addresses.acting(post=Right.QUEUE),
        "campaign-plan": addresses.reading(),
        "campaign-priority": addresses.acting(post=Right.PRIORITISE),
        "campaign-reproduction": addresses.reading(),
        "campaign-resume": addresses.acting(post=Right.QUEUE),
        "campaign-retry": addresses.acting(post=Right.QUEUE),
        "campaign-rounds": addresses.acting(post=Right.QUEUE),
        "campaign-await": addresses.acting(post=Right.QUEUE),
    }
)
class CampaignDoor(CampaignExtras, ReadOnlyDoor[Campaign]):
    """Campaigns: what was asked, of which versions, and how far it is. The newest first."""

    queryset = campaigns.listed()
    serializer_class = CampaignSerializer
    detail_serializer_class = CampaignDetailSerializer
    lookup_field = "slug"
    filterset_class = CampaignFilters

    def get_queryset(self) -> QuerySet[Campaign]:
        """With what is shown of a single campaign."""
        is_shown = self.detail and self.action not in EXTRAS
        return campaigns.shown() if is_shown else campaigns.listed()

    def prepared(self, campaign_list: Sequence[Campaign]) -> Sequence[CampaignRow]:
        """Campaigns with their runs counted."""
        return campaigns.rows(campaign_list)

    @extend_schema(request=CampaignDraftSerializer)
    def create(self, request: Request) -> Response:
        """Queue a campaign. Its runs begin as soon as the server is free."""
        body = doors.taken(CampaignDraftSerializer, request)
        project, design = project_of(request, Right.QUEUE), body.design()
        if design.draft.priority:
            permissions.require(reader(request), Right.PRIORITISE, project)
        campaign = campaign_service.queue(
            design=design, by=person(request), project=project
        )
        return self.shown(
            campaigns.shown().get(pk=campaign.pk), status.HTTP_201_CREATED
        )

    @extend_schema(request=ExpectedSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Say how often uploads are expected, and of which branch the history is."""
        expect(request, self.get_object())
        return self.shown()

    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, slug: str) -> Response:
        """Cancel what has not ended; finished runs stay."""
        return self.acted(campaign_service.cancel, by=asker(request))

    @action(detail=True, methods=["post"])
    def pause(self, request: Request, slug: str) -> Response:
        """Let no further run begin; the one in progress ends as usual."""
        return self.acted(campaign_service.pause)

    @action(detail=True, methods=["post"])
    def resume(self, request: Request, slug: str) -> Response:
        """Let runs begin again."""
        return self.acted(campaign_service.resume)

    @action(detail=True, methods=["post"])
    def retry(self, request: Request, slug: str) -> Response:
        """Queue every run again that failed, errored or was cancelled, as its next attempt."""
        return self.acted(campaign_service.retry, by=asker(request))

    @extend_schema(request=RoundsSerializer)
    @action(detail=True, methods=["post"])
    def rounds(self, request: Request, slug: str) -> Response:
        """Queue more rounds of an ended campaign that leaves something undecided."""
        return self.acted(repeats.add_rounds, RoundsSerializer)

    @action(detail=True, methods=["post"], url_path="await", url_name="await")
    def await_quiet(self, request: Request, slug: str) -> Response:
        """Measure the invalid runs again, each when other programs leave its machine alone."""
        return self.acted(repeats.await_quiet)

    @extend_schema(request=PrioritySerializer)
    @action(detail=True, methods=["post"])
    def priority(self, request: Request, slug: str) -> Response:
        """Change which campaigns go first on a server: the highest, then the oldest."""
        return self.acted(campaign_service.prioritise, PrioritySerializer)
