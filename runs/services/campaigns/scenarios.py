"""Keeps the database's scenarios and metrics in step with the code."""

from django.db import transaction

from runs.models import Metric, Scenario
from runs.scenarios import registry
from runs.scenarios.themes import THEMES


@transaction.atomic
def sync() -> None:
    """Make or update a row for each scenario, archive theme and metric of the code."""
    Scenario.objects.bulk_create(
        _scenarios(),
        update_conflicts=True,
        unique_fields=["slug"],
        update_fields=["title", "description", "runnable"],
    )
    Metric.objects.bulk_create(
        [
            Metric(
                name=metric.name, unit=metric.unit, direction=metric.direction, title=metric.title
            )
            for metric in registry.metrics().values()
        ],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["unit", "direction", "title"],
    )


def _scenarios() -> list[Scenario]:
    """One of each slug: what the code can run is more than a theme of the archive."""
    runnable = [
        Scenario(
            slug=scenario.slug,
            title=scenario.title,
            description=scenario.description,
            runnable=True,
        )
        for scenario in registry.every()
    ]
    slugs = {scenario.slug for scenario in runnable}
    themes = [
        Scenario(slug=theme.slug, title=theme.title, description=theme.description, runnable=False)
        for theme in THEMES
        if theme.slug not in slugs
    ]
    return themes + runnable
