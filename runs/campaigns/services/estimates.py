"""Estimates: how many runs and seconds a design will take, and what is wrong with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from benchlab import extras
from runs.campaigns.services import repeats, slicing, treatments
from runs.campaigns.services.campaign_limits import (
    MOST_REPEATS,
    MOST_RUNS,
    MOST_VARIANTS,
)
from runs.campaigns.services.designs import Design, Part, resolve
from runs.campaigns.services.drafts import Draft
from runs.configurations.services import fitted_configurations
from runs.configurations.services.fitted_configurations import InstallationFit, major_of
from runs.postgresql_settings import fitting, values
from runs.postgresql_settings.catalogue import setting
from runs.postgresql_settings.findings import Finding
from runs.scenarios import slices
from runs.scenarios.definition import (
    AnyFactor,
    Factor,
    Level,
    NameFactor,
    Parameter,
    Scenario,
)
from runs.servers.services import suitability
from runs.shared.errors import Problem
from runs.workloads.services import topologies, workloads


def setting_problems(design: Design) -> Iterator[Problem]:
    """Settings without a level, set by the scenario itself, or whose levels do not differ."""
    if not design.has_all_variants:
        message = _("These are too many combinations of configurations and settings.")
        remedy = _("Choose fewer than %(most)d.") % {"most": MOST_VARIANTS}
        yield Problem("too_many_variants", message, remedy, "settings")
    factors = {factor.name for factor in design.scenario.factors}
    owned = {
        name.lower()
        for cell in design.cells
        for name in (*cell.cluster.settings, *cell.cluster.required)
    }
    for name, levels in design.draft.settings.items():
        field = f"settings/{name}"
        if not levels:
            message = _("%(factor)s has no level.") % {"factor": name}
            yield Problem("no_level", message, _("Give at least one."), field)
        if name in factors or name.lower() in owned:
            message = _("The scenario sets %(name)s itself.") % {"name": name}
            yield Problem("setting_is_scenarios", message, _("Leave it out."), field)
        yield from _alike(design, name, levels)


def _alike(design: Design, name: str, levels: Sequence[str]) -> Iterator[Problem]:
    """Levels that write the same value differently, such as 1GB and 1024MB."""
    majors = dict.fromkeys(
        major_of(installation) for installation in design.draft.installations
    )
    for major in majors:
        level_of_value: dict[object, str] = {}
        for level in dict.fromkeys(levels):
            value = _value(name, level, major)
            other_level = level_of_value.setdefault(value, level)
            if other_level != level:
                words = {"name": name, "one": other_level, "other": level}
                message = (
                    _("%(name)s has the same value as %(one)s and as %(other)s.")
                    % words
                )
                yield Problem(
                    "same_level", message, _("Leave one out."), f"settings/{name}"
                )
                return


def _value(name: str, level: str, major: str) -> object:
    """The value as this version reads it; the text itself if the version does not know it."""
    own_values = []
    for own_name, text in fitting.fit({name: level}, major).settings.items():
        catalogued = setting(own_name, major)
        try:
            own_values.append(
                (own_name, values.parse(text, catalogued) if catalogued else text)
            )
        except values.BadValue:
            own_values.append((own_name, text))
    return tuple(own_values) or level


def problems(design: Design, runs: int) -> Iterator[Problem]:
    """Every problem of a design that has at most this many runs. No query."""
    draft, scenario = design.draft, design.scenario
    if not draft.title.strip():
        yield Problem(
            "no_title", _("The campaign has no title."), _("Give one."), "title"
        )
    yield from topologies.generator_problems(design)
    yield from topologies.cluster_problems(design)
    yield from treatments.problems(draft)
    for name in set(draft.levels) - {factor.name for factor in scenario.factors}:
        message = _("This scenario has no factor %(name)s.") % {"name": name}
        yield Problem("unknown_factor", message, _("Leave it out."), "levels")
    for factor in scenario.factors:
        yield from _level_problems(factor, draft.levels.get(factor.name, ()))
    yield from setting_problems(design)
    for parameter in scenario.parameters:
        yield from _parameter_problems(parameter, draft.parameters.get(parameter.name))
    if not 1 <= draft.repeats <= MOST_REPEATS:
        message = _("Repeats must be from 1 to %(most)d.") % {"most": MOST_REPEATS}
        yield Problem(
            "out_of_range",
            message,
            _("Three or more are needed to compare."),
            "repeats",
        )
    yield from repeats.problems(draft)
    yield from slicing.problems(design)
    if runs > MOST_RUNS:
        message = _("%(runs)d runs are too many.") % {"runs": runs}
        yield Problem(
            "too_many_runs", message, _("Choose fewer levels or repeats."), "levels"
        )
    yield from workloads.problems(design)
    yield from _package_problems(scenario)
    yield from _objections(design)
    yield from suitability.problems(design)


def _package_problems(scenario: Scenario) -> Iterator[Problem]:
    """Data generators of a scenario that are missing here, found before a worker needs them."""
    if missing := ", ".join(scenario.missing_packages()):
        message = _("Packages that make the data are missing: %(names)s.") % {
            "names": missing
        }
        command = {"command": extras.command("datasets")}
        remedy = (
            _("Run %(command)s in BenchLab's folder, and start it again.") % command
        )
        yield Problem("missing_package", message, remedy, "scenario")


def _objections(design: Design) -> Iterator[Problem]:
    """Why the scenario refuses cells, each reason once; also a design without any cell."""
    draft, scenario = design.draft, design.scenario
    problems = {
        Problem(
            "senseless_cell",
            _(objection.reason) % objection.words,
            _(objection.remedy),
            objection.of,
        )
        for cell in design.cells
        if (objection := scenario.objection(cell.levels, draft.parameters))
    }
    yield from sorted(problems, key=lambda problem: problem.message)
    is_whole = all(draft.levels.get(factor.name) for factor in scenario.factors)
    if (
        not design.cells
        and draft.installations
        and is_whole
        and all(draft.settings.values())
    ):
        message = _("No combination of these levels belongs to the scenario.")
        remedy = _("Choose more levels, or change the parameter that limits them.")
        yield Problem("no_cell", message, remedy, "levels")


def _level_problems(factor: AnyFactor, levels: Sequence[Level]) -> Iterator[Problem]:
    if not levels:
        message = _("%(factor)s has no level.") % {"factor": _(factor.title)}
        yield Problem("no_level", message, _("Give at least one."), factor.name)
    for level in levels:
        if not factor.accepts(level):
            yield _not_accepted(factor, level)


def _not_accepted(factor: AnyFactor, level: Level) -> Problem:
    if isinstance(factor, Factor) and isinstance(level, int):
        return _out_of_range(factor, level)
    message = _("%(name)s cannot be %(level)s.") % {
        "name": _(factor.title),
        "level": level,
    }
    remedy = _("Choose one of the options.")
    if isinstance(factor, NameFactor):
        remedy = _(factor.help)
    return Problem("unknown_level", message, remedy, factor.name)


def _parameter_problems(parameter: Parameter, value: int | None) -> Iterator[Problem]:
    if value is None:
        message = _("%(parameter)s is not given.") % {"parameter": _(parameter.title)}
        yield Problem("missing", message, _("Give a whole number."), parameter.name)
    elif not parameter.minimum <= value <= parameter.maximum:
        yield _out_of_range(parameter, value)


def _out_of_range(bounded: Factor | Parameter, value: int) -> Problem:
    message = _("%(name)s %(value)d is out of range.") % {
        "name": _(bounded.title),
        "value": value,
    }
    words = {"minimum": bounded.minimum, "maximum": bounded.maximum}
    remedy = _("Choose from %(minimum)d to %(maximum)d.") % words
    return Problem("out_of_range", message, remedy, bounded.name)


# What BenchLab itself adds to a run, and starting and stopping the cluster.
SECONDS_AROUND_A_RUN = 1.5
# What a slice takes besides its seconds: a step, and two readings of who uses the processors.
SECONDS_AROUND_A_SLICE = 0.15


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


def estimate(design_or_draft: Design | Draft) -> Estimate:
    """Count the runs, estimate the time, and find every problem.

    Works from a design, without a query; resolve a draft first.
    """
    design = (
        design_or_draft
        if isinstance(design_or_draft, Design)
        else resolve(design_or_draft)
    )
    draft = design.draft
    seconds = [_seconds(design, server_part) for server_part in design.parts]
    together = sum if draft.generators or draft.cluster_servers else max
    planned_at_most = design.count * draft.repeats_at_most
    return Estimate(
        runs=design.count * draft.repeats,
        seconds=together(least for least, _most in seconds),
        problems=list(problems(design, planned_at_most)),
        most_runs=planned_at_most * (1 + draft.remeasures_at_most),
        most_seconds=together(most for _least, most in seconds),
        fits=design.fits,
        remarks=fitted_configurations.remarks(design.fits),
        notes=list(suitability.notes(design)),
    )


def _seconds(design: Design, server_part: Part) -> tuple[float, float]:
    """What a server takes at least and at most; 0 while a parameter is missing."""
    if not design.is_complete:
        return 0.0, 0.0
    draft = design.draft
    around = SECONDS_AROUND_A_RUN
    if draft.slice_seconds:
        around += (
            slices.number_of(draft.parameters, draft.slice_seconds)
            * SECONDS_AROUND_A_SLICE
        )
    prepared = sum(design.seconds(design_cell)[0] for design_cell in server_part.loaded)
    round_of_runs = sum(
        design.seconds(design_cell)[1] + around for design_cell in server_part.cells
    )
    return (
        prepared + draft.repeats * round_of_runs,
        prepared
        + draft.repeats_at_most * (1 + draft.remeasures_at_most) * round_of_runs,
    )
