"""Measurements: rows of numbers with the conditions that they were measured under."""

from typing import Any

from django.db.models import QuerySet

from runs.models import Measurement, PublishedTable, Run
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.models.runs import SUMMARY_REPEAT
from runs.selectors.archive import provenance

# All other fields of a run or a table are many times as long.
TOLD = (
    "value",
    "n",
    "statistic",
    "metric__name",
    "metric__unit",
    "run__origin",
    "run__repeat",
    "run__campaign__slug",
    "run__campaign__repeats",
    "run__campaign__published__number",
    "run__campaign__published__source__slug",
    "run__cell__levels",
    "run__cell__version",
    "printed__text",
    "printed__kind",
    "printed__n",
    "printed__statistic",
    "printed__exact",
    "printed__recomputed",
    "printed__row",
    "printed__column",
    "printed__table",
    "printed__node",
)


def listed() -> QuerySet[Measurement]:
    """Measurements of finished runs with everything that a row shows, the newest runs first."""
    return (
        Measurement.objects.filter(run__state=Run.State.FINISHED)
        .select_related("metric", "run__cell", "run__campaign__published__source", "printed")
        # Tables come separately: otherwise a printed grid would be fetched with each figure.
        .prefetch_related(*provenance.loaded(at="printed__"))
        .only(*TOLD)
        .order_by("-run_id", "-pk")
    )


def of_tables(rows: QuerySet[Measurement], **which: Any) -> QuerySet[Measurement]:
    """Those of published tables with these fields (number).

    Reads the tables' campaigns first, in a query of its own: they are few, and with their keys
    PostgreSQL finds their runs directly, however many results there are.
    """
    tables = PublishedTable.objects.filter(**which).order_by()
    return rows.filter(run__campaign__in=list(tables.values_list("campaign_id", flat=True)))


def of_source(rows: QuerySet[Measurement], slug: str) -> QuerySet[Measurement]:
    """Those of a publication, by the keys of its runs.

    It has so many tables that by their campaigns PostgreSQL would look through the newest runs.
    """
    runs = Run.objects.filter(campaign__published__source__slug=slug).order_by()
    return rows.filter(run__in=list(runs.values_list("pk", flat=True)))


def stands_for_repeats(measurement: Measurement) -> bool:
    """Whether it is a published value of a cell rather than of one printed repeat."""
    run = measurement.run
    if run.origin != Origin.PUBLISHED:
        return False
    is_single = measurement.statistic == Statistic.SINGLE and run.campaign.repeats > 1
    return run.repeat == SUMMARY_REPEAT or not is_single
