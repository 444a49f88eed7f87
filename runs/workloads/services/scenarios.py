"""Keeps the database's scenarios and metrics in step with the code."""

from django.db import transaction

from runs.models import Metric, Scenario
from runs.scenarios import registry
from runs.scenarios.themes import THEMES, title_of
from runs.tools import known_metrics


@transaction.atomic
def sync() -> None:
    """Make or update a row for each scenario, archive theme and metric of the code."""
    Scenario.objects.bulk_create(
        _scenarios(),
        update_conflicts=True,
        unique_fields=["slug"],
        update_fields=["title", "description", "runnable"],
    )
    _sync_metrics()


def _sync_metrics() -> None:
    """The metrics of scenarios and tools, which all projects share.

    One of a tool that is here with another unit stays as it is: it has figures in that.
    """
    stored = {metric.name: metric for metric in Metric.objects.filter(project=None)}
    metric_of = registry.metrics()
    new_metrics = []
    for name, metric in {**known_metrics.METRICS, **metric_of}.items():
        fields = {
            "unit": metric.unit,
            "direction": metric.direction,
            "title": metric.title,
        }
        stored_metric = stored.get(name)
        if stored_metric is None:
            new_metrics.append(Metric(name=name, **fields))
        elif name in metric_of and any(
            getattr(stored_metric, key) != value for key, value in fields.items()
        ):
            Metric.objects.filter(pk=stored_metric.pk).update(**fields)
    Metric.objects.bulk_create(new_metrics, ignore_conflicts=True)


def _scenarios() -> list[Scenario]:
    """One of each slug: what the code knows is more than a theme of the archive."""
    runnable = {scenario.slug for scenario in registry.runnable()}
    shown_scenarios = [
        Scenario(
            slug=scenario.slug,
            title=scenario.title,
            description=scenario.description,
            runnable=scenario.slug in runnable,
        )
        for scenario in registry.known()
    ]
    slugs = {scenario.slug for scenario in shown_scenarios}
    themes = [
        Scenario(
            slug=theme, title=title_of(theme), description=question, runnable=False
        )
        for theme, question in THEMES.items()
        if theme not in slugs
    ]
    return themes + shown_scenarios
