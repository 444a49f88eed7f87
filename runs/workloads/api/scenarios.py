"""Scenarios: what each varies, keeps and measures."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.models import Scenario
from runs.scenarios.definition import AnyFactor, Parameter, Quick
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.shapes import computed, shape
from runs.tools.metrics import Metric
from runs.workloads.filters import ScenarioFilters
from runs.workloads.selectors import scenarios
from runs.workloads.selectors.scenarios import ScenarioRow

Shape = serializers.Serializer[Any]
DIRECTION = serializers.CharField(
    help_text="higher, lower or neutral: which is better."
)
LEVELS = {
    "type": "array",
    "items": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
}


class ScenarioSerializer(serializers.Serializer[ScenarioRow]):
    """A scenario in a list. Those that are not `runnable` are known as data only."""

    slug = serializers.CharField(source="scenario.slug")
    title = serializers.CharField(source="scenario.title")
    description = serializers.CharField(source="scenario.description")
    runnable = serializers.BooleanField(source="scenario.runnable")
    campaigns = serializers.IntegerField(
        help_text="Number of campaigns that the reader may see."
    )
    url = serializers.HyperlinkedRelatedField[Scenario](
        "api:scenario-detail", source="scenario", lookup_field="slug", read_only=True
    )


class FactorSerializer(Shape):
    """What a campaign varies besides the version: numbers within bounds, `choices`, or names."""

    name = serializers.CharField()
    title = serializers.CharField()
    default = serializers.SerializerMethodField("levels_of_new_campaigns")
    minimum = serializers.IntegerField(allow_null=True, default=None)
    maximum = serializers.IntegerField(allow_null=True, default=None)
    choices = computed(
        serializers.ListField,
        lambda factor: list(getattr(factor, "choices", ())),
        help_text="The levels that there are; empty where numbers or names are.",
        child=serializers.CharField(),
    )

    @extend_schema_field(LEVELS)
    def levels_of_new_campaigns(self, factor: AnyFactor) -> list[int | str]:
        """The levels that a new campaign has."""
        return list(factor.default)


class QuickSerializer(Shape):
    """The form that takes a minute or two on two cores; what it does not name has its default."""

    parameters = serializers.DictField(child=serializers.IntegerField())
    levels = serializers.SerializerMethodField()
    repeats = serializers.IntegerField()

    @extend_schema_field({"type": "object", "additionalProperties": LEVELS})
    def get_levels(self, quick: Quick) -> dict[str, list[int | str]]:
        """The levels of each factor that it names."""
        return {name: list(levels) for name, levels in quick.levels.items()}


class ScenarioDetailSerializer(ScenarioSerializer):
    """A scenario with all that a draft of a campaign may say; null and empty for data only."""

    source = serializers.CharField(  # type: ignore[assignment]  # a field, not the base's own
        source="definition.source", allow_null=True, default=None
    )
    writes = serializers.BooleanField(
        source="definition.writes",
        allow_null=True,
        default=None,
        help_text="Whether a run changes the data, and gets a fresh cluster.",
    )
    primary_metric = serializers.CharField(
        source="definition.primary_metric", allow_null=True, default=None
    )
    factors = FactorSerializer(source="definition.factors", many=True, default=())
    parameters = shape(Parameter, "What a campaign keeps constant.", ("help", "zero"))(
        source="definition.parameters", many=True, default=()
    )
    metrics = shape(Metric, direction=DIRECTION)(
        source="definition.metrics", many=True, default=()
    )
    quick = QuickSerializer(source="definition.quick", allow_null=True, default=None)


@addresses.door(
    {
        "scenario-detail": addresses.reading(),
        "scenario-list": addresses.reading(),
    }
)
class ScenarioDoor(ReadOnlyDoor[Scenario]):
    """Scenarios: procedures that BenchLab runs, or knows as data only. The newest first."""

    queryset = Scenario.objects.all()
    listed = staticmethod(scenarios.listed)
    serializer_class = ScenarioSerializer
    detail_serializer_class = ScenarioDetailSerializer
    lookup_field = "slug"
    filterset_class = ScenarioFilters

    def prepared(self, scenario_list: Sequence[Any]) -> Sequence[ScenarioRow]:
        """Scenarios with their campaigns counted."""
        return scenarios.rows(scenario_list, to=reader(self.request))
