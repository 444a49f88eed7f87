"""Measurements (single numbers) and series (values over time) of runs."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.fields.related_descriptors import (
    ForwardOneToOneDescriptor,
    ReverseOneToOneDescriptor,
)
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class MetricDirection(models.TextChoices):
    """Which of two values is better; see `Metric.Direction`."""

    HIGHER = "higher", _("higher is better")
    LOWER = "lower", _("lower is better")
    NEUTRAL = "neutral", _("neither")


class Metric(models.Model):
    """Name, unit and direction; the direction says which of two values is better.

    It is of the project that uploaded it first. Those of BenchLab's scenarios, tools and
    publications have no project: they mean the same in all.
    """

    Direction = MetricDirection

    name = models.SlugField(max_length=80)
    project = models.ForeignKey(
        "Project", models.PROTECT, null=True, related_name="metrics", db_index=False
    )
    unit = models.CharField(max_length=40, blank=True)
    direction = models.CharField(max_length=10, choices=Direction)
    title = models.CharField(max_length=200)
    # For metrics that come as data; the titles of metrics in code are in the message catalogue.
    title_ja = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            is_one_of("direction", MetricDirection, name="metric_direction_is_known"),
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(project=None), name="metric_once"
            ),
            models.UniqueConstraint(
                fields=["project", "name"], name="metric_once_in_project"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_ratio(self) -> bool:
        """A ratio has no amount: nothing measures zero, so its axis need not begin there."""
        return self.unit == "ratio"


class Statistic(models.TextChoices):
    """How a stored value was computed from the raw values."""

    SINGLE = "single", _("single value")
    MEDIAN = "median", _("median")
    MEAN = "mean", _("mean")


def _index_of_ids(name: str) -> BrinIndex:
    """A summary of each 32 pages, in place of a key of all rows: ids grow as rows are added."""
    return BrinIndex(fields=["id"], name=name, autosummarize=True, pages_per_range=32)


class Measurement(models.Model):
    """One number of a metric. `n` is the number of repeats behind the value (1 when executed).

    The table is in partitions by ranges of runs (`runs.operations.services.partitions`): `id` is
    unique because one sequence gives it, and what refers to a measurement names run, metric and
    statistic.
    """

    run = models.ForeignKey(
        "Run", models.CASCADE, related_name="measurements", db_index=False
    )
    metric = models.ForeignKey("Metric", models.PROTECT, db_index=False)
    value = models.FloatField()
    n = models.PositiveIntegerField(default=1)
    statistic = models.CharField(
        max_length=10, choices=Statistic, default=Statistic.SINGLE
    )

    class Meta:
        ordering = ["run", "metric"]
        constraints = [
            # Checked for each row of COPY: 0.05 s for a million rows, which take 7 s.
            is_one_of("statistic", Statistic, name="measurement_statistic_is_known"),
            models.UniqueConstraint(
                fields=["run", "metric", "statistic"], name="measurement_once"
            ),
        ]
        indexes = [
            models.Index(fields=["metric", "-run"], name="measurement_by_metric"),
            _index_of_ids("measurement_by_id"),
        ]

    def __str__(self) -> str:
        return f"{self.metric_id}={self.value}"


class RealField(models.FloatField):  # type: ignore[type-arg]  # not generic at run time
    """Four bytes per value: half the room, and more digits than a tool prints."""

    def db_type(self, connection: Any) -> str:
        """PostgreSQL's `real`."""
        return "real"


class OneToOneByKey(models.ForeignObject):  # type: ignore[type-arg]  # not generic at run time
    """One to one by several columns, which are of both models and unique in both."""

    many_to_one, one_to_one = False, True
    related_accessor_class = ReverseOneToOneDescriptor  # type: ignore[assignment]
    forward_related_accessor_class = ForwardOneToOneDescriptor

    def deconstruct(self) -> Any:
        """It has no column of its own: of it migrations know what Django has."""
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignObject", args, kwargs


class Series(models.Model):
    """Values at a fixed interval within one run; a null is an interval without a value.

    `start` and `interval` are in seconds; `start` counts from the beginning of measuring. In
    partitions as measurements are.
    """

    run = models.ForeignKey(
        "Run", models.CASCADE, related_name="series", db_index=False
    )
    name = models.SlugField(max_length=80, db_index=False)
    unit = models.CharField(max_length=40, blank=True)
    start = models.FloatField(default=0)
    interval = models.FloatField()
    values = ArrayField(RealField(null=True))

    class Meta:
        ordering = ["run", "name"]
        verbose_name_plural = "series"
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="series_once")
        ]
        indexes = [_index_of_ids("series_by_id")]

    def __str__(self) -> str:
        return f"{self.name} of {self.run_id}"
