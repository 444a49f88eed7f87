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
        return {
            **self.cluster.settings,
            **self.fitted.settings,
            **self.cluster.required,
        }


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
        loaded_cells: dict[str, DesignCell] = {}
        for design_cell in self.cells:
            settings, options = design_cell.cluster_settings, design_cell.initdb_options
            made_of = (
                design_cell.installation.pk,
                settings,
                options,
                design_cell.cluster.data,
            )
            loaded_cells.setdefault(repr(made_of), design_cell)
        return tuple(loaded_cells.values())


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
        return [cell for server_part in self.parts for cell in server_part.cells]

    @property
    def left_out(self) -> list[DesignCell]:
        """The cells of all servers that are not measured, since their version cannot run them."""
        return [cell for server_part in self.parts for cell in server_part.left_out]

    @property
    def kind(self) -> str:
        """The kind of its topology; empty if every cell has one cluster, and nothing before it."""
        scenario = self.scenario
        is_arranged = arrangements.NAME in {
            factor.name for factor in scenario.factors
        } or any(
            scenario.arrangement(cell.installation.version_num, cell.levels)
            for cell in self.cells
        )
        return scenario.kind if is_arranged else ""

    @property
    def fits(self) -> list[InstallationFit]:
        """What each installation gets from each configuration."""
        return [fit for server_part in self.parts for fit in server_part.fits]

    @property
    def is_complete(self) -> bool:
        """Whether every parameter is given, and the scenario knows every level."""
        design_draft, scenario = self.draft, self.scenario
        return all(
            [
                design_draft.parameters.get(parameter.name) is not None
                for parameter in scenario.parameters
            ]
            + [
                factor.accepts(level)
                for factor in scenario.factors
                for level in design_draft.levels.get(factor.name, ())
            ]
        )

    def seconds(self, cell: DesignCell) -> tuple[float, float]:
        """Rough times of (loading its cluster, a run). Only for a complete design."""
        return self.scenario.procedure.seconds({**self.draft.parameters, **cell.levels})

    def needed_bytes(self, server_part: Part) -> int | None:
        """The free space that a server needs; None for an incomplete design."""
        if not self.is_complete:
            return None
        parameters, scenario = self.draft.parameters, self.scenario
        sizes = [
            (
                scenario.procedure.sizes({**parameters, **design_cell.levels}),
                scenario.changes_data(design_cell.levels),
            )
            for design_cell in server_part.loaded
        ]
        # Runs that write keep templates only if there is room for one more cluster.
        shared = sum(sizes.disk_bytes for sizes, writes in sizes if not writes)
        own_bytes = max(
            (sizes.disk_bytes for sizes, writes in sizes if writes), default=0
        )
        if self.draft.slice_seconds:
            # A loaded template of each, and a copy for each cell.
            own_bytes = sum(sizes.disk_bytes for sizes, _writes in sizes) + len(
                server_part.cells
            ) * max((sizes.disk_bytes for sizes, _writes in sizes), default=0)
            shared = 0
        further_bytes = self.further(server_part) * max(
            (sizes.disk_bytes for sizes, _writes in sizes), default=0
        )
        run_bytes = max((sizes.run_bytes for sizes, _writes in sizes), default=0)
        recorded = monitors.needed_bytes(parameters)
        return (
            shared + own_bytes + further_bytes + run_bytes + recorded + BYTES_TO_SPARE
        )

    def further(self, server_part: Part) -> int:
        """How many clusters a run has on its server at most, besides its own."""
        if self.cluster_machines:
            return 0
        return max(
            (
                len(
                    self.scenario.arrangement(
                        design_cell.installation.version_num, design_cell.levels
                    )
                )
                for design_cell in server_part.cells
            ),
            default=0,
        )


def resolve(draft: Draft) -> Design:
    """The design of a draft, even one with problems. One query for any number of machines.

    The servers' hardware is read unless it is passed in. Raises KeyError for a scenario
    that BenchLab cannot run.
    """
    scenario = registry.get(draft.scenario, draft.levels)
    present = installed(draft.machines)
    varied = _varied(draft, scenario)
    variants = tuple(islice(_variants(draft), MOST_VARIANTS))
    told_apart = campaign_builds.levels(draft.installations)
    combinations = list(islice(_combinations(draft, scenario, varied), MOST_CELLS))
    server_parts, room = [], MOST_CELLS
    for server in draft.servers:
        server_part = _part(
            draft, scenario, server, present, variants, combinations, told_apart, room
        )
        server_parts.append(server_part)
        room -= len(server_part.cells) + len(server_part.left_out)
    is_cut = len(combinations) == MOST_CELLS
    number_of_combinations = (
        prod(map(len, varied.values())) if is_cut else len(combinations)
    )
    return Design(
        draft=draft,
        scenario=scenario,
        factors=_factors(draft, varied, told_apart),
        variants=variants,
        parts=tuple(server_parts),
        generators=tuple(
            Machine(server, present[server.pk]) for server in draft.generators
        ),
        cluster_machines=tuple(
            Machine(server, present[server.pk]) for server in draft.cluster_servers
        ),
        count=sum(len(server_part.installations) for server_part in server_parts)
        * len(draft.configurations)
        * prod(len(set(values)) for values in draft.settings.values())
        * number_of_combinations
        - sum(len(server_part.left_out) for server_part in server_parts),
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
    chosen = [
        installation
        for installation in draft.installations
        if is_alone or installation.server_id == server.pk
    ]
    installations = tuple(
        sorted(chosen, key=lambda installation: installation.version_num)
    )
    server_level: dict[str, Level] = {} if is_alone else {SERVER: server.slug}
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
                **server_level,
                **variant.levels,
                **combination,
            },
        )
        for fit, variant in zip(fits, [*variants] * len(installations), strict=True)
        for combination in combinations
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


