"""Keeps the database's scenarios and metrics in step with the code."""

from django.db import transaction

from runs.models import Metric, Scenario
from runs.scenarios import registry
from runs.scenarios.themes import THEMES


@transaction.atomic
def sync() -> None:
    """Make or update a row for each scenario, archive theme and metric of the code."""
    runnable = {scenario.slug for scenario in registry.every()}
    for theme in THEMES:
        if theme.slug not in runnable:
            Scenario.objects.update_or_create(
                slug=theme.slug,
                defaults={
                    "title": theme.title,
                    "description": theme.description,
                    "runnable": False,
                },
            )
    for scenario in registry.every():
        Scenario.objects.update_or_create(
            slug=scenario.slug,
            defaults={
                "title": scenario.title,
                "description": scenario.description,
                "runnable": True,
            },
        )
    for metric in registry.metrics().values():
        Metric.objects.update_or_create(
            name=metric.name,
            defaults={"unit": metric.unit, "direction": metric.direction, "title": metric.title},
        )
