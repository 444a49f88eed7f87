"""Measurements: one number a row, with the levels under which it was measured."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.access.selectors import projects
from runs.campaigns.filters import MeasurementFilters
from runs.campaigns.selectors import grids
from runs.cells.selectors import metrics, provenance
from runs.cells.selectors.provenance import Dispute, Place
from runs.models import Discrepancy, Measurement
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.models.runs import SUMMARY_REPEAT, Run
from runs.models.sources import WEIGHTS
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.pagination import PagesByRun
from runs.shared.api.shapes import shape

# Null for what no publication prints.
OF_PRINT: dict[str, Any] = {"read_only": True, "allow_null": True, "default": None}
REMARK = {"type": "string", "enum": ["derived", "not_measured"], "nullable": True}
SAID_BY = {
    "type": "string",
    "enum": ["printed", "derived", "not_measured"],
    "nullable": True,
}


DisputeSerializer = shape(
    Dispute,
    kind=serializers.ChoiceField(choices=Discrepancy.Kind.choices),
    weight=serializers.ChoiceField(choices=WEIGHTS),
)


class MeasurementSerializer(serializers.Serializer[Measurement]):
    """A measurement. `n` is how many repeats the value stands for, `statistic` what it is of them.

    `levels` has the version, the level of each factor, and the repeat where it is that of one.
    The rest is the provenance of a published figure, and null for others: its `source`, `table` and
    text as `printed`; its `place`; `said_by`: printed as a measurement, derived by the publication
    from other figures, or printed for what was not measured; whether it is `exact` by the
    publication's own words; its `conditions`: the constants of its campaign and the names of
    machine, system, software, configuration and topology, as far as printed; `recomputed`,
    BenchLab's own value where it follows from other printed figures; and `disputed`, each
    discrepancy that concerns it. Of a published figure `n` and `statistic` are null where the
    publication does not print them.
    """

    id = serializers.IntegerField()
    campaign = serializers.CharField(source="run.campaign.slug")
    run = serializers.IntegerField(source="run_id")
    levels = serializers.SerializerMethodField()
    metric = serializers.CharField(source="metric.name")
    value = serializers.FloatField()
    unit = serializers.CharField(source="metric.unit")
    n = serializers.SerializerMethodField()
    statistic = serializers.SerializerMethodField()
    origin = serializers.ChoiceField(source="run.origin", choices=Origin.choices)
    source = serializers.CharField(  # type: ignore[assignment]  # a field, not the base's own
        source="run.campaign.published.source.slug", allow_null=True, default=None
    )
    table = serializers.CharField(
        source="run.campaign.published.number", allow_null=True, default=None
    )
    printed = serializers.CharField(
        source="printed.text", allow_null=True, default=None
    )
    remark = serializers.SerializerMethodField()
    place = shape(Place)(source="provenance.place", **OF_PRINT)
    said_by = serializers.SerializerMethodField()
    exact = serializers.BooleanField(
        source="provenance.exact",
        help_text="Whether the publication calls it so.",
        **OF_PRINT,
    )
    conditions = serializers.DictField(source="provenance.conditions", **OF_PRINT)
    recomputed = serializers.FloatField(
        source="provenance.recomputed",
        help_text="What follows from other figures; else null.",
        **OF_PRINT,
    )
    disputed = DisputeSerializer(source="provenance.disputed", many=True, **OF_PRINT)

    def to_representation(self, instance: Measurement) -> dict[str, Any]:
        """Works the provenance out once for all its fields."""
        printed = getattr(instance, "printed", None)
        origin: Any = provenance.find_record(printed) if printed else None
        self._provenance = instance.provenance = origin  # type: ignore[attr-defined]
        return super().to_representation(instance)

    def get_levels(self, measurement: Measurement) -> dict[str, Any]:
        """The levels of the run."""
        levels = levels_of(measurement.run)
        if metrics.stands_for_repeats(measurement):
            levels.pop("repeat", None)
        return levels

    @extend_schema_field(REMARK)
    def get_remark(self, _measurement: Measurement) -> str | None:
        """`said_by` where it is not plainly printed: the older field for the same."""
        said_by = self._provenance.said_by if self._provenance else None
        return None if said_by == "printed" else said_by

    def get_n(self, measurement: Measurement) -> int | None:
        """How many repeats; null where a publication does not print it."""
        return self._provenance.n if self._provenance else measurement.n

    @extend_schema_field({"type": "string", "enum": Statistic.values, "nullable": True})
    def get_statistic(self, measurement: Measurement) -> str | None:
        """What the value is of them; null where a publication does not print it."""
        return self._provenance.statistic if self._provenance else measurement.statistic

    @extend_schema_field(SAID_BY)
    def get_said_by(self, _measurement: Measurement) -> str | None:
        """Who says it."""
        return self._provenance.said_by if self._provenance else None


@addresses.door(
    {
        "measurement-detail": addresses.reading(),
        "measurement-list": addresses.reading(),
    }
)
class MeasurementDoor(ReadOnlyDoor[Measurement]):
    """Measurements: the numbers of finished runs, each with its levels. The newest runs first."""

    pagination_class = PagesByRun
    queryset = metrics.listed()
    serializer_class = MeasurementSerializer
    filterset_class = MeasurementFilters

    def newest(self, rows: QuerySet[Measurement], number: int) -> QuerySet[Measurement]:
        """Those of a publication are not behind others: `readable` is quicker."""
        is_published = self.request.query_params.get("source")
        return (
            self.readable(rows)[:number]
            if is_published
            else super().newest(rows, number)
        )

    def readable(self, rows: QuerySet[Measurement]) -> QuerySet[Measurement]:
        """Without the campaigns of a publication's runs, which come separately."""
        if not self.request.query_params.get("source"):
            return super().readable(rows)
        return rows.exclude(
            run__campaign__in=projects.hidden_campaigns(reader(self.request))
        )


def levels_of(run: Run) -> dict[str, Any]:
    """The levels of a run's cell with its version and repeat, as far as it has them."""
    levels = dict(run.cell.levels)
    if run.origin != Origin.PUBLISHED:
        return {**levels, "version": grids.version_of(run.cell), "repeat": run.repeat}
    # A publication's own word for a version stays, and what it has not printed stays unknown.
    if run.cell.version:
        levels.setdefault("version", run.cell.version)
    return levels if run.repeat == SUMMARY_REPEAT else {**levels, "repeat": run.repeat}
