"""The comparison in OpenAPI: parameters, the shape of the answer, and an example."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework import serializers

from runs.analysis.inference import VERDICTS
from runs.api.changes import ChangeRevisionSerializer
from runs.api.examples import EXAMPLES
from runs.api.shapes import JudgedSerializer
from runs.models import Metric
from runs.selectors.compare.describe.verdict_words import TABLES
from runs.selectors.compare.judge.gate_answers import BECAUSE

Shape = serializers.Serializer[Any]


class SideRevisionSerializer(ChangeRevisionSerializer):
    """The revision of a side."""

    committed_at = serializers.DateTimeField(allow_null=True)


class SideSerializer(Shape):
    """One side as it was named, and what it is."""

    selection = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not the base's own
    campaign = serializers.CharField()
    url = serializers.CharField()
    revision = SideRevisionSerializer(allow_null=True)


class SideSummarySerializer(Shape):
    """A metric over the repeats; `run` is the first of them."""

    n = serializers.IntegerField(allow_null=True)
    median = serializers.FloatField()
    minimum = serializers.FloatField()
    maximum = serializers.FloatField()
    mean = serializers.FloatField()
    run = serializers.IntegerField(allow_null=True)
    doubtful = serializers.IntegerField(help_text="How many runs are doubtful or invalid.")
    judged = JudgedSerializer()


class ReasonSerializer(Shape):
    """A stable code, and the same in words."""

    code = serializers.CharField()
    message = serializers.CharField()


class VerdictRowSerializer(Shape):
    """A metric under the levels that both sides share.

    `base_value` and `head_value` are what the model says of both sides, and `ratio` is head / base
    of them. `low` and `high` bound it so that the rows hold together in 95 of 100 tables; the
    adjusted p-value is below 0.05 exactly where they exclude 1. `more_rounds` is about how many
    further runs a side would decide an undecided row. A row that does not count is of a condition
    that the base lacks.
    """

    levels = serializers.DictField()
    metric = serializers.CharField()
    unit = serializers.CharField()
    direction = serializers.ChoiceField(choices=Metric.Direction.choices)
    base = SideSummarySerializer(allow_null=True)
    head = SideSummarySerializer(allow_null=True)
    base_value = serializers.FloatField(allow_null=True)
    head_value = serializers.FloatField(allow_null=True)
    ratio = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    p_value = serializers.FloatField(allow_null=True)
    adjusted_p_value = serializers.FloatField(allow_null=True)
    verdict = serializers.ChoiceField(choices=VERDICTS)
    size = serializers.CharField(help_text="How large the difference is, as an interval in words.")
    more_rounds = serializers.IntegerField(allow_null=True)
    rules = serializers.IntegerField(help_text="The version of the rules of judging.")
    reasons = ReasonSerializer(many=True)
    despite = ReasonSerializer(many=True)
    counts = serializers.BooleanField()


class AverageSerializer(Shape):
    """The mean effect of a metric over all rows that the campaign measured on both sides.

    Left out where a row has no interval, or is not comparable, and where there is only one.
    """

    metric = serializers.CharField()
    ratio = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    verdict = serializers.ChoiceField(choices=VERDICTS)
    size = serializers.CharField(help_text="How large the difference is, as an interval in words.")
    rules = serializers.IntegerField(help_text="The version of the rules of judging.")


class ErrorRowSerializer(Shape):
    """The place of the error table of the documentation that applies.

    `rate` is the greatest share of simulated comparisons of what is the same with any wrong word.
    """

    table = serializers.ChoiceField(choices=[*TABLES])
    rows = serializers.IntegerField()
    n = serializers.IntegerField()
    rate = serializers.FloatField()


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
    message = serializers.CharField()


class ComparisonSerializer(Shape):
    """The table, and what it says as a whole."""

    overall = serializers.ChoiceField(choices=[*VERDICTS, "baseline_made"])
    exit_code = serializers.IntegerField(
        help_text="0 no regression, 1 slower, 2 undecided, 3 not comparable.",
        min_value=0,
        max_value=3,
    )
    message = serializers.CharField()
    effect = serializers.FloatField(help_text="The minimum effect in percent.")
    base = SideSerializer(
        allow_null=True, help_text="null where the head is the first: overall is baseline_made."
    )
    head = SideSerializer()
    together = AverageSerializer(many=True)
    rows = VerdictRowSerializer(many=True)
    error_row = ErrorRowSerializer(allow_null=True)
    told_before = ToldSerializer(many=True)


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
        OpenApiParameter("head", description=f"{SIDE} Left out: the campaign's newest revision."),
        OpenApiParameter("campaign", description="Slug of the campaign that has the revisions."),
        OpenApiParameter(
            "metric",
            many=True,
            description="Name of a metric; without one all of which an end is better.",
        ),
        OpenApiParameter(
            "level", many=True, description="A condition that is fixed, such as clients=8."
        ),
        OpenApiParameter("effect", OpenApiTypes.DOUBLE, description="Percent; 3 by default."),
        OpenApiParameter("ignore", description="hardware, environment or both: may differ."),
        OpenApiParameter("format", enum=["json", "md"], description="md for a pull request."),
    ],
    "responses": {
        (200, "application/json"): ComparisonSerializer,
        (200, "text/markdown"): OpenApiTypes.STR,
    },
    "examples": [
        OpenApiExample(
            "Slower", EXAMPLES["comparison"], response_only=True, media_type="application/json"
        )
    ],
}
