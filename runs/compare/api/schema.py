"""The comparison in the API: parameters, the answer as its serializers dump it, and an example."""

from typing import Any

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema_field
from rest_framework import serializers

from runs.analysis.inference import VERDICTS
from runs.compare.selectors.address.head_and_base import Side
from runs.compare.selectors.answers import AnswerRow, ComparisonAnswer, Figure
from runs.compare.selectors.describe.verdict_words import REASONS, TABLES, ErrorRow
from runs.compare.selectors.judge.gate_answers import BECAUSE
from runs.models import Metric
from runs.shared.api.answers import AnswerSerializer
from runs.shared.api.examples import EXAMPLES
from runs.shared.api.shapes import (
    ChangeRevisionSerializer,
    JudgedSerializer,
    computed,
    shape,
)

Shape = serializers.Serializer[Any]
FIGURES = ("n", "median", "minimum", "maximum", "mean")
SIZE = "How large the difference is, as an interval in words."


class SideRevisionSerializer(ChangeRevisionSerializer):
    """The revision of a side."""


class SideSerializer(Shape):
    """One side as it was named, and what it is."""

    selection = serializers.CharField(source="text")
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not the base's own
    campaign = serializers.CharField(source="campaign.slug")
    url = serializers.SerializerMethodField()
    revision = SideRevisionSerializer(allow_null=True)

    def get_url(self, side: Side) -> str:
        """The page of its campaign."""
        page = reverse("campaign-detail", args=[side.campaign.slug])
        return str(self.context["request"].build_absolute_uri(page))


class SideSummarySerializer(Shape):
    """A metric over the repeats; `run` is the first of them."""

    n = serializers.IntegerField(allow_null=True)
    median = serializers.FloatField()
    minimum = serializers.FloatField()
    maximum = serializers.FloatField()
    mean = serializers.FloatField()
    run = serializers.IntegerField(allow_null=True)
    doubtful = serializers.IntegerField(
        help_text="How many runs are doubtful or invalid."
    )
    judged = JudgedSerializer()


def _summary(figure: Figure) -> dict[str, Any] | None:
    if figure.summary is None:
        return None
    judged = figure.runs.judged
    figures = {name: getattr(figure.summary, name) for name in FIGURES}
    runs_and_doubts = {
        "run": figure.runs.first,
        "doubtful": judged.doubtful + judged.invalid,
    }
    return {**figures, **runs_and_doubts, "judged": judged.counts}


class ReasonSerializer(Shape):
    """A stable code, and the same in words."""

    code = serializers.CharField(source="*")
    message = computed(serializers.CharField, lambda code: str(REASONS.get(code, code)))


class VerdictRowSerializer(Shape):
    """A metric under the levels that both sides share.

    `base_value` and `head_value` are what the model says of both sides, and `ratio` is head / base
    of them. `low` and `high` bound it so that the rows hold together in 95 of 100 tables; the
    adjusted p-value is below 0.05 exactly where they exclude 1. `more_rounds` is about how many
    further runs a side would decide an undecided row. A row that does not count is of a condition
    that the base lacks.
    """

    levels = serializers.DictField()
    metric = serializers.CharField(source="metric.name")
    unit = serializers.CharField(source="metric.unit")
    direction = serializers.ChoiceField(
        source="metric.direction", choices=Metric.Direction.choices
    )
    base = serializers.SerializerMethodField()
    head = serializers.SerializerMethodField()
    base_value = serializers.FloatField(
        source="result.inference.base_value", allow_null=True
    )
    head_value = serializers.FloatField(
        source="result.inference.head_value", allow_null=True
    )
    ratio = serializers.FloatField(source="result.inference.ratio", allow_null=True)
    low = serializers.FloatField(source="result.inference.low", allow_null=True)
    high = serializers.FloatField(source="result.inference.high", allow_null=True)
    p_value = serializers.FloatField(source="result.inference.p_value", allow_null=True)
    adjusted_p_value = serializers.FloatField(
        source="result.inference.adjusted_p_value", allow_null=True
    )
    verdict = serializers.ChoiceField(
        source="result.inference.verdict", choices=VERDICTS
    )
    size = computed(serializers.CharField, lambda row: row.result.size, SIZE)
    more_rounds = serializers.IntegerField(
        source="result.inference.more_rounds", allow_null=True
    )
    base_jobs = serializers.IntegerField(
        source="result.inference.base_jobs",
        allow_null=True,
        help_text="Jobs compared, where other jobs measured the sides.",
    )
    head_jobs = serializers.IntegerField(
        source="result.inference.head_jobs", allow_null=True
    )
    rules = serializers.IntegerField(
        source="result.inference.rules",
        help_text="The version of the rules of judging.",
    )
    reasons = ReasonSerializer(source="result.inference.reasons", many=True)
    despite = ReasonSerializer(source="result.inference.despite", many=True)
    counts = serializers.BooleanField()

    @extend_schema_field(SideSummarySerializer(allow_null=True))
    def get_base(self, row: AnswerRow) -> Any:
        """Null where the base has none."""
        return _summary(row.base)

    @extend_schema_field(SideSummarySerializer(allow_null=True))
    def get_head(self, row: AnswerRow) -> Any:
        """Null where the head has none."""
        return _summary(row.head)


