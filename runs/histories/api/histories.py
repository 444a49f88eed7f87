"""Histories: the points of each series over its revisions or days, with the changes found."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.cells.selectors import metrics, revisions
from runs.compare.selectors.address import head_and_base
from runs.compare.selectors.address.head_and_base import BadSide
from runs.histories.api.changes import ChangeSerializer
from runs.histories.selectors import answers, histories
from runs.histories.selectors.histories import Histories, History
from runs.histories.services import missing_uploads
from runs.models import Campaign, Metric
from runs.shared.api import doors
from runs.shared.api.answers import AnswerSerializer
from runs.shared.api.doors import QueryDoor
from runs.shared.api.examples import EXAMPLES
from runs.shared.api.parsing import StrictSerializer

LONGEST = 366 * 24 * 3600


class ExpectedSerializer(StrictSerializer):
    """What is given is changed, the rest stays."""

    expected_every = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LONGEST,
        help_text="Seconds; a longer gap between uploads is reported. Null: none are expected.",
    )
    tracked_ref = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="The branch that makes the history; empty for all revisions.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a change of nothing."""
        if not attrs:
            raise ValidationError(_("No change is given."), "required")
        return attrs


@transaction.atomic
def expect(request: Request, campaign: Campaign) -> None:
    """Keep what the request says. Raises ValidationError."""
    fields = doors.taken(ExpectedSerializer, request).validated_data
    # A branch that no run is of would empty the history.
    if (ref := fields.get("tracked_ref")) and not revisions.is_branch(campaign, ref):
        message = _("No run of the campaign is of the branch “%(ref)s”.") % {"ref": ref}
        raise ValidationError({"tracked_ref": [ErrorDetail(message, "unknown_ref")]})
    if "expected_every" in fields:
        seconds = fields["expected_every"]
        every = None if seconds is None else timedelta(seconds=seconds)
        missing_uploads.expect(campaign=campaign, every=every)
    if "tracked_ref" in fields:
        missing_uploads.track(campaign=campaign, ref=fields["tracked_ref"])


Shape = serializers.Serializer[Any]


class FigureField(serializers.FloatField):
    """More digits than any benchmark has would only be weight."""

    def to_representation(self, value: float) -> Any:
        """With seven."""
        return float(f"{value:.7g}")


class HistoryPointSerializer(Shape):
    """What was measured of a revision, or on a day (`revision` and `ref` are empty then)."""

    at = serializers.DateTimeField()
    revision = serializers.CharField(source="sha")
    ref = serializers.CharField()
    run = serializers.IntegerField(allow_null=True, help_text="The first run.")
    n = serializers.IntegerField()
    median = FigureField()
    minimum = FigureField()
    maximum = FigureField()


class HistorySeriesSerializer(Shape):
    """A history with all its points."""

    levels = serializers.DictField()
    total = serializers.SerializerMethodField(
        help_text="How many points this page has."
    )
    points = HistoryPointSerializer(many=True)
    changes = ChangeSerializer(many=True)

    def get_total(self, history: History) -> int:
        """All of them are there."""
        return len(history.points)


class HistorySerializer(Shape):
    """The histories of a metric; `more` were left out: choose some by `level`.

    Of long ones a page has the newest commits; `older` is the `skip` of the next page, or null.
    """

    campaign = serializers.CharField(source="campaign.slug")
    metric = serializers.CharField(
        source="metric.name", read_only=True, allow_null=True, default=None
    )
    unit = serializers.CharField(source="metric.unit", default="", read_only=True)
    direction = serializers.CharField(
        source="metric.direction", default="", read_only=True
    )
    ref = serializers.CharField()
    more = serializers.IntegerField()
    older = serializers.IntegerField(allow_null=True)
    series = HistorySeriesSerializer(many=True)
    answer = serializers.SerializerMethodField()

    @extend_schema_field(AnswerSerializer)
    def get_answer(self, found: Histories) -> Any:
        """What the page of the same series says."""
        return AnswerSerializer(answers.answer_histories(found)).data


@addresses.door(
    {
        "history": addresses.reading(),
    }
)
class HistoryDoor(QueryDoor):
    """The histories of a campaign of uploads."""

    parameters = ("campaign", "metric", "ref", "skip")
    repeatable = ("level",)

    @extend_schema(
        operation_id="history_retrieve",
        parameters=[
            OpenApiParameter(
                "campaign", required=True, description="Slug of the campaign."
            ),
            OpenApiParameter(
                "metric", description="Name; the campaign's first by default."
            ),
            OpenApiParameter(
                "level", many=True, description="A fixed level: clients=8."
            ),
            OpenApiParameter(
                "ref", description="A branch; the campaign's own by default."
            ),
            OpenApiParameter(
                "skip",
                int,
                description="So many of the newest commits of each are left out.",
            ),
        ],
        responses=HistorySerializer,
        examples=[OpenApiExample("Nightly", EXAMPLES["history"], response_only=True)],
    )
    def get(self, request: Request) -> Response:
        """Give the points over revisions, in the order of their commits, or over days (UTC)."""
        query = request.query_params
        if "campaign" not in query:
            raise doors.refuse("campaign", "required", _("Name the campaign."))
        levels = [doors.level(text) for text in query.getlist("level")]
        try:
            campaign = head_and_base.campaign_of(
                query["campaign"], reader=reader(request)
            )
        except BadSide as error:
            raise doors.refuse(error.parameter, error.code, error.message) from error
        metric = _metric(query["metric"], campaign) if "metric" in query else None
        histories_of_metric = histories.histories(
            campaign,
            metric=metric,
            levels=levels,
            ref=query.get("ref", ""),
            skip=doors.skipped(request, "older"),
        )
        return Response(HistorySerializer(histories_of_metric).data)


def _metric(name: str, campaign: Campaign) -> Metric:
    metric = metrics.named(name, campaign)
    if metric is None:
        message = _("There is no metric %(name)s.") % {"name": name}
        raise doors.refuse("metric", "unknown_metric", message)
    return metric
