"""Drafts: a campaign before it is queued, its cells, and what they need of their server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from runs.execution.preparing import BYTES_TO_SPARE
from runs.models import Configuration, Installation, Server
from runs.scenarios import registry
from runs.scenarios.definition import Level, Scenario
from runs.services import fitted_configurations
from runs.services.fitted_configurations import InstallationFit

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


def most_repeats(draft: Draft) -> int:
    """How many repeats a cell may get."""
    is_adaptive = draft.wanted_half_width is not None and draft.most_repeats is not None
    return max(draft.repeats, draft.most_repeats or 0) if is_adaptive else draft.repeats


def configuration_fits(draft: Draft) -> list[InstallationFit]:
    """What each installation of a draft gets of its configuration, by version."""
    hardware = draft.server.hardware
    return fitted_configurations.fits(
        draft.configuration,
        sorted(draft.installations, key=lambda each: each.version_num),
        memory_bytes=hardware.memory_bytes if hardware else None,
    )


def cells(draft: Draft) -> list[tuple[Installation, dict[str, Any]]]:
    """The cells of a draft: each installation with each combination of levels, in display order."""
    versions = [installation.version for installation in draft.installations]
    ordered = levels(draft)
    found = []
    for installation in sorted(draft.installations, key=lambda each: each.version_num):
        base: dict[str, Any] = {"version": installation.version}
        if versions.count(installation.version) > 1:
            base["bindir"] = installation.bindir
        found += [
            (installation, base | dict(zip(ordered, combination, strict=True)))
            for combination in product(*ordered.values())
        ]
    return found


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


def clusters(draft: Draft, scenario: Scenario) -> int:
    """How many clusters are loaded: one for each that the cells need, whoever then copies it."""
    made = {
        (each.pk, repr(scenario.cluster(each.version_num, levels))) for each, levels in cells(draft)
    }
    return len(made)


def needed_bytes(draft: Draft) -> int | None:
    """The free space that a draft needs on its server; None while a parameter is missing."""
    scenario = registry.get(draft.scenario)
    if any(draft.parameters.get(each.name) is None for each in scenario.parameters):
        return None
    sizes = scenario.procedure.sizes(draft.parameters)
    # Runs that write keep templates only as long as there is room for one more cluster.
    copies = 1 if scenario.writes else max(1, clusters(draft, scenario))
    return sizes.disk_bytes * copies + BYTES_TO_SPARE
