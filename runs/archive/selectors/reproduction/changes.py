"""What is measured otherwise than in the publication: one computation for designs and campaigns.

A campaign keeps what was found when it was queued, as codes and values; they are worded when shown.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from runs.archive.selectors.reproduction import printed
from runs.archive.selectors.reproduction.printed import BLOCK_SIZE, VERSION
from runs.cells.selectors import versions
from runs.cells.selectors.level_names import USUAL
from runs.execution.machine.machine_facts import MEMORY_GRAIN_BYTES
from runs.models import (
    Campaign,
    CampaignConfiguration,
    Configuration,
    HardwareProfile,
    PublishedNode,
    Server,
    TopologyNode,
)
from runs.scenarios import registry
from runs.scenarios.definition import Place, Scenario
from runs.shared.formats import memory

REPEATS, CONFIGURATION, HARDWARE = "repeats", "configuration", "hardware"
MACHINES, GENERATOR = "machines", "generator"
TITLES = {
    VERSION: gettext_lazy("Versions"),
    REPEATS: gettext_lazy("Repeats"),
    CONFIGURATION: gettext_lazy("Configuration"),
    HARDWARE: gettext_lazy("Hardware"),
    MACHINES: gettext_lazy("Machines of the database"),
    GENERATOR: gettext_lazy("Load generator"),
}
# Factors of publications that no scenario has, and no column names.
FACTORS = {
    "os": gettext_lazy("Operating system"),
    "row": gettext_lazy("Row of the table"),
    "object": gettext_lazy("Table or query"),
    "year": gettext_lazy("Year"),
    "relation": gettext_lazy("Relation"),
    "direction": gettext_lazy("Direction"),
    "stack": gettext_lazy("Stack"),
    "step": gettext_lazy("Step"),
    "table": gettext_lazy("Table"),
    "data": gettext_lazy("Data"),
    "semaphore_operation": gettext_lazy("Operation of the semaphore"),
    "vacuum_cost_delay": "vacuum_cost_delay",
    "test": gettext_lazy("Test"),
}
NO_QUANTITIES = frozenset({"year", "row"})
# By the printed parameter's name.
PRINTED_TITLES = {"scale": gettext_noop("Scale factor")}
GENERATORS = {
    "own": gettext_lazy("on a machine of its own"),
    "shared": gettext_lazy("on the database's machine"),
}
# Machines that keep data or run queries; a bastion or a power supply is none of the arrangement.
OF_DATABASE = frozenset(
    {
        "database",
        "datanode",
        "foreign_server",
        "gtm",
        "publisher",
        "standby",
        "subscriber",
    }
)
Value = Any


@dataclass(frozen=True)
class Change:
    """Something that differs from the publication, and why.

    `code` names a factor, a parameter, or one of TITLES. `printed` and `chosen` are numbers in
    `unit`, texts, lists of levels, or machines; None is not printed. `unknown` says what more was
    printed or measured that nobody knows.
    """

    code: str
    printed: Value
    chosen: Value
    unit: str = ""
    unknown: str = ""
    reason: str = ""
    title: str = ""

    @property
    def name(self) -> str:
        """In the reader's language."""
        if self.title:
            return _(self.title)
        usual = TITLES.get(self.code) or FACTORS.get(self.code) or USUAL.get(self.code)
        return str(usual) if usual else self.code.replace("_", " ").capitalize()

    @property
    def printed_text(self) -> str:
        """The printed value for readers."""
        text = self._worded(self.printed)
        return f"{text} ({_(self.unknown)})" if self.unknown else text

    @property
    def chosen_text(self) -> str:
        """The value here for readers."""
        return self._worded(self.chosen)

    @property
    def ratio(self) -> float:
        """How many times the larger number is the smaller one; 0 where one is no number, or 0.

        A factor of one level is that level.
        """
        sides = [
            side[0] if isinstance(side, list) and len(side) == 1 else side
            for side in (self.printed, self.chosen)
        ]
        if any(
            isinstance(side, bool) or not isinstance(side, int | float)
            for side in sides
        ):
            return 0.0
        least, most = sorted(map(abs, sides))
        return most / least if least else 0.0

    def _worded(self, value: Value) -> str:
        if value is None:
            return _("not printed")
        if isinstance(value, Mapping):
            return _machine(value)
        if isinstance(value, list):
            return ", ".join(map(self._worded, value)) or "–"
        if self.code == GENERATOR:
            return str(GENERATORS[value])
        if self.code == CONFIGURATION:
            return _(str(value))
        if self.code in NO_QUANTITIES:
            return str(value)
        return (
            f"{value:,} {self.unit}".strip()
            if isinstance(value, int | float)
            else str(value)
        )


