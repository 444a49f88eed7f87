"""The scenarios that BenchLab can run. A new one is a new module, named here."""

from collections.abc import Iterable, Mapping

from runs.scenarios import (
    block_size,
    command,
    common_factors,
    cpu_cores,
    fixed_point_read,
    fixed_point_update,
    foreign_tables,
    full_text_search,
    long_run_stability,
    operating_systems,
    page_checksums,
    parallel_query,
    partitioning,
    pgbench_load,
    replication,
    scale_out,
    statements,
    storage_bandwidth,
    storage_placement,
    withdrawn,
)
from runs.scenarios.definition import Level, Scenario
from runs.scenarios.metrics import MONITORED
from runs.tools import known_metrics
from runs.tools.metrics import Metric

_SCENARIOS = {
    scenario.slug: scenario
    for scenario in (
        fixed_point_read.SCENARIO,
        fixed_point_update.SCENARIO,
        page_checksums.SCENARIO,
        cpu_cores.SCENARIO,
        pgbench_load.SCENARIO,
        command.SCENARIO,
        parallel_query.SCENARIO,
        replication.SCENARIO,
        *partitioning.SCENARIOS,
        block_size.SCENARIO,
        *full_text_search.SCENARIOS,
        long_run_stability.SCENARIO,
        foreign_tables.SCENARIO,
        scale_out.SCENARIO,
        operating_systems.SCENARIO,
        storage_bandwidth.SCENARIO,
        storage_placement.SCENARIO,
    )
}
# A page of their own queues these, and no form of a campaign.
_APART = {scenario.slug: scenario for scenario in (statements.SCENARIO,)}
# These are read, and queued by nothing.
_WITHDRAWN = {scenario.slug: scenario for scenario in (withdrawn.DUET,)}


def every() -> tuple[Scenario, ...]:
    """All scenarios that a campaign can choose, in the order in which they are offered."""
    return tuple(_SCENARIOS.values())


def runnable() -> tuple[Scenario, ...]:
    """These, and those that a page of their own queues."""
    return (*every(), *_APART.values())


def known() -> tuple[Scenario, ...]:
    """These, and those that were withdrawn: whatever a campaign that was executed can be of."""
    return (*runnable(), *_WITHDRAWN.values())


def knows(slug: str) -> bool:
    """Whether there is a scenario of that slug."""
    return any(slug in scenarios for scenarios in (_SCENARIOS, _APART, _WITHDRAWN))


def get(slug: str, levels: Mapping[str, Iterable[Level]] | None = None) -> Scenario:
    """The scenario of that slug, widened by the common factors among a campaign's levels.

    Raises KeyError for one that BenchLab does not know.
    """
    scenario = _APART.get(slug) or _WITHDRAWN.get(slug) or _SCENARIOS[slug]
    return common_factors.widened(scenario, levels or {})


def find_by_levels(slug: str, levels: Mapping[str, Level]) -> Scenario:
    """The same by the levels of one cell."""
    return get(slug, {name: (level,) for name, level in levels.items()})


def metrics() -> dict[str, Metric]:
    """Every metric of every scenario and of the monitors, by name."""
    measured = [metric for scenario in known() for metric in scenario.metrics]
    scenario_metrics = {metric.name: metric for metric in measured}
    further_metrics = (*MONITORED, known_metrics.BEHIND)
    return scenario_metrics | {metric.name: metric for metric in further_metrics}