def _parted(
    cells: Sequence[DesignCell],
) -> tuple[tuple[DesignCell, ...], tuple[DesignCell, ...]]:
    """The cells to measure, and those to leave out.

    A version without any cell, or a level without any version, stays: that is a mistake.
    """
    able = [cell for cell in cells if cell.refusal is None]
    versions = {cell.installation.pk for cell in able}
    levels = {pair for cell in able for pair in cell.levels.items()}

    def goes(cell: DesignCell) -> bool:
        refused = cell.refusal and (
            cell.refusal.factor,
            cell.levels.get(cell.refusal.factor),
        )
        return cell.installation.pk in versions and refused in levels

    return tuple(filterfalse(goes, cells)), tuple(filter(goes, cells))


def _fits(
    installations: Sequence[Installation],
    variants: Sequence[Variant],
    memory: int | None,
) -> Iterator[InstallationFit]:
    for installation in installations:
        major = fitted_configurations.major_of(installation)
        for variant in variants:
            fitted = fitted_configurations.fitted(
                variant.content, major, memory_bytes=memory, varied=variant.varied
            )
            yield InstallationFit(
                installation, fitted, variant.configuration, variant.varied
            )


def _combinations(
    draft: Draft, scenario: Scenario, varied: Mapping[str, Sequence[Level]]
) -> Iterator[dict[str, Level]]:
    for combination in product(*varied.values()):
        levels = dict(zip(varied, combination, strict=True))
        # The scenario is not asked about levels that it does not know.
        if not _are_known(scenario, levels) or scenario.measures(
            levels, draft.parameters
        ):
            yield levels


def _are_known(scenario: Scenario, levels: Mapping[str, Any]) -> bool:
    return all(factor.accepts(levels.get(factor.name)) for factor in scenario.factors)


def _cell(
    draft: Draft,
    scenario: Scenario,
    fit: InstallationFit,
    variant: Variant,
    levels: Mapping[str, Any],
) -> DesignCell:
    installation = fit.installation
    cluster_options = ClusterOptions()
    if _are_known(scenario, levels):
        cluster_options = scenario.cluster(installation.version_num, levels)
    if draft.treatment.statements:
        library = {"shared_preload_libraries": evidence.LIBRARY}
        cluster_options = replace(
            cluster_options, required={**cluster_options.required, **library}
        )
    return DesignCell(
        installation=installation,
        levels=levels,
        variant=variant,
        fitted=fit.fitted,
        cluster=cluster_options,
        refusal=scenario.refusal(installation.version_num, levels),
    )


def _variants(draft: Draft) -> Iterator[Variant]:
    """Each configuration with each combination of the varied settings, in display order."""
    settings = {
        name: list(dict.fromkeys(values)) for name, values in draft.settings.items()
    }
    configurations = draft.configurations
    for configuration in configurations:
        slug = configuration.slug if configuration else ""
        own_levels: dict[str, Level] = (
            {CONFIGURATION: slug} if len(configurations) > 1 else {}
        )
        for combination in product(*settings.values()):
            varied = dict(zip(settings, combination, strict=True))
            yield Variant(
                own_levels | varied, configuration, content(configuration), varied
            )


def _varied(draft: Draft, scenario: Scenario) -> dict[str, list[Level]]:
    """The scenario's factors with each level once, in display order; without empty ones."""
    factors = {factor.name: factor for factor in scenario.factors}
    ordered = {
        name: factors[name].ordered(factor_levels)
        for name, factor_levels in draft.levels.items()
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
    ordered = sorted(
        draft.installations, key=lambda installation: installation.version_num
    )
    levels_of: dict[str, list[Level]] = {
        VERSION: list(dict.fromkeys(installation.version for installation in ordered))
    }
    for name in (
        campaign_builds.BLOCK_SIZE,
        campaign_builds.BUILD,
        campaign_builds.BINDIR,
    ):
        levels = [
            told_apart[installation.pk][name]
            for installation in ordered
            if name in told_apart[installation.pk]
        ]
        if levels:
            levels_of[name] = list(dict.fromkeys(levels))
    if len(draft.servers) > 1:
        levels_of[SERVER] = [server.slug for server in draft.servers]
    if len(draft.configurations) > 1:
        levels_of[CONFIGURATION] = [
            configuration.slug if configuration else ""
            for configuration in draft.configurations
        ]
    levels_of |= {
        name: list(dict.fromkeys(values)) for name, values in draft.settings.items()
    }
    return levels_of | {name: list(levels) for name, levels in varied.items()}
