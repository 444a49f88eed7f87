"""Measurements: one number a row, with the levels under which it was measured."""

from typing import Any

import django_filters
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from runs.api.doors import ReadOnlyDoor
from runs.models import Measurement
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.models.runs import Run
from runs.selectors import grids, measurements, versions

IS_VERSION = RegexValidator(
    r"^\d+(\.\d+){0,2}((devel|alpha|beta|rc)\d*)?$", _("Not a version, such as 16 or 16.14.")
)


class VersionFilter(django_filters.CharFilter):  # type: ignore[misc]
    """A version: "16.14" is that one, "16" and "9.6" are all of that major version."""

    def __init__(self, field_name: str) -> None:
        super().__init__(
            field_name=field_name,
            label="Version: 16 for all of that major version, or 16.14.",
            validators=[IS_VERSION],
        )

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Rows of the version asked for."""
        if not value:
            return qs
        return qs.filter(versions.matching(value, field=self.field_name))


class MeasurementFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which measurements."""

    campaign = django_filters.CharFilter("run__campaign__slug", label="Slug of the campaign.")
    run = django_filters.NumberFilter("run_id", label="Id of the run.")
    metric = django_filters.CharFilter("metric__name", label="Name of the metric, such as tps.")
    version = VersionFilter("run__cell__version")
    origin = django_filters.ChoiceFilter(field_name="run__origin", choices=Origin.choices)


class MeasurementSerializer(serializers.Serializer[Measurement]):
    """A measurement. `n` is how many repeats the value stands for, `statistic` what it is of them.

    `levels` has the version, the level of each factor, and the repeat.
    """

    id = serializers.IntegerField()
    campaign = serializers.CharField(source="run.campaign.slug")
    run = serializers.IntegerField(source="run_id")
    levels = serializers.SerializerMethodField()
    metric = serializers.CharField(source="metric.name")
    value = serializers.FloatField()
    unit = serializers.CharField(source="metric.unit")
    n = serializers.IntegerField()
    statistic = serializers.ChoiceField(choices=Statistic.choices)
    origin = serializers.ChoiceField(source="run.origin", choices=Origin.choices)

    def get_levels(self, measurement: Measurement) -> dict[str, Any]:
        """The levels of the run."""
        return levels_of(measurement.run)


class MeasurementDoor(ReadOnlyDoor[Measurement]):
    """Measurements: the numbers of finished runs, each with its levels. The newest first."""

    queryset = measurements.listed()
    serializer_class = MeasurementSerializer
    filterset_class = MeasurementFilters


def levels_of(run: Run) -> dict[str, Any]:
    """The levels of a run's cell with version and repeat."""
    return {**run.cell.levels, "version": grids.version_of(run.cell), "repeat": run.repeat}
