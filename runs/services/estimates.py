"""Estimates: what a draft will take in runs and seconds, and what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.postgresql_settings.findings import Finding
from runs.scenarios import registry
from runs.services import draft_problems, fitted_configurations
from runs.services.drafts import SIDES, Draft, clusters, configuration_fits, most_repeats
from runs.services.fitted_configurations import InstallationFit
from runs.services.problems import Problem

# What BenchLab itself adds to a run, and the clusters' start and stop.
SECONDS_AROUND_A_RUN = 1.5


@dataclass(frozen=True)
class Estimate:
    """What a draft will take: runs, seconds in all; and its problems, all at once.

    `most_runs` and `most_seconds` are larger where repeats are added while they scatter.
    `fits` tell what each installation gets of the configuration, `remarks` what is to be known
    before its runs are compared.
    """

    runs: int
    seconds: float
    problems: list[Problem]
    most_runs: int
    most_seconds: float
    fits: Sequence[InstallationFit] = ()
    remarks: Sequence[Finding] = ()


def estimate(draft: Draft) -> Estimate:
    """Count the runs, estimate the time, and find every problem."""
    scenario = registry.get(draft.scenario)
    cells = len(draft.installations)
    for levels in draft.levels.values():
        cells *= len(set(levels))
    cells *= len(SIDES) if draft.is_a_a else 1
    runs, most_runs = cells * draft.repeats, cells * most_repeats(draft)
    fits = configuration_fits(draft)
    problems = list(draft_problems.problems(draft, scenario, most_runs, fits))
    seconds = most_seconds = 0.0
    if all(draft.parameters.get(each.name) is not None for each in scenario.parameters):
        prepare, measure = scenario.procedure.seconds(draft.parameters)
        prepared = clusters(draft, scenario) * prepare
        seconds = prepared + runs * (measure + SECONDS_AROUND_A_RUN)
        most_seconds = prepared + most_runs * (measure + SECONDS_AROUND_A_RUN)
    remarks = fitted_configurations.remarks(fits)
    return Estimate(runs, seconds, problems, most_runs, most_seconds, fits, remarks)
