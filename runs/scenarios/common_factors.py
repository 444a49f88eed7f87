"""Factors that a campaign of many scenarios can have: processor cores, and arrangements.

A campaign names them among its levels like the scenario's own factors. The scenario is then
extended by them, and all code that reads scenarios treats them as its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from runs.scenarios import arrangements
from runs.scenarios.definition import (
    AnyFactor,
    Factor,
    Level,
    Objection,
    Parameters,
    Scenario,
    Values,
)
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

CORES = Factor("cores", _("CPU cores"), default=(1, 2), minimum=1, maximum=8192)
EVERY: tuple[AnyFactor, ...] = (CORES, arrangements.FACTOR)


def too_few_clients(levels: Values, parameters: Parameters) -> Objection | None:
    """With fewer clients than cores the number of clients would be the limit."""
    clients, cores = (
        levels.get("clients") or parameters.get("clients"),
        levels.get(CORES.name),
    )
    if not isinstance(clients, int) or not isinstance(cores, int) or clients >= cores:
        return None
    return Objection(
        _("%(clients)d clients cannot keep %(cores)d cores busy."),
        _("Choose at least as many clients as cores."),
        "clients",
        {"clients": clients, "cores": cores},
    )


def offered(scenario: Scenario) -> tuple[AnyFactor, ...]:
    """The common factors that a scenario can be extended by."""
    own_names = {factor.name for factor in scenario.factors}
    common = EVERY if scenario.has_pgbench_tables and not scenario.kind else ()
    return tuple(factor for factor in common if factor.name not in own_names)


def widened(scenario: Scenario, levels: Mapping[str, Iterable[Level]]) -> Scenario:
    """The scenario with the common factors for which a campaign has levels."""
    chosen = [factor for factor in offered(scenario) if factor.name in levels]
    if not chosen:
        return scenario
    wider = replace(
        scenario,
        factors=(*scenario.factors, *chosen),
        objection=_objection_to(scenario),
    )
    if arrangements.FACTOR in chosen:
        wider = _arranged(wider, levels[arrangements.NAME])
    return wider


def _objection_to(scenario: Scenario) -> Any:
    def objection(levels: Values, parameters: Parameters) -> Objection | None:
        objections = (scenario.objection, too_few_clients, arrangements.objection)
        objections_made = (
            objection_of(levels, parameters) for objection_of in objections
        )
        return next((objection for objection in objections_made if objection), None)

    return objection


def _arranged(scenario: Scenario, chosen: Iterable[Level]) -> Scenario:
    kinds = {
        arrangements.KINDS[str(level)]
        for level in chosen
        if level in arrangements.KINDS
    }
    untouched = {arrangements.SINGLE, arrangements.POOLED}
    return replace(
        scenario,
        metrics=(*scenario.metrics, known_metrics.BEHIND),
        procedure=arrangements.Arranged(scenario.procedure),
        cluster=lambda version_num, levels: arrangements.wanted(
            version_num, levels, scenario.cluster(version_num, levels)
        ),
        arrangement=lambda _version_num, levels: arrangements.further(levels),
        kind="varied" if len(kinds) > 1 else next(iter(kinds), ""),
        requires=(*scenario.requires, *arrangements.REQUIRES),
        # Standbys follow one cluster only, so each run has its own.
        writes=True,
        only_reads=lambda levels: (
            levels[arrangements.NAME] in untouched and not scenario.changes_data(levels)
        ),
    )
