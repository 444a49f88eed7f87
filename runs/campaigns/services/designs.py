"""Designs: a draft resolved into cells, installations, tools, settings and machines.

Estimate, checks, preflight, plans and pages read the design and do not query the database again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import filterfalse, islice, product
from math import prod
from typing import Any

from runs.campaigns.services.campaign_limits import MOST_CELLS, MOST_VARIANTS
from runs.campaigns.services.drafts import SIDES, Draft
from runs.cells.selectors.series_cells import CONFIGURATION, SERVER, SIDE, VERSION
from runs.configurations.services import fitted_configurations
from runs.configurations.services.contents import Content, content
from runs.configurations.services.fitted_configurations import InstallationFit
from runs.execution.clusters.preparing import BYTES_TO_SPARE
from runs.execution.evidence import evidence
from runs.execution.machine import monitors
from runs.models import Configuration, Installation, Server
from runs.postgresql_settings.fitting import Fitted
from runs.scenarios import arrangements, registry
from runs.scenarios.definition import ClusterOptions, Level, Requirement, Scenario
from runs.servers.services import campaign_builds
from runs.servers.services.tools import Tools, installed, tools_among

# A draft with more cells is refused, and no more than this many are looked at.


@dataclass(frozen=True)
class Variant:
    """What factors outside the scenario set for a cell: a configuration, varied settings."""

    levels: Mapping[str, Level]
    configuration: Configuration | None
    content: Content
    varied: Mapping[str, str]


@dataclass(frozen=True)
class DesignCell:
    """A combination of levels, and everything that its runs need.

    `refusal` is the reason why its version cannot run it.
    """

    installation: Installation
    levels: Mapping[str, Any]
    variant: Variant
    fitted: Fitted
    cluster: ClusterOptions
    refusal: Requirement | None

    @property
    def initdb_options(self) -> list[str]:
        """initdb options: those of the scenario, then those of the configuration."""
        return [*self.cluster.initdb_options, *self.variant.content.initdb_options]

    @property
    def cluster_settings(self) -> dict[str, str]:
        """Settings: the configuration overrides the scenario's wishes, and the scenario's required
        settings override the configuration."""
        return {**self.cluster.settings, **self.fitted.settings, **self.cluster.required}


@dataclass(frozen=True)
class Part:
    """One server's part of a design. `present` is all that is installed there.

    `left_out` are the cells that their version cannot run, where its other cells and other
    versions' cells of the same level remain.
    """

    server: Server
    installations: tuple[Installation, ...]
    present: Sequence[Installation]
    tools: Tools | None
    fits: tuple[InstallationFit, ...]
    cells: tuple[DesignCell, ...]
    left_out: tuple[DesignCell, ...] = ()

    @cached_property
    def loaded(self) -> tuple[DesignCell, ...]:
        """One cell for each cluster that is loaded, whichever runs then copy it."""
        made: dict[str, DesignCell] = {}
        for each in self.cells:
            settings, options = each.cluster_settings, each.initdb_options
            made_of = (each.installation.pk, settings, options, each.cluster.data)
            made.setdefault(repr(made_of), each)
        return tuple(made.values())


@dataclass(frozen=True)
class Machine:
    """A load generator, or a machine for further clusters, and what is installed there."""

    server: Server
    present: Sequence[Installation]


@dataclass(frozen=True)
class Design:
    """A draft with everything that follows from it.

    `factors` has every factor, with its levels in display order. `count` is the number of all
    cells; the parts have at most MOST_CELLS of them, and at most MOST_VARIANTS variants.
    """

    draft: Draft
    scenario: Scenario
    factors: Mapping[str, Sequence[Level]]
    variants: tuple[Variant, ...]
    parts: tuple[Part, ...]
    generators: tuple[Machine, ...]
    cluster_machines: tuple[Machine, ...]
    count: int

    @property
    def has_all_variants(self) -> bool:
        """Whether all combinations of configurations and settings are included."""
        return len(self.variants) < MOST_VARIANTS

    @property
    def cells(self) -> list[DesignCell]:
        """The cells of all servers, in display order."""
        return [cell for part in self.parts for cell in part.cells]

    @property
    def left_out(self) -> list[DesignCell]:
        """The cells of all servers that are not measured, since their version cannot run them."""
        return [cell for part in self.parts for cell in part.left_out]

    @property
    def kind(self) -> str:
        """The kind of its topology; empty if every cell has one cluster, and nothing before it."""
        scenario = self.scenario
        is_arranged = arrangements.NAME in {factor.name for factor in scenario.factors} or any(
            scenario.arrangement(cell.installation.version_num, cell.levels) for cell in self.cells
        )
        return scenario.kind if is_arranged else ""

    @property
    def fits(self) -> list[InstallationFit]:
        """What each installation gets from each configuration."""
        return [fit for part in self.parts for fit in part.fits]

    @property
    def is_complete(self) -> bool:
        """Whether every parameter is given, and the scenario knows every level."""
        given, scenario = self.draft, self.scenario
        return all(
            [given.parameters.get(each.name) is not None for each in scenario.parameters]
            + [
                factor.accepts(level)
                for factor in scenario.factors
                for level in given.levels.get(factor.name, ())
            ]
        )

    def seconds(self, cell: DesignCell) -> tuple[float, float]:
        """Rough times of (loading its cluster, a run). Only for a complete design."""
        return self.scenario.procedure.seconds({**self.draft.parameters, **cell.levels})

    def needed_bytes(self, part: Part) -> int | None:
        """The free space that a server needs; None for an incomplete design."""
        if not self.is_complete:
            return None
        given, scenario = self.draft.parameters, self.scenario
        sizes = [
            (scenario.procedure.sizes({**given, **each.levels}), scenario.changes_data(each.levels))
            for each in part.loaded
        ]
        # Runs that write keep templates only if there is room for one more cluster.
        shared = sum(each.disk_bytes for each, writes in sizes if not writes)
        own = max((each.disk_bytes for each, writes in sizes if writes), default=0)
        further = self.further(part) * max((each.disk_bytes for each, _writes in sizes), default=0)
        run_bytes = max((each.run_bytes for each, _writes in sizes), default=0)
        recorded = monitors.needed_bytes(given)
        return shared + own + further + run_bytes + recorded + BYTES_TO_SPARE

    def further(self, part: Part) -> int:
        """How many clusters a run has on its server at most, besides its own."""
        if self.cluster_machines:
            return 0
        return max(
            (
                len(self.scenario.arrangement(each.installation.version_num, each.levels))
                for each in part.cells
            ),
            default=0,
        )


def resolve(draft: Draft) -> Design:
    """The design of a draft, even one with problems. One query for any number of machines.

    The servers' hardware is read unless it is passed in. Raises KeyError for a scenario
    that BenchLab cannot run.
    """
    scenario = registry.get(draft.scenario, draft.levels)
    present = installed([*draft.servers, *draft.generators, *draft.cluster_servers])
    varied = _varied(draft, scenario)
    variants = tuple(islice(_variants(draft), MOST_VARIANTS))
    told_apart = campaign_builds.levels(draft.installations)
    combinations = list(islice(_combinations(draft, scenario, varied), MOST_CELLS))
    parts, room = [], MOST_CELLS
    for server in draft.servers:
        part = _part(draft, scenario, server, present, variants, combinations, told_apart, room)
        parts.append(part)
        room -= len(part.cells) + len(part.left_out)
    is_cut = len(combinations) == MOST_CELLS
    own = prod(map(len, varied.values())) if is_cut else len(combinations)
    return Design(
        draft=draft,
        scenario=scenario,
        factors=_factors(draft, varied, told_apart),
        variants=variants,
        parts=tuple(parts),
        generators=tuple(Machine(each, present[each.pk]) for each in draft.generators),
        cluster_machines=tuple(Machine(each, present[each.pk]) for each in draft.cluster_servers),
        count=sum(len(part.installations) for part in parts)
        * len(draft.configurations)
        * prod(len(set(values)) for values in draft.settings.values())
        * own
        - sum(len(part.left_out) for part in parts),
    )


def _part(
    draft: Draft,
    scenario: Scenario,
    server: Server,
    present: Mapping[int, Sequence[Installation]],
    variants: Sequence[Variant],
    combinations: Sequence[Mapping[str, Level]],
    told_apart: Mapping[int, Mapping[str, Level]],
    room: int,
) -> Part:
    """A server's part of a draft, with at most `room` cells."""
    is_alone = len(draft.servers) == 1
    chosen = [each for each in draft.installations if is_alone or each.server_id == server.pk]
    installations = tuple(sorted(chosen, key=lambda each: each.version_num))
    where: dict[str, Level] = {} if is_alone else {SERVER: server.slug}
    hardware = server.hardware
    memory = hardware.memory_bytes if hardware else None
    fits = tuple(_fits(installations, variants, memory))
    every = (
        _cell(
            draft,
            scenario,
            fit,
            variant,
            {
                VERSION: fit.installation.version,
                **told_apart[fit.installation.pk],
                **where,
                **variant.levels,
                **own,
            },
        )
        for fit, variant in zip(fits, [*variants] * len(installations), strict=True)
        for own in combinations
    )
    cells, left_out = _parted(list(islice(every, room)))
    return Part(
        server=server,
        installations=installations,
        present=present[server.pk],
        tools=tools_among(present[server.pk], draft.client),
        fits=fits,
        cells=cells,
        left_out=left_out,
    )


