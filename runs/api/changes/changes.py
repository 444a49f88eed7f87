"""Changes in histories: those that were found, and what people decided about them."""

from typing import Any

import django_filters
from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.doors import ReadOnlyDoor
from runs.models import Change
from runs.selectors.histories import histories
from runs.services.changes import changes

DECISIONS = (Change.Decision.OPEN, Change.Decision.CONFIRMED, Change.Decision.DISMISSED)


class ChangeFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which changes."""

    campaign = django_filters.CharFilter("cell__campaign__slug", label="Slug of the campaign.")
    metric = django_filters.CharFilter("metric__name", label="Name of the metric.")
    kind = django_filters.ChoiceFilter(choices=Change.Kind.choices)
    decision = django_filters.ChoiceFilter(choices=Change.Decision.choices)


class ChangeRevisionSerializer(serializers.Serializer[Any]):
    """The first revision after the change."""

    sha = serializers.CharField()
    ref = serializers.CharField()
    url = serializers.CharField()


class ChangeSerializer(serializers.Serializer[Change]):
    """A step of a history's level, or the alarm of a single run.

    `ratio` is `after` / `before`, the medians of the levels; `run` the first run after the change,
    begun at `at`, and `revision` its revision, where it has one. A step lies from `earliest` to
    `latest` (commits, else days) in 95 of 100 cases; both are empty for alarms. `rules` is the
    version of the rules that judged it last. `decided_by` is null where later
    runs have decided.
    """

    id = serializers.IntegerField()
    campaign = serializers.CharField(source="cell.campaign.slug")
    metric = serializers.CharField(source="metric.name")
    unit = serializers.CharField(source="metric.unit")
    levels = serializers.DictField(source="cell.levels")
    kind = serializers.ChoiceField(choices=Change.Kind.choices)
    verdict = serializers.ChoiceField(choices=["faster", "slower", "different"])
    revision = ChangeRevisionSerializer(source="cell.revision", allow_null=True)
    run = serializers.IntegerField(source="run_id")
    at = serializers.DateTimeField(source="run.started_at", allow_null=True)
    ratio = serializers.FloatField()
    before = serializers.FloatField()
    after = serializers.FloatField()
    p_value = serializers.FloatField(allow_null=True)
    earliest = serializers.CharField()
    latest = serializers.CharField()
    rules = serializers.IntegerField()
    found_at = serializers.DateTimeField()
    decision = serializers.ChoiceField(choices=Change.Decision.choices)
    note = serializers.CharField()
    decided_by = serializers.CharField(source="decided_by.username", allow_null=True, default=None)
    decided_at = serializers.DateTimeField(allow_null=True)


class DecisionSerializer(serializers.Serializer[Any]):
    """What somebody says of a change; `open` takes it back."""

    decision = serializers.ChoiceField(choices=[(each.value, each.label) for each in DECISIONS])
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class ChangeDoor(ReadOnlyDoor[Change]):
    """Changes found in the histories of uploads. The newest first."""

    queryset = Change.objects.all()
    serializer_class = ChangeSerializer
    filterset_class = ChangeFilters

    def get_queryset(self) -> QuerySet[Change]:
        """With everything that a row shows."""
        return histories.all_changes()

    @extend_schema(
        request=DecisionSerializer,
        responses={200: ChangeSerializer},
        examples=[
            OpenApiExample(
                "Confirmed",
                {"decision": "confirmed", "note": "Reverted in 9c1d."},
                request_only=True,
            )
        ],
    )
    @action(detail=True, methods=["post"])
    def decision(self, request: Request, pk: str) -> Response:
        """Confirm or dismiss a change; later analyses keep the decision."""
        change = self.get_object()
        given = DecisionSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        by = request.user if isinstance(request.user, User) else None
        changes.decide(change=change, by=by, **given.validated_data)
        return Response(self.get_serializer(self.get_object()).data)