@dataclass(frozen=True)
class Conditions:
    """A campaign, or what will be one, in the terms of its scenario. Block sizes in kB."""

    scenario: Scenario
    levels: Mapping[str, Sequence[Any]]
    parameters: Mapping[str, Any]
    repeats: int
    versions: Sequence[str]
    block_sizes: Collection[int]
    configurations: Sequence[Configuration]
    hardware: Sequence[HardwareProfile | None]
    machines: int = 1
    has_generator: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)


def changes(published: Campaign, ours: Conditions) -> tuple[Change, ...]:
    """What differs: an order alone does not, nor a minor version. Three queries."""
    published_levels = printed.levels(published)
    place_of_scenario = ours.scenario.places.get(published.slug, Place())
    node = printed.database_node(published)
    nodes = list(PublishedNode.objects.filter(table__campaign=published))
    return (
        *_compare_versions(ours, published_levels),
        *_compare_factors(published, ours, place_of_scenario, published_levels),
        *_compare_parameters(published, ours, published_levels),
        *_compare_method(published, ours, node),
        *_compare_machines(ours, node, nodes),
    )


def list_changes(campaign: Campaign) -> tuple[Change, ...]:
    """What differs from what it reproduces, as kept; else computed, which takes ten queries."""
    if campaign.changes is not None:
        return tuple(Change(**change) for change in campaign.changes)
    campaigns = Campaign.objects.select_related("published__source")
    published = campaigns.filter(
        slug=campaign.reproduces, published__isnull=False
    ).first()
    if published is None:
        return ()
    return changes(published, _conditions(campaign))


def _conditions(campaign: Campaign) -> Conditions:
    cells = campaign.cells.order_by("version_num", "ordinal").select_related(
        "installation"
    )
    installations = [cell.installation for cell in cells if cell.installation]
    several = CampaignConfiguration.objects.filter(campaign=campaign).order_by(
        "ordinal"
    )
    configuration = campaign.configuration
    servers = Server.objects.filter(runs__campaign=campaign).distinct().order_by("name")
    # A single server is in its topology in each of its roles.
    placed: dict[str, set[int]] = defaultdict(set)
    for node in campaign.topology.nodes.all() if campaign.topology else ():
        placed[node.role].add(node.server_id)
    databases = placed[TopologyNode.Role.DATABASE]
    return Conditions(
        scenario=registry.get(campaign.scenario.slug),
        levels=campaign.factors,
        parameters=campaign.parameters,
        repeats=campaign.repeats,
        versions=list(dict.fromkeys(cell.version for cell in cells)),
        block_sizes={
            (installation.block_size or 8192) // 1024 for installation in installations
        },
        configurations=[configuration]
        if configuration
        else [
            campaign_configuration.configuration for campaign_configuration in several
        ],
        hardware=[server.hardware for server in servers.select_related("hardware")],
        machines=1 + len(placed[TopologyNode.Role.CLUSTERS] - databases),
        has_generator=bool(placed[TopologyNode.Role.LOAD_GENERATOR] - databases),
    )


def stored(changes_found: Sequence[Change]) -> list[dict[str, Value]]:
    """As a campaign keeps them: without reasons, which are of a design."""
    names = ("code", "printed", "chosen", "unit", "unknown", "title")
    return [{name: getattr(change, name) for name in names} for change in changes_found]


def _compare_versions(
    ours: Conditions, published_levels: Mapping[str, Sequence[Any]]
) -> Iterator[Change]:
    theirs = [
        text
        for version in published_levels.get(VERSION, ())
        if versions.major(text := str(version))
    ]
    here = list(dict.fromkeys(ours.versions))
    if {versions.major(version) for version in theirs} != {
        versions.major(version) for version in here
    }:
        yield _change(ours, VERSION, theirs or None, here)
    if BLOCK_SIZE in published_levels:
        sizes = [int(size) for size in published_levels[BLOCK_SIZE]]
        if set(sizes) != set(ours.block_sizes):
            yield _change(ours, BLOCK_SIZE, sizes, sorted(ours.block_sizes), unit="kB")


def _compare_factors(
    published: Campaign,
    ours: Conditions,
    place_of_scenario: Place,
    published_levels: Mapping[str, Sequence[Any]],
) -> Iterator[Change]:
    scenario = ours.scenario
    for factor in scenario.factors:
        theirs = printed.list_levels(
            published, place_of_scenario, factor.name, published_levels
        )
        here = list(ours.levels.get(factor.name, ()))
        unknown = place_of_scenario.unknown.get(factor.name, "")
        if unknown or {str(level) for level in theirs} != {
            str(level) for level in here
        }:
            yield _change(
                ours,
                factor.name,
                theirs or None,
                here,
                title=factor.title,
                unknown=unknown,
            )
    varied = {factor.name for factor in (*scenario.factors, *scenario.parameters)}
    # A factor of the scenario that the publication has under another name.
    reproduced_levels = published.published.reproduce.get("levels", {})
    if any(
        len(levels) > 1
        for name, levels in reproduced_levels.items()
        if name not in published.factors
    ):
        return
    for name, levels in published_levels.items():
        if name not in {*varied, VERSION, BLOCK_SIZE} and len(levels) > 1:
            change = _change(ours, name, list(levels), [])
            yield replace(change, reason=_("what the scenario does not vary"))


