"""The readers' names of a campaign's factors, levels and parameters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Campaign, CampaignConfiguration, TopologyNode
from runs.scenarios import registry
from runs.selectors.compare.series_cells import CONFIGURATION, SERVER
from runs.templatetags.formats import as_read, term

# Names of servers and configurations by (factor, level): their levels are slugs.
Names = Mapping[tuple[str, Any], str]


@dataclass(frozen=True)
class Words:
    """The names of a campaign's factors and levels; `names` are for levels that are slugs."""

    titles: Mapping[str, str]
    names: Names

    def title(self, name: str) -> str:
        """A factor's title; its name where nothing says more."""
        return self.titles.get(name, name)

    def level(self, name: str, level: Any) -> Any:
        """A level as readers know it."""
        return self.names.get((name, level), level) if isinstance(level, str) else as_read(level)

    def named(self, name: str, level: Any) -> str:
        """Factor and level: "Clients 8", "Server Rack 2", "PostgreSQL 16.14"."""
        title = self.titles.get(name, "PostgreSQL" if name == "version" else name)
        return f"{title} {self.level(name, level)}"

    def listed(self, levels: Mapping[str, Any]) -> str:
        """Several levels in one line."""
        return ", ".join(self.named(name, level) for name, level in levels.items())


def words(campaign: Campaign) -> Words:
    """The names for a campaign. One query each if servers or configurations vary."""
    return Words(factor_titles(campaign), level_names(campaign))


def level_names(campaign: Campaign) -> dict[tuple[str, Any], str]:
    """The names of a campaign's levels that are slugs; none if neither factor varies."""
    varied = [name for name in (SERVER, CONFIGURATION) if name in campaign.factors]
    return names_of_levels([campaign.slug], varied) if varied else {}


def names_of_levels(
    slugs: Iterable[str], factors: Iterable[str] = (SERVER, CONFIGURATION)
) -> dict[tuple[str, Any], str]:
    """The same for several campaigns. One query per factor."""
    found: dict[tuple[str, Any], str] = {}
    if SERVER in factors:
        found |= {(SERVER, slug): name for slug, name in _servers(slugs).items()}
    if CONFIGURATION in factors:
        used = CampaignConfiguration.objects.filter(campaign__slug__in=slugs).order_by("pk")
        pairs = used.values_list("configuration__slug", "configuration__name")
        found |= {(CONFIGURATION, slug): _(name) for slug, name in pairs}
    return found


def server_names(campaign: Campaign) -> dict[str, str]:
    """The names of a campaign's servers by their slugs; none if the server is not a factor."""
    return _servers([campaign.slug]) if SERVER in campaign.factors else {}


def _servers(slugs: Iterable[str]) -> dict[str, str]:
    nodes = TopologyNode.objects.filter(
        topology__campaign__slug__in=slugs,
        topology__campaign__factors__has_key=SERVER,
        role=TopologyNode.Role.DATABASE,
    )
    return dict(nodes.order_by("ordinal").values_list("server__slug", "server__name"))


def own_titles() -> dict[str, str]:
    """The factors that belong to no scenario, in the reader's language, by name."""
    return {
        SERVER: _("Server"),
        CONFIGURATION: _("Configuration"),
        "build": _("Build"),
        "block_size": _("Block size (kB)"),
    }


def factor_titles(campaign: Campaign) -> dict[str, str]:
    """The factors of the campaign's scenario in the reader's language, by name."""
    titles = own_titles()
    try:
        factors = registry.get(campaign.scenario.slug, campaign.factors).factors
    except KeyError:
        return titles
    return titles | {"side": _("A/A side")} | {each.name: _(each.title) for each in factors}


def factor_title(campaign: Campaign, name: str | None) -> str:
    """The title of one factor; its name if the scenario has only data."""
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
        else (term(name), value, "")
        for name, value in campaign.parameters.items()
    ]
