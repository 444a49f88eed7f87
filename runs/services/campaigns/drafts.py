"""Drafts: a campaign before it is queued, its cells, and what they need of their servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from runs.execution import recording
from runs.execution.preparing import BYTES_TO_SPARE
from runs.execution.treatment import UNTREATED, Treatment
from runs.models import Configuration, Installation, Server
from runs.scenarios import registry
from runs.scenarios.definition import Level, Scenario
from runs.selectors.compare.series_cells import SERVER
from runs.services.configurations import fitting as fitted_configurations
from runs.services.configurations.fitting import InstallationFit

MOST_REPEATS = 100
MOST_ATTEMPTS = 20
# The factor of an A/A campaign, and its two labels for the same thing.
SIDE = "side"
SIDES: tuple[Level, ...] = ("A", "B")
HIGHEST_PRIORITY = 100


@dataclass(frozen=True)
class Draft:
    """What a person asks for. `levels` maps each factor of the scenario to its levels.

    `client` is the installation whose pgbench puts the load on, for every version; by default the
    newest on the server. `most_attempts` is how often each run is begun without anybody asking;
    None is what this BenchLab is set to. With `wanted_half_width` (0.02 is ±2 %) a cell gets more
    than `repeats`, up to `most_repeats`, while its interval is wider. An A/A campaign measures
    everything twice under two labels, which shows what the server makes of no difference. The
    load comes from `generators`, each with its newest pgbench, or from the server itself.

    With `more_servers` the same is measured on each of them, at the same time, and the server is
    a factor. `installations` are then those of all servers; each server measures its own. Of
    `client` each takes its own pgbench of the same version. `treatment` is what is done to the
    machines of every run.
    """

    title: str
    scenario: str
    server: Server
    installations: Sequence[Installation]
    levels: Mapping[str, Sequence[Level]]
    parameters: Mapping[str, int]
    repeats: int
    seed: int | None = None
    configuration: Configuration | None = None
    client: Installation | None = None
    generators: Sequence[Server] = ()
    priority: int = 0
    most_attempts: int | None = None
    wanted_half_width: float | None = None
    most_repeats: int | None = None
    is_a_a: bool = False
    more_servers: Sequence[Server] = ()
    treatment: Treatment = UNTREATED

    @property
    def servers(self) -> tuple[Server, ...]:
        """The database servers, each once, the baseline first."""
        return tuple({each.pk: each for each in (self.server, *self.more_servers)}.values())


def most_repeats(draft: Draft) -> int:
    """How many repeats a cell may get."""
    is_adaptive = draft.wanted_half_width is not None and draft.most_repeats is not None
    return max(draft.repeats, draft.most_repeats or 0) if is_adaptive else draft.repeats


def parts(draft: Draft) -> list[Draft]:
    """What each server does of a draft: a draft for it alone, in the order of the servers."""
    if len(draft.servers) == 1:
        return [replace(draft, more_servers=())]
    return [
        replace(
            draft,
            server=server,
            more_servers=(),
            installations=[each for each in draft.installations if each.server_id == server.pk],
        )
        for server in draft.servers
    ]


def configuration_fits(draft: Draft) -> list[InstallationFit]:
    """What each installation of a draft gets of its configuration, by server and version."""
    found = []
    for part in parts(draft):
        hardware = part.server.hardware
        found += fitted_configurations.fits(
            part.configuration,
            sorted(part.installations, key=lambda each: each.version_num),
            memory_bytes=hardware.memory_bytes if hardware else None,
        )
    return found


def cells(draft: Draft) -> list[tuple[Installation, dict[str, Any]]]:
    """The cells of a draft: each installation with each combination of levels, in display order.

    An installation is one of one server: with several servers that is a level of each cell.
    """
    is_on_several = len(draft.servers) > 1
    found = []
    for part in parts(draft):
        where = {SERVER: part.server.slug} if is_on_several else {}
        found += _cells_on_one(part, where)
    return found


def _cells_on_one(draft: Draft, where: dict[str, Any]) -> list[tuple[Installation, dict[str, Any]]]:
    versions = [installation.version for installation in draft.installations]
    ordered = levels(draft)
    scenario = registry.get(draft.scenario)
    found = []
    for installation in sorted(draft.installations, key=lambda each: each.version_num):
        base: dict[str, Any] = {"version": installation.version}
        if versions.count(installation.version) > 1:
            base["bindir"] = installation.bindir
        found += [
            (installation, base | where | dict(zip(ordered, combination, strict=True)))
            for combination in product(*ordered.values())
            if _is_designed(scenario, dict(zip(ordered, combination, strict=True)), draft)
        ]
    return found


def _is_designed(scenario: Scenario, levels: Mapping[str, Level], draft: Draft) -> bool:
    """Whether the scenario measures that cell; of levels that it does not know it is not asked."""
    return not _are_known(scenario, levels) or scenario.measures(levels, draft.parameters)


def _are_known(scenario: Scenario, levels: Mapping[str, Any]) -> bool:
    return all(each.accepts(levels.get(each.name)) for each in scenario.factors)


def further_clusters(draft: Draft) -> int:
    """How many clusters a run has at the most besides its own."""
    scenario = registry.get(draft.scenario)
    return max(
        (
            len(scenario.arrangement(each.version_num, levels))
            for each, levels in cells(draft)
            if _are_known(scenario, levels)
        ),
        default=0,
    )


def factors(draft: Draft) -> dict[str, list[Level]]:
    """All that varies, with its levels in display order: version, server, the scenario's own."""
    installed = sorted(draft.installations, key=lambda each: each.version_num)
    found: dict[str, list[Level]] = {
        "version": list(dict.fromkeys(each.version for each in installed))
    }
    if len(draft.servers) > 1:
        found[SERVER] = [each.slug for each in draft.servers]
    return found | levels(draft)


