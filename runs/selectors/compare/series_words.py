"""The names of factors and levels of compared campaigns, in the reader's language."""

from collections.abc import Collection
from dataclasses import replace

from django.utils.translation import gettext as _

from runs.models import PublishedTable
from runs.scenarios import registry
from runs.selectors.archive.words import Factors, factors
from runs.selectors.campaigns import factor_names as designs
from runs.selectors.compare.series_cells import SERVER


def wording(slugs: Collection[str]) -> Factors:
    """What publications and scenarios call the factors of these campaigns. Two queries.

    The levels of the factor `server` are called by the servers' names.
    """
    tables = PublishedTable.objects.filter(campaign__slug__in=slugs).order_by("pk")
    columns = [column for each in tables.values_list("columns", flat=True) for column in each]
    found = factors(columns)
    ours = {
        factor.name: _(factor.title) for scenario in registry.every() for factor in scenario.factors
    }
    servers = {(SERVER, slug): name for slug, name in designs.names_of_servers(slugs).items()}
    return replace(found, titles={**ours, **found.titles}, levels={**servers, **found.levels})