def _parted(cells: Sequence[DesignCell]) -> tuple[tuple[DesignCell, ...], tuple[DesignCell, ...]]:
    """The cells to measure, and those to leave out.

    A version without any cell, or a level without any version, stays: that is a mistake.
    """
    able = [each for each in cells if each.refusal is None]
    versions = {each.installation.pk for each in able}
    levels = {pair for each in able for pair in each.levels.items()}

    def goes(each: DesignCell) -> bool:
        refused = each.refusal and (each.refusal.factor, each.levels.get(each.refusal.factor))
        return each.installation.pk in versions and refused in levels

    return tuple(filterfalse(goes, cells)), tuple(filter(goes, cells))


def _fits(
    installations: Sequence[Installation], variants: Sequence[Variant], memory: int | None
) -> Iterator[InstallationFit]:
    for each in installations:
        major = fitted_configurations.major_of(each)
        for variant in variants:
            fitted = fitted_configurations.fitted(
                variant.content, major, memory_bytes=memory, varied=variant.varied
            )
            yield InstallationFit(each, fitted, variant.configuration, variant.varied)


def _combinations(
    draft: Draft, scenario: Scenario, varied: Mapping[str, Sequence[Level]]
) -> Iterator[dict[str, Level]]:
    for combination in product(*varied.values()):
        levels = dict(zip(varied, combination, strict=True))
        # The scenario is not asked about levels that it does not know.
        if not _are_known(scenario, levels) or scenario.measures(levels, draft.parameters):
            yield levels