def _compare_parameters(
    published: Campaign, ours: Conditions, published_levels: Mapping[str, Sequence[Any]]
) -> Iterator[Change]:
    for parameter in ours.scenario.parameters:
        theirs = printed.parameter(
            published, ours.scenario, parameter, published_levels
        )
        here = ours.parameters.get(parameter.name, parameter.default)
        if theirs == here:
            continue
        if parameter.name in ours.scenario.printed:
            # As it is printed: a scale factor of 10, and not 1,000 percent of it.
            name, times = ours.scenario.printed[parameter.name]
            printed_value = None if theirs is None else _plain(theirs / times)
            change = _change(ours, parameter.name, printed_value, _plain(here / times))
            yield replace(change, title=PRINTED_TITLES.get(name, parameter.title))
            continue
        yield _change(
            ours,
            parameter.name,
            theirs,
            here,
            unit=parameter.unit,
            title=parameter.title,
        )


def _plain(value: float) -> int | float:
    """A whole number without decimals."""
    return int(value) if value == int(value) else value


def _compare_method(
    published: Campaign, ours: Conditions, node: PublishedNode | None
) -> Iterator[Change]:
    if published.known_repeats != ours.repeats:
        yield _change(ours, REPEATS, published.known_repeats, ours.repeats)
    theirs = node.configuration if node else None
    here = [configuration.name for configuration in ours.configurations]
    if [configuration.content_hash for configuration in ours.configurations] != [
        theirs and theirs.content_hash
    ]:
        yield _change(ours, CONFIGURATION, theirs and theirs.name, here)


def _compare_machines(
    ours: Conditions, node: PublishedNode | None, nodes: Sequence[PublishedNode]
) -> Iterator[Change]:
    printed_on = node.hardware if node else None
    theirs = _facts(printed_on)
    here = [_facts(hardware_profile) or {} for hardware_profile in ours.hardware]
    if len(here) != 1 or not _is_same(printed_on, ours.hardware[0]):
        yield _change(ours, HARDWARE, theirs, here)
    databases = sum(published_node.role in OF_DATABASE for published_node in nodes)
    if databases > 1 and databases != ours.machines:
        yield _change(ours, MACHINES, databases, ours.machines)
    has_generator = any(
        published_node.role == "load_generator" for published_node in nodes
    )
    if nodes and has_generator != ours.has_generator:
        names = [
            "own" if is_own else "shared"
            for is_own in (has_generator, ours.has_generator)
        ]
        yield _change(ours, GENERATOR, *names)


def _change(
    ours: Conditions, code: str, printed: Value, chosen: Value, **texts: str
) -> Change:
    return Change(code, printed, chosen, reason=ours.reasons.get(code, ""), **texts)


def _is_same(
    base_profile: HardwareProfile | None, head_profile: HardwareProfile | None
) -> bool:
    """By what decides about a figure; the same memory is printed in many ways."""
    sides = [
        dict(_facts(hardware_profile) or {})
        for hardware_profile in (base_profile, head_profile)
    ]
    if (
        base_profile
        and head_profile
        and base_profile.memory_bytes
        and head_profile.memory_bytes
    ):
        memory = [side.pop("memory", None) for side in sides]
        apart = (
            abs(base_profile.memory_bytes - head_profile.memory_bytes)
            > MEMORY_GRAIN_BYTES
        )
        return None not in memory and not apart and sides[0] == sides[1]
    return sides[0] == sides[1] != {}


def _facts(hardware: HardwareProfile | None) -> dict[str, Value] | None:
    """What decides about a figure; None if nothing is known."""
    if hardware is None:
        return None
    facts = {
        "cpu": hardware.cpu_model,
        "cores": hardware.cores,
        "threads": None if hardware.cores else hardware.threads,
        "memory": hardware.memory_printed or hardware.memory_bytes,
    }
    return {name: value for name, value in facts.items() if value} or None


def _machine(facts: Mapping[str, Value]) -> str:
    profile = HardwareProfile(
        memory_printed=facts["memory"] if isinstance(facts.get("memory"), str) else "",
        memory_bytes=facts["memory"] if isinstance(facts.get("memory"), int) else None,
    )
    descriptions = (
        facts.get("cpu", ""),
        _("%(count)d cores") % {"count": facts["cores"]} if facts.get("cores") else "",
        _("%(count)d threads") % {"count": facts["threads"]}
        if facts.get("threads")
        else "",
        memory(profile) if facts.get("memory") else "",
    )
    return ", ".join(filter(None, descriptions)) or _("unknown")
