"""Scenarios: those that run, and those that publications and uploads know as data only."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from runs.models import Campaign, Scenario
from runs.scenarios import registry
from runs.scenarios.definition import Scenario as Definition
from runs.scenarios.themes import THEMES
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader


@dataclass(frozen=True)
class ScenarioRow:
    """A scenario with the number of campaigns that the reader may see.

    `definition` is that of the code, None for what is data only.
    """

    scenario: Scenario
    definition: Definition | None
    campaigns: int


def listed(*, to: Reader) -> QuerySet[Scenario]:
    """Scenarios by slug, as far as the reader may know of them.

    Those of the code and the archive's themes are everybody's; another one is known to whom a
    campaign of it is.
    """
    seen = projects.visible(Campaign.objects.filter(scenario=OuterRef("pk")), to=to)
    own = [theme.slug for theme in THEMES]
    return Scenario.objects.filter(
        Q(runnable=True) | Q(slug__in=own) | Exists(seen.order_by())
    ).order_by("slug")


def rows(found: Sequence[Scenario], *, to: Reader) -> list[ScenarioRow]:
    """These scenarios with their campaigns counted, in one query for all."""
    seen = projects.visible(Campaign.objects.filter(scenario__in=found), to=to)
    counts = dict(seen.order_by().values_list("scenario").annotate(Count("pk")))
    known = {definition.slug: definition for definition in registry.every()}
    return [
        ScenarioRow(each, known.get(each.slug) if each.runnable else None, counts.get(each.pk, 0))
        for each in found
    ]
