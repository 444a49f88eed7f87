"""Estimates: how many runs and seconds a design will take, and what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.postgresql_settings.findings import Finding
from runs.services.campaigns import draft_problems
from runs.services.campaigns.designs import Design, Part, resolve
from runs.services.campaigns.drafts import Draft
from runs.services.configurations import fitting as fitted_configurations
from runs.services.configurations.fitting import InstallationFit
from runs.services.errors import Problem
from runs.services.servers import suitability as server_problems

# What BenchLab itself adds to a run, and starting and stopping the cluster.
SECONDS_AROUND_A_RUN = 1.5


@dataclass(frozen=True)
class Estimate:
    """What a design will take: runs, total seconds, and all its problems.

    `most_runs` and `most_seconds` are larger if repeats may be added while results scatter, and
    if runs that turn out doubtful are measured again.
    `fits` say what each installation gets from the configuration, `remarks` what to know before
    comparing its runs, and `notes` the same about several servers. Servers work at the same time,
    so the seconds are those of the slowest, unless they share load generators and have to take
    turns.
    """

    runs: int
    seconds: float
    problems: list[Problem]
    most_runs: int
    most_seconds: float
    fits: Sequence[InstallationFit] = ()
    remarks: Sequence[Finding] = ()
    notes: Sequence[str] = ()


def estimate(of: Design | Draft) -> Estimate:
    """Count the runs, estimate the time, and find every problem.

    Works from a design, without a query; resolve a draft first.
    """
    design = of if isinstance(of, Design) else resolve(of)
    draft = design.draft
    seconds = [_seconds(design, part) for part in design.parts]
    together = sum if draft.generators or draft.cluster_servers else max
    planned_at_most = design.count * draft.repeats_at_most
    return Estimate(
        runs=design.count * draft.repeats,
        seconds=together(least for least, _most in seconds),
        problems=list(draft_problems.problems(design, planned_at_most)),
        most_runs=planned_at_most * (1 + draft.remeasures),
        most_seconds=together(most for _least, most in seconds),
        fits=design.fits,
        remarks=fitted_configurations.remarks(design.fits),
        notes=list(server_problems.notes(design)),
    )


def _seconds(design: Design, part: Part) -> tuple[float, float]:
    """What a server takes at least and at most; 0 while a parameter is missing."""
    if not design.is_complete:
        return 0.0, 0.0
    prepared = sum(design.seconds(each)[0] for each in part.loaded)
    round_of_runs = sum(design.seconds(each)[1] + SECONDS_AROUND_A_RUN for each in part.cells)
    draft = design.draft
    return (
        prepared + draft.repeats * round_of_runs,
        prepared + draft.repeats_at_most * (1 + draft.remeasures) * round_of_runs,
    )
