"""How the levels of a run are written on pages."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django import template
from django.utils.translation import gettext

from runs.scenarios import common_factors, registry
from runs.selectors.campaigns.factor_names import choice_title, own_titles, says_itself
from runs.templatetags.formats import as_read, term

register = template.Library()


@register.filter
def level(value: Any, name: str) -> str:
    """A factor and its level: "Clients 8", "Scale factor 10", "one table"."""
    title = own_titles().get(name) or (
        gettext(_titles()[name]) if name in _titles() else term(name)
    )
    told = choice_title(name, value) if isinstance(value, str) else ""
    return told if says_itself(name, value) else f"{title} {told or as_read(value)}"


@register.filter
def choice(value: Any, name: str) -> str:
    """A level that a scenario has a title for, as `level`; empty for all others."""
    return level(value, name) if isinstance(value, str) and choice_title(name, value) else ""


@cache
def _titles() -> Mapping[str, str]:
    """The titles of all scenarios' factors, in English."""
    every = [factor for scenario in registry.every() for factor in scenario.factors]
    return {each.name: each.title for each in (*common_factors.EVERY, *every)}
