"""What the factors and parameters of a campaign are called, for readers."""

from typing import Any

from django.utils.translation import gettext as _

from runs.models import Campaign
from runs.scenarios import registry


def factor_titles(campaign: Campaign) -> dict[str, str]:
    """The factors of the campaign's scenario in the reader's language, by name."""
    try:
        factors = registry.get(campaign.scenario.slug).factors
    except KeyError:
        return {}
    return {"side": _("A/A side")} | {factor.name: _(factor.title) for factor in factors}


def factor_title(campaign: Campaign, name: str | None) -> str:
    """The title of one factor; its name where the scenario is only data."""
    return factor_titles(campaign).get(name, name) if name else ""


def parameters(campaign: Campaign) -> list[tuple[str, Any, str]]:
    """(title, value, unit) of what the scenario keeps constant."""
    try:
        known = {each.name: each for each in registry.get(campaign.scenario.slug).parameters}
    except KeyError:
        known = {}
    return [
        (_(known[name].title), value, known[name].unit)
        if name in known
        else (name.replace("_", " "), value, "")
        for name, value in campaign.parameters.items()
    ]
