"""The readers' names of a campaign's factors, levels and parameters."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.utils.translation import gettext as _

from runs.cells.selectors.series_cells import (
    CONFIGURATION,
    SERVER,
    SIDE,
    current,
    fitness,
)
from runs.models import Campaign, CampaignConfiguration, TopologyNode
from runs.scenarios import common_factors, registry
from runs.scenarios.definition import Parameter
from runs.scenarios.operating_systems import AS_CONFIGURED
from runs.shared.formats import format_level, quantity, term
from runs.statements import trial

# The levels that say which PostgreSQL was measured; all others are conditions.
SUBJECT = ("version", "build", "bindir")
# The levels of these are words of pgbench's options, which have no other name.
OF_TOOLS = frozenset({"script", "query_mode"})
# Names of servers and configurations by (factor, level): their levels are slugs.
Names = Mapping[tuple[str, Any], str]


@dataclass(frozen=True)
class Words:
    """The names of a campaign's factors and of levels that are slugs; `constant` are not listed."""

    titles: Mapping[str, str]
    names: Names
    constant: frozenset[str] = frozenset()

    def omit_common(self, rows: Iterable[Mapping[str, Any]]) -> "Words":
        """The words for a table of these levels: what is the same in all rows is not listed.

        If nothing varies, the factor that goes across the campaign's own table is listed.
        """
        level_rows = list(rows)
        same = constant(level_rows)
        if level_rows and len(same) == len(level_rows[0]):
            same -= {max(same, key=lambda name: fitness(name, 1), default="")}
        return replace(self, constant=same)

    def title(self, name: str) -> str:
        """A factor's title."""
        return self.titles.get(name) or known_title(name)

    def level(self, name: str, level: Any) -> Any:
        """A level as readers know it."""
        if not isinstance(level, str):
            return format_level(level)
        return self.names.get((name, level)) or choice_title(name, level) or level

    def named(self, name: str, level: Any) -> str:
        """Factor and level: "Clients 8", "Server Rack 2", "PostgreSQL 16.14", "one table"."""
        title = "PostgreSQL" if name == "version" else self.title(name)
        text = str(self.level(name, level))
        return text if says_itself(name, level) else f"{title} {text}"

    def listed(self, levels: Mapping[str, Any]) -> str:
        """Several levels in one line."""
        return ", ".join(
            self.named(name, level) for name, level in self.varied(levels).items()
        )

    def varied(self, levels: Mapping[str, Any]) -> dict[str, Any]:
        """These levels without those of constant factors."""
        return {
            name: level for name, level in levels.items() if name not in self.constant
        }


