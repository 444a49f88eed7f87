"""Drafts: a campaign before it is queued, its estimate, and everything that is wrong with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.utils.translation import gettext as _

from runs.execution.initdb import about_checksums, options_for
from runs.execution.preparing import BYTES_TO_SPARE
from runs.models import Configuration, Installation, Server
from runs.postgresql_settings.findings import Finding
from runs.scenarios import registry
from runs.scenarios.definition import (
    AnyFactor,
    Factor,
    Level,
    Parameter,
    Requirement,
    Scenario,
)
from runs.services import fitted_configurations, repeats, topologies
from runs.services.fitted_configurations import InstallationFit
from runs.services.problems import Problem
from runs.services.tools import tools_of, with_pgbench

__all__ = [
    "MOST_REPEATS",
    "MOST_RUNS",
    "Draft",
    "Estimate",
    "Problem",
    "cells",
    "configuration_fits",
    "estimate",
    "levels",
    "needed_bytes",
    "refusals",
]

MOST_RUNS = 10_000
MOST_REPEATS = 100
MOST_ATTEMPTS = 20
# The factor of an A/A campaign, and its two labels for the same thing.
SIDE = "side"
SIDES: tuple[Level, ...] = ("A", "B")
HIGHEST_PRIORITY = 100
# The factor whose levels are made by initdb.
CHECKSUMS = "checksums"
# What BenchLab itself adds to a run, and the clusters' start and stop.
SECONDS_AROUND_A_RUN = 1.5


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
    problems = list(_problems(draft, scenario, most_runs, fits))
    seconds = most_seconds = 0.0
    if all(draft.parameters.get(each.name) is not None for each in scenario.parameters):
        prepare, measure = scenario.procedure.seconds(draft.parameters)
        prepared = _clusters(draft, scenario) * prepare
        seconds = prepared + runs * (measure + SECONDS_AROUND_A_RUN)
        most_seconds = prepared + most_runs * (measure + SECONDS_AROUND_A_RUN)
    remarks = fitted_configurations.remarks(fits)
    return Estimate(runs, seconds, problems, most_runs, most_seconds, fits, remarks)


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


def _clusters(draft: Draft, scenario: Scenario) -> int:
    """How many clusters are loaded: one for each that the cells need, whoever then copies it."""
    made = {
        (each.pk, repr(scenario.cluster(each.version_num, levels))) for each, levels in cells(draft)
    }
    return len(made)


def _problems(
    draft: Draft, scenario: Scenario, runs: int, fits: Sequence[InstallationFit]
) -> Iterator[Problem]:
    if not draft.title.strip():
        yield Problem("no_title", _("The campaign has no title."), _("Give one."), "title")
    yield from _server_problems(draft)
    yield from topologies.generator_problems(draft.server, draft.generators)
    for name in set(draft.levels) - {factor.name for factor in scenario.factors}:
        message = _("This scenario has no factor %(name)s.") % {"name": name}
        yield Problem("unknown_factor", message, _("Leave it out."), "levels")
    for factor in scenario.factors:
        yield from _level_problems(factor, draft.levels.get(factor.name, ()))
    for parameter in scenario.parameters:
        yield from _parameter_problems(parameter, draft.parameters.get(parameter.name))
    if not 1 <= draft.repeats <= MOST_REPEATS:
        message = _("Repeats must be from 1 to %(most)d.") % {"most": MOST_REPEATS}
        yield Problem("out_of_range", message, _("Three or more are needed to compare."), "repeats")
    yield from repeats.problems(
        repeats=draft.repeats,
        wanted_half_width=draft.wanted_half_width,
        most_repeats=draft.most_repeats,
        limit=MOST_REPEATS,
    )
    if runs > MOST_RUNS:
        message = _("%(runs)d runs are too many.") % {"runs": runs}
        yield Problem("too_many_runs", message, _("Choose fewer levels or repeats."), "levels")
    yield from refusals(draft, scenario)
    yield from _initdb_problems(draft, scenario)
    yield from fitted_configurations.problems(fits)
    yield from _connection_problems(draft, fits)
    yield from _disk_problems(draft)


def _server_problems(draft: Draft) -> Iterator[Problem]:
    server = draft.server
    if server.state != Server.State.READY:
        message = server.problem or _("Server %(server)s is not ready.") % {"server": server.name}
        mend = _("Mend it and inspect the server again on its page.")
        remedy = server.problem_remedy or mend
        yield Problem(server.problem_code or "server_not_ready", message, remedy, "server")
    if not draft.installations:
        message = _("No installation of PostgreSQL is chosen.")
        yield Problem("no_installation", message, _("Choose at least one."), "installations")
    for installation in draft.installations:
        if installation.server_id != server.pk or installation.removed_at:
            message = _("%(installation)s is not on %(server)s (any more).") % {
                "installation": installation,
                "server": server.name,
            }
            remedy = _("Inspect the server again and choose from what is there.")
            yield Problem("installation_missing", message, remedy, "installations")
    yield from _tool_problems(draft)


def _tool_problems(draft: Draft) -> Iterator[Problem]:
    server, client = draft.server, draft.client
    if client is not None and client not in with_pgbench(server):
        message = _("%(installation)s has no pgbench on %(server)s (any more).") % {
            "installation": client,
            "server": server.name,
        }
        yield Problem("missing_program", message, _("Choose another pgbench."), "client")
    elif server.state == Server.State.READY and tools_of(server, client) is None:
        message = _("No installation on %(server)s has pgbench and psql.") % {"server": server.name}
        remedy = _("Install PostgreSQL's client programs there and inspect the server again.")
        yield Problem("missing_program", message, remedy, "server")


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
    message = _("%(name)s cannot be %(level)s.") % {"name": _(factor.title), "level": level}
    return Problem("unknown_level", message, _("Choose from what is offered."), factor.name)


def refusals(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """Each installation that cannot run the scenario, or a level of it, with the reason."""
    seen = set()
    for installation, cell in cells(draft):
        requirement = scenario.refusal(installation.version_num, cell)
        if requirement is not None and (installation, requirement) not in seen:
            seen.add((installation, requirement))
            yield _refused(installation, requirement, scenario)


def _initdb_problems(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """Options of the configuration that an initdb does not know, or that are what is varied."""
    options = draft.configuration.initdb_options if draft.configuration else []
    yield from fitted_configurations.option_problems(options)
    if about_checksums(options) and CHECKSUMS in {factor.name for factor in scenario.factors}:
        message = _("The configuration decides on page checksums, which this scenario varies.")
        remedy = _("Choose a configuration without that initdb option.")
        yield Problem("initdb_option_is_varied", message, remedy, "configuration")
    for installation in draft.installations:
        try:
            options_for(installation.version_num, options)
        except ValueError as error:
            message = f"{installation}: {error}"
            remedy = _("Leave out that version, or choose another configuration.")
            yield Problem("initdb_option_unknown", message, remedy, "configuration")


def _refused(installation: Installation, requirement: Requirement, scenario: Scenario) -> Problem:
    titles = {factor.name: _(factor.title) for factor in scenario.factors}
    what = _(scenario.title)
    if requirement.factor:
        what = f"{titles.get(requirement.factor, requirement.factor)} {requirement.level}"
    message = _("%(installation)s cannot run %(what)s: %(reason)s") % {
        "installation": installation,
        "what": what,
        "reason": _(requirement.reason),
    }
    remedy = _("Leave out that version or that level.")
    return Problem("version_too_old", message, remedy, requirement.factor or "installations")


def _parameter_problems(parameter: Parameter, value: int | None) -> Iterator[Problem]:
    if value is None:
        message = _("%(parameter)s is not given.") % {"parameter": _(parameter.title)}
        yield Problem("missing", message, _("Give a whole number."), parameter.name)
    elif not parameter.minimum <= value <= parameter.maximum:
        yield _out_of_range(parameter, value)


def _out_of_range(of: Factor | Parameter, value: int) -> Problem:
    message = _("%(name)s %(value)d is out of range.") % {"name": _(of.title), "value": value}
    remedy = _("Choose from %(minimum)d to %(maximum)d.") % {
        "minimum": of.minimum,
        "maximum": of.maximum,
    }
    return Problem("out_of_range", message, remedy, of.name)


def _connection_problems(draft: Draft, fits: Sequence[InstallationFit]) -> Iterator[Problem]:
    most = min((each.fitted.max_connections for each in fits), default=0)
    # Three connections stay reserved for the superuser, one is BenchLab's own.
    clients = [level for level in draft.levels.get("clients", ()) if isinstance(level, int)]
    if fits and max(clients, default=0) > most - 4:
        message = _("The configuration allows %(most)d connections.") % {"most": most}
        remedy = _("Choose fewer clients, or a configuration with more max_connections.")
        yield Problem("too_many_clients", message, remedy, "clients")


def needed_bytes(draft: Draft) -> int | None:
    """The free space that a draft needs on its server; None while a parameter is missing."""
    scenario = registry.get(draft.scenario)
    if any(draft.parameters.get(each.name) is None for each in scenario.parameters):
        return None
    sizes = scenario.procedure.sizes(draft.parameters)
    # Runs that write keep templates only as long as there is room for one more cluster.
    clusters = 1 if scenario.writes else max(1, _clusters(draft, scenario))
    return sizes.disk_bytes * clusters + BYTES_TO_SPARE


def _disk_problems(draft: Draft) -> Iterator[Problem]:
    free, needed = draft.server.free_bytes, needed_bytes(draft)
    if free is not None and needed is not None and needed > free:
        message = _("The campaign needs %(needed).1f GB on %(server)s; %(free).1f GB are free.") % {
            "needed": needed / 1e9,
            "server": draft.server.name,
            "free": free / 1e9,
        }
        remedy = _("Choose a smaller scale, free space, or use another base directory.")
        yield Problem("disk_too_small", message, remedy, "scale")