def levels(draft: Draft) -> dict[str, list[Level]]:
    """The levels of each factor, each once, in display order; none of a factor that has none."""
    factors = {factor.name: factor for factor in registry.get(draft.scenario).factors}
    ordered = {
        name: factors[name].ordered(given)
        for name, given in draft.levels.items()
        if name in factors
    }
    ordered |= {name: [] for name in factors if name not in ordered}
    return ordered | ({SIDE: list(SIDES)} if draft.is_a_a else {})


def loaded(draft: Draft, scenario: Scenario) -> list[dict[str, Any]]:
    """The levels of one cell for each cluster that is loaded, whoever then copies it."""
    made = {
        (each.pk, repr(scenario.cluster(each.version_num, levels))): levels
        for each, levels in cells(draft)
    }
    return list(made.values())


def can_be_sized(draft: Draft, scenario: Scenario) -> bool:
    """Whether it has all parameters, and no level that the scenario does not know."""
    known = {factor.name: factor for factor in scenario.factors}
    return all(draft.parameters.get(each.name) is not None for each in scenario.parameters) and all(
        known[name].accepts(level)
        for name, given in draft.levels.items()
        if name in known
        for level in given
    )


def needed_bytes(draft: Draft) -> int | None:
    """The free space that a draft for one server needs there; None while a parameter is missing."""
    scenario = registry.get(draft.scenario)
    if not can_be_sized(draft, scenario):
        return None
    sizes = [
        (scenario.procedure.sizes({**draft.parameters, **levels}), scenario.changes_data(levels))
        for levels in loaded(draft, scenario)
    ]
    # Runs that write keep templates only as long as there is room for one more cluster.
    shared = sum(each.disk_bytes for each, writes in sizes if not writes)
    own = max((each.disk_bytes for each, writes in sizes if writes), default=0)
    run_bytes = max((each.run_bytes for each, _writes in sizes), default=0)
    recorded = recording.needed_bytes(draft.parameters)
    further = further_clusters(draft) * max((each.disk_bytes for each, _writes in sizes), default=0)
    return shared + own + further + run_bytes + recorded + BYTES_TO_SPARE
