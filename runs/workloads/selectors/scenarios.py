"""Scenarios: those that can run, and those known only from published or uploaded data."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.models import Campaign, Scenario
from runs.scenarios import registry
from runs.scenarios.definition import Scenario as Definition
from runs.scenarios.themes import THEMES


@dataclass(frozen=True)
class ScenarioRow:
    """A scenario, its code's `definition` if any, and how many campaigns the reader may see."""

    scenario: Scenario
    definition: Definition | None
    campaigns: int


def listed(*, to: Reader) -> QuerySet[Scenario]:
    """Scenarios by slug that the reader may know of.

    Those of the code and the archive's themes are public; another one is visible to readers who can
    see one of its campaigns.
    """
    visible_campaigns = projects.visible(
        Campaign.objects.filter(scenario=OuterRef("pk")), to=to
    )
    return Scenario.objects.filter(
        Q(runnable=True)
        | Q(slug__in=list(THEMES))
        | Exists(visible_campaigns.order_by())
    ).order_by("slug")


def rows(scenario_rows: Sequence[Scenario], *, to: Reader) -> list[ScenarioRow]:
    """These scenarios with their campaigns counted, in one query for all."""
    visible_campaigns = projects.visible(
        Campaign.objects.filter(scenario__in=scenario_rows), to=to
    )
    counts = dict(
        visible_campaigns.order_by().values_list("scenario").annotate(number=Count("*"))
    )
    definition_of = {definition.slug: definition for definition in registry.every()}
    return [
        ScenarioRow(
            scenario,
            definition_of.get(scenario.slug) if scenario.runnable else None,
            counts.get(scenario.pk, 0),
        )
        for scenario in scenario_rows
    ]