def constant(rows: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The factors that have one level in all of these rows."""
    shared = [
        {(name, repr(level)) for name, level in levels.items()} for levels in rows
    ]
    return (
        frozenset(name for name, _level in set.intersection(*shared))
        if shared
        else frozenset()
    )


@cache
def _choices() -> Mapping[tuple[str, str], str]:
    """The English titles of the named levels of all scenarios, where one name has one title."""
    titles_of: dict[tuple[str, str], set[str]] = defaultdict(set)
    for scenario in registry.known():
        for factor in scenario.factors:
            choices = (
                getattr(factor, "choices", {}) if factor.name not in OF_TOOLS else {}
            )
            for choice, title in choices.items():
                titles_of[factor.name, choice].add(title)
    return {
        key: title
        for key, (title, *further_titles) in titles_of.items()
        if not further_titles and title != key[1]
    }


def choice_title(name: str, level: str) -> str:
    """What a scenario calls a level, in the reader's language; empty where it has no other name."""
    title = _choices().get((name, level))
    return _(title) if title else ""


def choice_titles() -> dict[tuple[str, str], str]:
    """The same of all levels."""
    return {key: _(title) for key, title in _choices().items()}


def says_itself(name: str, level: Any) -> bool:
    """Whether a level needs no title before it: "one table", but not "as configured"."""
    return level != AS_CONFIGURED and " " in _choices().get((name, level), "")


def words(campaign: Campaign) -> Words:
    """The names for a campaign. One query each if servers or configurations vary."""
    return Words(
        factor_titles(campaign), names_of_levels([campaign.slug], campaign.factors)
    )


def names_of_levels(
    slugs: Iterable[str], factors: Iterable[str] = (SERVER, CONFIGURATION)
) -> dict[tuple[str, Any], str]:
    """The names of levels that are slugs. One query per factor."""
    name_of: dict[tuple[str, Any], str] = {}
    if SERVER in factors:
        name_of |= {(SERVER, slug): name for slug, name in _servers(slugs).items()}
    if CONFIGURATION in factors:
        used = CampaignConfiguration.objects.filter(campaign__slug__in=slugs).order_by(
            "pk"
        )
        pairs = used.values_list("configuration__slug", "configuration__name")
        name_of |= {(CONFIGURATION, slug): _(name) for slug, name in pairs}
    return name_of


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


@cache
def scenario_titles() -> Mapping[str, str]:
    """The titles of all scenarios' factors, in English."""
    every = [factor for scenario in registry.known() for factor in scenario.factors]
    return {factor.name: factor.title for factor in (*common_factors.EVERY, *every)}


def known_title(name: str) -> str:
    """What a factor or a label is called in any campaign; else what its name says."""
    if title := scenario_titles().get(name):
        return _(title)
    return own_titles().get(name) or term(name)


def factor_titles(campaign: Campaign) -> dict[str, str]:
    """The factors of the campaign's scenario in the reader's language, by name."""
    if not registry.knows(campaign.scenario.slug):
        return own_titles()
    factors = registry.get(campaign.scenario.slug, campaign.factors).factors
    title_of = {factor.name: _(factor.title) for factor in factors}
    return {**own_titles(), SIDE: _("A/A side"), **title_of}


def factor_title(campaign: Campaign, name: str | None) -> str:
    """The title of one factor; what its name says if the scenario has only data."""
    return factor_titles(campaign).get(name) or known_title(name) if name else ""


def constants(campaign: Campaign) -> list[tuple[str, str]]:
    """(title, value) of what a campaign does not vary: factors with one level, and parameters.

    The server, the configuration and the PostgreSQL that is measured are no such factors. Of
    uploads, whose factors their cells have, one query.
    """
    names = words(campaign)
    levels = {
        name: values[0] for name, values in campaign.factors.items() if len(values) == 1
    }
    if not campaign.factors:
        rows = [cell.levels for cell in current(campaign)]
        levels = (
            {name: rows[0][name] for name in rows[0] if name in constant(rows)}
            if rows
            else {}
        )
    of_factors = [
        (names.title(name), str(names.level(name, level)))
        for name, level in levels.items()
        if name not in SUBJECT and name not in (SERVER, CONFIGURATION)
    ]
    return of_factors + parameter_texts(campaign)


def parameter_texts(campaign: Campaign) -> list[tuple[str, str]]:
    """(title, value with its unit) of what the scenario keeps constant."""
    return [
        (
            title,
            f"{quantity(value) if isinstance(value, int | float) else value} {unit}".strip(),
        )
        for title, value, unit in parameters(campaign)
    ]


def parameters(campaign: Campaign) -> list[tuple[str, Any, str]]:
    """(title, value, unit) of what the scenario keeps constant; a 0 or 1 in words if it has any."""
    slug = campaign.scenario.slug
    scenario_parameters = registry.get(slug).parameters if registry.knows(slug) else ()
    parameter_of = {parameter.name: parameter for parameter in scenario_parameters}
    return [
        _parameter(parameter_of[name], value)
        if name in parameter_of
        else (term(name), value, "")
        for name, value in campaign.parameters.items()
        # A key in the database, which its page says as a link.
        if name != trial.OF_CAMPAIGN
    ]


def _parameter(scenario_parameter: Parameter, value: Any) -> tuple[str, Any, str]:
    if value == 0 and scenario_parameter.zero:
        return _(scenario_parameter.title), _(scenario_parameter.zero), ""
    if value == 1 and scenario_parameter.one:
        return _(scenario_parameter.title), _(scenario_parameter.one), ""
    return (
        _(scenario_parameter.title),
        value,
        _(scenario_parameter.unit) if scenario_parameter.unit else "",
    )