def _are_known(scenario: Scenario, levels: Mapping[str, Any]) -> bool:
    return all(each.accepts(levels.get(each.name)) for each in scenario.factors)


def _cell(
    draft: Draft,
    scenario: Scenario,
    fit: InstallationFit,
    variant: Variant,
    levels: Mapping[str, Any],
) -> DesignCell:
    installation = fit.installation
    wanted = ClusterOptions()
    if _are_known(scenario, levels):
        wanted = scenario.cluster(installation.version_num, levels)
    if draft.treatment.statements:
        library = {"shared_preload_libraries": evidence.LIBRARY}
        wanted = replace(wanted, required={**wanted.required, **library})
    return DesignCell(
        installation=installation,
        levels=levels,
        variant=variant,
        fitted=fit.fitted,
        cluster=wanted,
        refusal=scenario.refusal(installation.version_num, levels),
    )


def _variants(draft: Draft) -> Iterator[Variant]:
    """Each configuration with each combination of the varied settings, in display order."""
    settings = {name: list(dict.fromkeys(values)) for name, values in draft.settings.items()}
    configurations = draft.configurations
    for configuration in configurations:
        slug = configuration.slug if configuration else ""
        own: dict[str, Level] = {CONFIGURATION: slug} if len(configurations) > 1 else {}
        for combination in product(*settings.values()):
            varied = dict(zip(settings, combination, strict=True))
            yield Variant(own | varied, configuration, content(configuration), varied)


def _varied(draft: Draft, scenario: Scenario) -> dict[str, list[Level]]:
    """The scenario's factors with each level once, in display order; without empty ones."""
    factors = {factor.name: factor for factor in scenario.factors}
    ordered = {
        name: factors[name].ordered(given)
        for name, given in draft.levels.items()
        if name in factors
    }
    ordered |= {name: [] for name in factors if name not in ordered}
    return ordered | ({SIDE: list(SIDES)} if draft.is_a_a else {})


def _factors(
    draft: Draft,
    varied: Mapping[str, Sequence[Level]],
    told_apart: Mapping[int, Mapping[str, Level]],
) -> dict[str, list[Level]]:
    """All factors: versions, builds, servers, configurations, settings, the scenario's own."""
    ordered = sorted(draft.installations, key=lambda each: each.version_num)
    found: dict[str, list[Level]] = {VERSION: list(dict.fromkeys(each.version for each in ordered))}
    for name in (campaign_builds.BLOCK_SIZE, campaign_builds.BUILD, campaign_builds.BINDIR):
        levels = [told_apart[each.pk][name] for each in ordered if name in told_apart[each.pk]]
        if levels:
            found[name] = list(dict.fromkeys(levels))
    if len(draft.servers) > 1:
        found[SERVER] = [each.slug for each in draft.servers]
    if len(draft.configurations) > 1:
        found[CONFIGURATION] = [each.slug if each else "" for each in draft.configurations]
    found |= {name: list(dict.fromkeys(values)) for name, values in draft.settings.items()}
    return found | {name: list(levels) for name, levels in varied.items()}
