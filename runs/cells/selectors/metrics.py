"""Metrics: the one that a campaign shows first, and its summaries for cells."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db.models import BooleanField, F, Func, Prefetch, Q, QuerySet
from django.db.models.lookups import In
from django.utils.translation import gettext as _

from runs.access.selectors import permissions
from runs.analysis.summary import Summary
from runs.cells.selectors import provenance
from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Measurement,
    Metric,
    PrintedFigure,
    PublishedTable,
    Run,
)
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.models.runs import SUMMARY_REPEAT
from runs.scenarios import registry
from runs.shared.formats import translate_field
from runs.tools import units

TIMES = frozenset({"ns", "us", "µs", "ms", "s", "min", "h"})

# In PostgreSQL's words: to write it from a query set takes as long as to answer it. Summaries are
# read by the list of cells: to look them up cell by cell takes half as long again.
_OF_CAMPAIGN = """
    SELECT * FROM runs_metric WHERE id = ANY(ARRAY(
        SELECT DISTINCT metric_id FROM runs_cellsummary
        WHERE cell_id = ANY(ARRAY(SELECT id FROM runs_cell WHERE campaign_id = %s
                                  ORDER BY ordinal DESC LIMIT %s))))
"""
# A campaign that has measured something else in older cells than these does not offer it.
NEWEST_CELLS = 2_000
# The fields of a Summary, in their order.
FIELDS = ("n", "median", "minimum", "maximum", "mean", "log_mean", "log_variance")


def primary(campaign: Campaign, among: Sequence[Metric] | None = None) -> Metric | None:
    """The metric that the campaign's charts and tables show first; None if there is none yet.

    A scenario that can run names it. One with data only (published, uploaded) shows tps if it has
    it, otherwise its first metric with a better direction. One query, unless it is `among` all
    metrics of the campaign.
    """
    name = _scenario_metric(campaign)
    if name is None:
        return next(
            iter(
                list_campaign_metrics(campaign) if among is None else sort_by_use(among)
            ),
            None,
        )
    return Metric.objects.filter(name=name, project=None).first()


def known(names: Collection[str], *, in_project: int | None) -> QuerySet[Metric]:
    """The metrics of these names that a project has: the shared ones, then its own."""
    rows = Metric.objects.filter(
        Q(project=None) | Q(project=in_project), name__in=names
    )
    return rows.order_by(F("project").asc(nulls_first=True), "name")


def named(name: str, campaign: Campaign) -> Metric | None:
    """The metric that a campaign's project means by a name. One query, or two."""
    project = campaign.project_id or permissions.default_project()
    return known([name], in_project=project).last()


def joined(metrics: Iterable[Metric]) -> dict[int, Metric]:
    """By the key of each metric the one that stands for all of its name, unit and direction.

    Projects may name alike what they measure alike: these are compared. It is the shared one, or
    the oldest.
    """
    ordered = sorted(
        metrics, key=lambda metric: (metric.project_id is not None, metric.pk)
    )
    metric_of: dict[tuple[str, str, str], Metric] = {}
    return {
        metric.pk: metric_of.setdefault(
            (metric.name, metric.unit, metric.direction), metric
        )
        for metric in ordered
    }


def primary_name(campaign: Campaign, metrics_found: Iterable[Metric]) -> str:
    """The campaign's primary metric: its scenario's, else tps, else its first one."""
    return _scenario_metric(campaign) or next(
        (metric.name for metric in sort_by_use(metrics_found)), ""
    )


def primary_names(campaigns: Iterable[Campaign]) -> dict[Campaign, str]:
    """The name of `primary` of each campaign that has one. A query for each without a scenario."""
    names = {}
    for campaign in campaigns:
        name = _scenario_metric(campaign) or next(
            (metric.name for metric in list_campaign_metrics(campaign)), None
        )
        if name is not None:
            names[campaign] = name
    return names


def _scenario_metric(campaign: Campaign) -> str | None:
    """The metric that its scenario names; None for one with data only."""
    slug = campaign.scenario.slug
    return (
        registry.get(slug).headline(campaign.reproduces)
        if registry.knows(slug)
        else None
    )


def list_campaign_metrics(campaign: Campaign) -> list[Metric]:
    """The metrics of a campaign's newest cells, the most useful first. One query."""
    return sort_by_use(Metric.objects.raw(_OF_CAMPAIGN, [campaign.pk, NEWEST_CELLS]))


def sort_by_use(metrics: Iterable[Metric]) -> list[Metric]:
    """The most useful first: tps, then those with a better direction, by name."""
    return sorted(
        metrics,
        key=lambda metric: (
            metric.name != "tps",
            metric.direction == "neutral",
            metric.name,
        ),
    )


def summaries(campaign: Campaign, metric_name: str) -> dict[int, Summary]:
    """The summaries of a metric by the key of their cell. One query."""
    cell_summaries = (
        _cell_summaries([campaign.pk]).filter(metric__name=metric_name).order_by()
    )
    return {
        cell: Summary(*fields)
        for cell, *fields in cell_summaries.values_list("cell_id", *FIELDS)
    }


def _cell_summaries(campaigns: Sequence[int]) -> QuerySet[CellSummary]:
    """By the cells: by the metric PostgreSQL may read the summaries of all campaigns."""
    of_campaigns = (
        "cell_id = ANY(ARRAY(SELECT id FROM runs_cell WHERE campaign_id = ANY(%s)))"
    )
    return CellSummary.objects.extra(where=[of_campaigns], params=[list(campaigns)])  # noqa: S610 -- no text


