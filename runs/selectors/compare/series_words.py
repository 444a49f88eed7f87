"""The names of factors and levels of compared campaigns, in the reader's language."""

from collections.abc import Collection
from dataclasses import replace

from django.utils.translation import gettext as _

from runs.models import PublishedTable
from runs.scenarios import common_factors, registry
from runs.selectors.archive.words import Factors, factors
from runs.selectors.campaigns import factor_names as designs


def wording(slugs: Collection[str]) -> Factors:
    """The names that publications and scenarios give to the factors. Three queries.

    Levels that are slugs get the names of their servers and configurations.
    """
    tables = PublishedTable.objects.filter(campaign__slug__in=slugs).order_by("pk")
    columns = [column for each in tables.values_list("columns", flat=True) for column in each]
    found = factors(columns)
    every = [factor for scenario in registry.every() for factor in scenario.factors]
    ours = {each.name: _(each.title) for each in (*common_factors.EVERY, *every)}
    titles = {**designs.own_titles(), **ours, **found.titles}
    return replace(found, titles=titles, levels={**designs.names_of_levels(slugs), **found.levels})
