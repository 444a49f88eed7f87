"""Campaigns: a list with the states of their runs, and one with its cells."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from runs.api.doors import ReadOnlyDoor
from runs.models import Campaign, Cell, CellSummary
from runs.models.campaigns import Origin
from runs.selectors import campaigns
from runs.selectors.campaigns import CampaignRow


class CampaignFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which campaigns."""

    origin = django_filters.ChoiceFilter(choices=Origin.choices)
    state = django_filters.ChoiceFilter(choices=Campaign.State.choices)
    scenario = django_filters.CharFilter("scenario__slug", label="Slug of the scenario.")


class CampaignSerializer(serializers.Serializer[CampaignRow]):
    """A campaign in a list. `runs` has the number of runs in each state that occurs."""

    slug = serializers.CharField(source="campaign.slug")
    title = serializers.CharField(source="campaign.title")
    origin = serializers.ChoiceField(source="campaign.origin", choices=Origin.choices)
    state = serializers.ChoiceField(source="campaign.state", choices=Campaign.State.choices)
    scenario = serializers.CharField(source="campaign.scenario.slug")
    runs = serializers.DictField(source="run_counts", child=serializers.IntegerField())
    created_at = serializers.DateTimeField(source="campaign.created_at")
    url = serializers.SerializerMethodField()

    def get_url(self, row: CampaignRow) -> str:
        """The address of the campaign in this API."""
        return reverse(
            "api:campaign-detail", args=[row.campaign.slug], request=self.context["request"]
        )


class CellSummarySerializer(serializers.Serializer[CellSummary]):
    """A metric over the finished repeats of a cell."""

    metric = serializers.CharField(source="metric.name")
    unit = serializers.CharField(source="metric.unit")
    direction = serializers.CharField(source="metric.direction")
    n = serializers.IntegerField()
    median = serializers.FloatField()
    minimum = serializers.FloatField()
    maximum = serializers.FloatField()
    mean = serializers.FloatField()


class CellSerializer(serializers.Serializer[Cell]):
    """A combination of levels, and what its repeats gave."""

    levels = serializers.DictField()
    version = serializers.CharField()
    summaries = CellSummarySerializer(many=True)


class CampaignDetailSerializer(CampaignSerializer):
    """A campaign with its cells."""

    question = serializers.CharField(source="campaign.question")
    factors = serializers.DictField(source="campaign.factors", child=serializers.ListField())
    parameters = serializers.DictField(source="campaign.parameters")
    repeats = serializers.IntegerField(source="campaign.repeats")
    seed = serializers.IntegerField(source="campaign.seed")
    topology = serializers.CharField(source="campaign.topology.slug", allow_null=True, default=None)
    configuration = serializers.CharField(
        source="campaign.configuration.slug", allow_null=True, default=None
    )
    cells = CellSerializer(source="campaign.cells", many=True)


class CampaignDoor(ReadOnlyDoor[Campaign]):
    """Campaigns: what was asked, of which versions, and how far it is. The newest first."""

    queryset = campaigns.listed()
    lookup_field = "slug"
    filterset_class = CampaignFilters

    def get_queryset(self) -> QuerySet[Campaign]:
        """With the cells for a single campaign."""
        return campaigns.with_cells() if self.detail else campaigns.listed()

    def get_serializer_class(self) -> Any:
        """More of a single campaign."""
        return CampaignDetailSerializer if self.detail else CampaignSerializer

    def paginate_queryset(self, queryset: Any) -> Any:
        """The page's campaigns with their runs counted."""
        page = super().paginate_queryset(queryset)
        return campaigns.rows(page or [])

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One campaign."""
        (row,) = campaigns.rows([self.get_object()])
        return Response(self.get_serializer(row).data)
