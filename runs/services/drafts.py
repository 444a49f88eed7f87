"""Drafts: a campaign before it is queued, its estimate, and everything that is wrong with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.utils.translation import gettext as _

from runs.execution.director import BYTES_TO_SPARE
from runs.models import Configuration, Installation, Server
from runs.scenarios import registry
from runs.scenarios.definition import Factor, Parameter, Scenario

MOST_RUNS = 10_000
MOST_REPEATS = 100
# What BenchLab itself adds to a run, and the clusters' start and stop.
SECONDS_AROUND_A_RUN = 1.5


@dataclass(frozen=True)
class Draft:
    """What a person asks for. `levels` maps each factor of the scenario to its levels."""

    title: str
    scenario: str
    server: Server
    installations: Sequence[Installation]
    levels: Mapping[str, Sequence[int]]
    parameters: Mapping[str, int]
    repeats: int
    seed: int | None = None
    configuration: Configuration | None = None


@dataclass(frozen=True)
class Problem:
    """Why a draft cannot be queued, and what to do. `field` names the input at fault."""

    code: str
    message: str
    remedy: str
    field: str


@dataclass(frozen=True)
class Estimate:
    """What a draft will take: runs, seconds in all; and its problems, all at once."""

    runs: int
    seconds: float
    problems: list[Problem]


def estimate(draft: Draft) -> Estimate:
    """Count the runs, estimate the time, and find every problem."""
    scenario = registry.get(draft.scenario)
    cells = len(draft.installations)
    for levels in draft.levels.values():
        cells *= len(set(levels))
    runs = cells * draft.repeats
    problems = list(_problems(draft, scenario, runs))
    seconds = 0.0
    if all(draft.parameters.get(each.name) is not None for each in scenario.parameters):
        prepare, measure = scenario.procedure.seconds(draft.parameters)
        clusters = runs if scenario.writes else len(draft.installations)
        seconds = clusters * prepare + runs * (measure + SECONDS_AROUND_A_RUN)
    return Estimate(runs, seconds, problems)


def cells(draft: Draft) -> list[tuple[Installation, dict[str, Any]]]:
    """The cells of a draft: each installation with each combination of levels, in display order."""
    versions = [installation.version for installation in draft.installations]
    found = []
    for installation in sorted(draft.installations, key=lambda each: each.version_num):
        base: dict[str, Any] = {"version": installation.version}
        if versions.count(installation.version) > 1:
            base["bindir"] = installation.bindir
        levels = [sorted(set(values)) for values in draft.levels.values()]
        found += [
            (installation, base | dict(zip(draft.levels, combination, strict=True)))
            for combination in product(*levels)
        ]
    return found


def client_of(server: Server) -> Installation | None:
    """The installation whose pgbench and psql put the load on: the newest that has both."""
    having = server.installations.filter(
        removed_at=None, has_psql=True, pgbench_version_num__isnull=False
    )
    return having.order_by("-pgbench_version_num").first()


def _problems(draft: Draft, scenario: Scenario, runs: int) -> Iterator[Problem]:
    if not draft.title.strip():
        yield Problem("no_title", _("The campaign has no title."), _("Give one."), "title")
    yield from _server_problems(draft)
    for factor in scenario.factors:
        yield from _level_problems(factor, draft.levels.get(factor.name, ()))
    for parameter in scenario.parameters:
        yield from _parameter_problems(parameter, draft.parameters.get(parameter.name))
    if not 1 <= draft.repeats <= MOST_REPEATS:
        message = _("Repeats must be from 1 to %(most)d.") % {"most": MOST_REPEATS}
        yield Problem("out_of_range", message, _("Three or more are needed to compare."), "repeats")
    if runs > MOST_RUNS:
        message = _("%(runs)d runs are too many.") % {"runs": runs}
        yield Problem("too_many_runs", message, _("Choose fewer levels or repeats."), "levels")
    yield from _connection_problems(draft)
    yield from _disk_problems(draft, scenario)


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
    if server.state == Server.State.READY and client_of(server) is None:
        message = _("No installation on %(server)s has pgbench and psql.") % {"server": server.name}
        remedy = _("Install PostgreSQL's client programs there and inspect the server again.")
        yield Problem("missing_program", message, remedy, "server")


def _level_problems(factor: Factor, levels: Sequence[int]) -> Iterator[Problem]:
    if not levels:
        message = _("%(factor)s has no level.") % {"factor": _(factor.title)}
        yield Problem("no_level", message, _("Give at least one number."), factor.name)
    for level in levels:
        if not factor.minimum <= level <= factor.maximum:
            yield _out_of_range(factor, level)


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


def _connection_problems(draft: Draft) -> Iterator[Problem]:
    settings = draft.configuration.settings if draft.configuration else {}
    most = int(settings.get("max_connections", 100))
    # Three connections stay reserved for the superuser, one is BenchLab's own.
    if max(draft.levels.get("clients", ()), default=0) > most - 4:
        message = _("The configuration allows %(most)d connections.") % {"most": most}
        remedy = _("Choose fewer clients, or a configuration with more max_connections.")
        yield Problem("too_many_clients", message, remedy, "clients")


def _disk_problems(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    free = draft.server.free_bytes
    if free is None or any(draft.parameters.get(p.name) is None for p in scenario.parameters):
        return
    sizes = scenario.procedure.sizes(draft.parameters)
    clusters = 1 if scenario.writes else max(1, len(draft.installations))
    needed = sizes.disk_bytes * clusters + BYTES_TO_SPARE
    if needed > free:
        message = _("The campaign needs %(needed).1f GB on %(server)s; %(free).1f GB are free.") % {
            "needed": needed / 1e9,
            "server": draft.server.name,
            "free": free / 1e9,
        }
        remedy = _("Choose a smaller scale, free space, or use another base directory.")
        yield Problem("disk_too_small", message, remedy, "scale")