def summaries_of(
    campaigns: Iterable[Campaign], names: Iterable[str]
) -> dict[tuple[int, str], Summary]:
    """The summaries of metrics that campaigns may have, by cell and metric's name. One query."""
    cell_summaries = _cell_summaries([campaign.pk for campaign in campaigns])
    summaries_found = cell_summaries.filter(metric__name__in=set(names)).order_by()
    rows = summaries_found.values_list("cell_id", "metric__name", *FIELDS)
    return {(cell, metric): Summary(*fields) for cell, metric, *fields in rows}


def summary_of(row: CellSummary) -> Summary:
    """A stored summary as the analysis needs it."""
    return Summary(*(getattr(row, name) for name in FIELDS))


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

# The key by which a figure is found from its measurement.
OF_MEASUREMENT = ("measured_run", "measured_metric", "measured_statistic")


def listed() -> QuerySet[Measurement]:
    """Measurements of finished runs with everything that a row shows, the newest runs first.

    Cells, campaigns and printed figures come separately, by a list of keys for each: a page has few
    of them, and PostgreSQL would plan a join of eight tables for it.
    """
    campaigns = Campaign.objects.select_related("published__source")
    figures = PrintedFigure.objects.only(*OF_MEASUREMENT, *_paths_below("printed__"))
    return (
        Measurement.objects.filter(run__state=Run.State.FINISHED)
        .select_related("metric", "run")
        .prefetch_related(
            Prefetch("run__cell", Cell.objects.only(*_paths_below("run__cell__"))),
            Prefetch("run__campaign", campaigns.only(*_paths_below("run__campaign__"))),
            Prefetch("printed", figures),
            *provenance.loaded(at="printed__"),
        )
        .only(*TOLD)
        .order_by("-run_id", "-pk")
    )


def filter_by_tables(
    rows: QuerySet[Measurement], **which: Any
) -> QuerySet[Measurement]:
    """Those of published tables with these fields (number).

    Reads the tables' campaigns first, in a query of its own: they are few, and with their keys
    PostgreSQL finds their runs directly, however many results there are.
    """
    tables = PublishedTable.objects.filter(**which).order_by()
    return rows.filter(
        run__campaign__in=list(tables.values_list("campaign_id", flat=True))
    )


def filter_by_source(rows: QuerySet[Measurement], slug: str) -> QuerySet[Measurement]:
    """Those of a publication, by the keys of its runs.

    It has so many tables that by their campaigns PostgreSQL would look through the newest runs.
    The runs have the list as well: else it would not be used to read them.
    """
    runs = Run.objects.filter(campaign__published__source__slug=slug).order_by()
    keys = list(runs.values_list("pk", flat=True))
    return rows.filter(run__in=keys).extra(
        where=["runs_run.id = ANY(%s)"], params=[keys]
    )


def _paths_below(path: str) -> list[str]:
    return [name.removeprefix(path) for name in TOLD if name.startswith(path)]


def stands_for_repeats(measurement: Measurement) -> bool:
    """Whether it is a published value of a cell rather than of one printed repeat."""
    run = measurement.run
    if run.origin != Origin.PUBLISHED:
        return False
    is_single = measurement.statistic == Statistic.SINGLE and run.campaign.repeats > 1
    return run.repeat == SUMMARY_REPEAT or not is_single


class _IsTrue(Func):
    """A condition that no index is used for, and of which PostgreSQL knows how often it holds."""

    template = "(%(expressions)s) IS TRUE"
    output_field = BooleanField()


# Of so many measurements PostgreSQL finds those of a campaign by a search for each.
MANY = 1_000
# Of so many runs at most one has what is frequent.
FREQUENT = 20


def are_many(metrics: Sequence[int]) -> bool:
    """Whether there are many measurements of these metrics. One query, which reads a few pages."""
    # The oldest, which an index shows without the table.
    measured_runs = (
        Measurement.objects.filter(metric__in=metrics)
        .order_by("run")
        .values_list("run")
    )
    return bool(measured_runs[MANY : MANY + 1])


def are_frequent(metrics: Sequence[int]) -> bool:
    """Whether many of the newest runs have measured it. Two queries, which read a few pages."""
    if len(metrics) != 1:
        return False
    measured_runs = (
        Measurement.objects.filter(metric=metrics[0])
        .order_by("-run")
        .values_list("run")
    )
    far = measured_runs[MANY : MANY + 1].first()
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first()
    return far is not None and (newest or 0) - far[0] <= MANY * FREQUENT


def filter_by_runs(
    rows: QuerySet[Measurement], metrics: Sequence[int]
) -> QuerySet[Measurement]:
    """Those of these metrics, found by their runs.

    By the metric PostgreSQL reads all of its measurements down to those of an old campaign, or to
    those that a reader may see.
    """
    return rows.filter(_IsTrue(In(F("metric_id"), list(metrics))))


def is_count(metric: Metric) -> bool:
    """Whether a metric counts unwanted events."""
    return metric.direction == Metric.Direction.LOWER and metric.unit in units.COUNTS


def is_speed(metric: Metric) -> bool:
    """Whether a metric is a time or a rate, which a slower machine makes worse."""
    return metric.unit in TIMES or (
        metric.direction == Metric.Direction.HIGHER and not is_count(metric)
    )


def metric_label(metric: Metric) -> str:
    """The metric's title in the reader's language."""
    title = translate_field(metric, "title")
    return _(title) if title else metric.name


def metric_title(metric: Metric) -> str:
    """The metric with its unit."""
    label = metric_label(metric)
    return f"{label} ({metric.unit})" if metric.unit and metric.unit != label else label