class AverageSerializer(Shape):
    """The mean effect of a metric over all rows that the campaign measured on both sides.

    Left out where a row has no interval, or is not comparable, and where there is only one.
    """

    metric = serializers.CharField()
    ratio = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    verdict = serializers.ChoiceField(choices=VERDICTS)
    size = serializers.CharField(help_text=SIZE)
    rules = serializers.IntegerField(help_text="The version of the rules of judging.")


class ToldSerializer(Shape):
    """What a CI job was told to the same question before, where today's words are others.

    `because` is `runs` (added or withdrawn since), `rules` (a newer version) or `history` (what is
    known of it has changed).
    """

    given_at = serializers.DateTimeField()
    overall = serializers.ChoiceField(choices=VERDICTS)
    exit_code = serializers.IntegerField()
    rules = serializers.IntegerField()
    because = serializers.ChoiceField(choices=[*BECAUSE])
    message = serializers.CharField(source="text")


class ComparisonSerializer(Shape):
    """The table, and what it says as a whole."""

    overall = serializers.ChoiceField(
        source="verdict", choices=[*VERDICTS, "baseline_made"]
    )
    exit_code = serializers.IntegerField(
        help_text="0 no regression, 1 slower, 2 undecided, 3 not comparable.",
        min_value=0,
        max_value=3,
    )
    message = computed(serializers.CharField, lambda answer: answer.headline)
    sentences = serializers.ListField(
        child=serializers.CharField(),
        help_text="What follows, the most important first.",
    )
    notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What it rests on, and where a loss began.",
    )
    effect = serializers.FloatField(help_text="The minimum effect in percent.")
    base = SideSerializer(
        allow_null=True,
        help_text="null where the head is the first: overall is baseline_made.",
    )
    head = SideSerializer()
    together = serializers.SerializerMethodField()
    rows = VerdictRowSerializer(many=True)
    error_row = shape(ErrorRow, table=serializers.ChoiceField(choices=[*TABLES]))(
        allow_null=True
    )
    told_before = serializers.SerializerMethodField()
    answer = AnswerSerializer(source="*", read_only=True)

    @extend_schema_field(AverageSerializer(many=True))
    def get_together(self, answer: ComparisonAnswer) -> Any:
        """By metric."""
        averages = [
            {
                **vars(whole_answer.result.inference),
                "metric": whole_answer.metric.name,
                "size": whole_answer.result.size,
            }
            for whole_answer in answer.wholes
        ]
        return AverageSerializer(averages, many=True).data

    @extend_schema_field(ToldSerializer(many=True))
    def get_told_before(self, answer: ComparisonAnswer) -> Any:
        """What CI jobs were told otherwise."""
        return ToldSerializer(answer.earlier, many=True).data


SIDE = (
    "campaign:<slug> (of uploads the newest revision; campaign:<slug>~clients=8 fixes a level), "
    "revision:<sha, its beginning, branch or tag> within `campaign`, or run:<id>, which stands "
    "for all repeats of that run."
)


COMPARE: dict[str, Any] = {
    "operation_id": "compare_retrieve",
    "parameters": [
        OpenApiParameter(
            "base",
            description=f"{SIDE} A branch stands for the commit on it that the head comes from, "
            "never for the head itself. Left out: the revision before the head.",
        ),
        OpenApiParameter(
            "head", description=f"{SIDE} Left out: the campaign's newest revision."
        ),
        OpenApiParameter(
            "campaign", description="Slug of the campaign that has the revisions."
        ),
        OpenApiParameter(
            "metric",
            many=True,
            description="Name of a metric; without one all of which an end is better.",
        ),
        OpenApiParameter(
            "level",
            many=True,
            description="A condition that is fixed, such as clients=8.",
        ),
        OpenApiParameter(
            "effect", OpenApiTypes.DOUBLE, description="Percent; 3 by default."
        ),
        OpenApiParameter(
            "ignore", description="hardware, environment or both: may differ."
        ),
        OpenApiParameter(
            "format", enum=["json", "md"], description="md for a pull request."
        ),
    ],
    "responses": {
        (200, "application/json"): ComparisonSerializer,
        (200, "text/markdown"): OpenApiTypes.STR,
    },
    "examples": [
        OpenApiExample(
            "Slower",
            EXAMPLES["comparison"],
            response_only=True,
            media_type="application/json",
        )
    ],
}
