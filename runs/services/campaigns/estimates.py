"""Estimates: what a draft will take in runs and seconds, and what is wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.postgresql_settings.findings import Finding
from runs.scenarios import registry
from runs.scenarios.definition import Scenario
from runs.services.campaigns import draft_problems
from runs.services.campaigns.drafts import (
    Draft,
    can_be_sized,
    cells,
    configuration_fits,
    loaded,
    most_repeats,
    parts,
)
from runs.services.configurations import fitting as fitted_configurations
from runs.services.configurations.fitting import InstallationFit
from runs.services.problems import Problem
from runs.services.servers import suitability as server_problems

# What BenchLab itself adds to a run, and the clusters' start and stop.
SECONDS_AROUND_A_RUN = 1.5


@dataclass(frozen=True)
class Estimate:
    """What a draft will take: runs, seconds in all; and its problems, all at once.

    `most_runs` and `most_seconds` are larger where repeats are added while they scatter.
    `fits` tell what each installation gets of the configuration, `remarks` what is to be known
    before its runs are compared, and `notes` the same of several servers. These work at the same
    time, and the seconds are those of the last to end; unless they share load generators, for
    which they take turns.
    """

    runs: int
    seconds: float
    problems: list[Problem]
    most_runs: int
    most_seconds: float
    fits: Sequence[InstallationFit] = ()
    remarks: Sequence[Finding] = ()
    notes: Sequence[str] = ()


def estimate(draft: Draft) -> Estimate:
    """Count the runs, estimate the time, and find every problem."""
    scenario = registry.get(draft.scenario)
    loads = [_load(part, scenario) for part in parts(draft)]
    fits = configuration_fits(draft)
    most_runs = sum(load.most_runs for load in loads)
    together = sum if draft.generators else max
    return Estimate(
        runs=sum(load.runs for load in loads),
        seconds=together(load.seconds for load in loads),
        problems=list(draft_problems.problems(draft, scenario, most_runs, fits)),
        most_runs=most_runs,
        most_seconds=together(load.most_seconds for load in loads),
        fits=fits,
        remarks=fitted_configurations.remarks(fits),
        notes=list(server_problems.notes(draft)),
    )


@dataclass(frozen=True)
class _Load:
    """What one server does of a draft; the seconds are 0 while a parameter is missing."""

    runs: int
    most_runs: int
    seconds: float = 0.0
    most_seconds: float = 0.0


def _load(part: Draft, scenario: Scenario) -> _Load:
    designed = len(cells(part))
    runs, most_runs = designed * part.repeats, designed * most_repeats(part)
    if not can_be_sized(part, scenario):
        return _Load(runs, most_runs)
    prepared = sum(_seconds(part, scenario, levels)[0] for levels in loaded(part, scenario))
    a_repeat = sum(
        _seconds(part, scenario, levels)[1] + SECONDS_AROUND_A_RUN for _on, levels in cells(part)
    )
    return _Load(
        runs,
        most_runs,
        prepared + part.repeats * a_repeat,
        prepared + most_repeats(part) * a_repeat,
    )


def _seconds(part: Draft, scenario: Scenario, levels: Mapping[str, Any]) -> tuple[float, float]:
    return scenario.procedure.seconds({**part.parameters, **levels})
