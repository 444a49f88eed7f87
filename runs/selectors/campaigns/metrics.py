"""Metrics: the one that a campaign shows first, and its summaries for cells."""

from collections.abc import Iterable

from runs.analysis.summary import Summary
from runs.models import Campaign, CellSummary, Metric
from runs.scenarios import registry

# The fields of a Summary, in their order.
FIELDS = ("n", "median", "minimum", "maximum", "mean", "log_mean", "log_variance")


def primary(campaign: Campaign) -> Metric | None:
    """The metric that the campaign's charts and tables show first; None if there is none yet.

    A scenario that can run names it. One with data only (published, uploaded) shows tps if it has
    it, otherwise its first metric with a better direction.
    """
    try:
        name = registry.get(campaign.scenario.slug).primary_metric
    except KeyError:
        return _first_found(campaign)
    return Metric.objects.filter(name=name).first()


def primary_names(campaigns: Iterable[Campaign]) -> dict[Campaign, str]:
    """The name of `primary` of each campaign that has one. A query for each without a scenario."""
    names = {}
    for each in campaigns:
        try:
            names[each] = registry.get(each.scenario.slug).primary_metric
        except KeyError:
            if (found := _first_found(each)) is not None:
                names[each] = found.name
    return names


def by_use(metrics: Iterable[Metric]) -> list[Metric]:
    """The most useful first: tps, then those with a better direction, by name."""
    return sorted(
        metrics, key=lambda each: (each.name != "tps", each.direction == "neutral", each.name)
    )


def summaries(campaign: Campaign, metric_name: str) -> dict[int, Summary]:
    """The summaries of a metric by the key of their cell. One query."""
    found = CellSummary.objects.filter(cell__campaign=campaign, metric__name=metric_name)
    return {cell: Summary(*fields) for cell, *fields in found.values_list("cell_id", *FIELDS)}


def summaries_of(
    campaigns: Iterable[Campaign], names: Iterable[str]
) -> dict[tuple[int, str], Summary]:
    """The summaries of these metrics in some campaigns, by cell and name of the metric. One query.

    A campaign need not have all of them.
    """
    found = CellSummary.objects.filter(
        cell__campaign__in=list(campaigns), metric__name__in=set(names)
    )
    rows = found.values_list("cell_id", "metric__name", *FIELDS)
    return {(cell, metric): Summary(*fields) for cell, metric, *fields in rows}


def summary_of(row: CellSummary) -> Summary:
    """A stored summary as the analysis needs it."""
    return Summary(
        n=row.n,
        median=row.median,
        minimum=row.minimum,
        maximum=row.maximum,
        mean=row.mean,
        log_mean=row.log_mean,
        log_variance=row.log_variance,
    )


def _first_found(campaign: Campaign) -> Metric | None:
    summarised = CellSummary.objects.filter(cell__campaign=campaign)
    found = by_use(Metric.objects.filter(pk__in=summarised.values("metric")))
    return found[0] if found else None
