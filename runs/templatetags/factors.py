"""How the levels of a run are written on pages."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django import template
from django.utils.translation import gettext

from runs.scenarios import common_factors, registry
from runs.selectors.campaigns.factor_names import own_titles
from runs.templatetags.formats import as_read

register = template.Library()


@register.filter
def level(value: Any, name: str) -> str:
    """A factor and its level: "Clients 8", "Scale factor 10"."""
    title = own_titles().get(name) or gettext(_titles().get(name, name))
    return f"{title} {as_read(value)}"


@cache
def _titles() -> Mapping[str, str]:
    """The titles of all scenarios' factors, in English."""
    every = [factor for scenario in registry.every() for factor in scenario.factors]
    return {each.name: each.title for each in (*common_factors.EVERY, *every)}
