"""Everything that is wrong with a draft, each with its remedy, before it is queued."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from runs.execution.initdb import about_checksums, options_for
from runs.models import Installation, Server
from runs.scenarios.definition import AnyFactor, Factor, Level, Parameter, Requirement, Scenario
from runs.services import fitted_configurations, repeats, topologies
from runs.services.drafts import MOST_REPEATS, Draft, cells, needed_bytes
from runs.services.fitted_configurations import InstallationFit
from runs.services.problems import Problem
from runs.services.tools import tools_of, with_pgbench

MOST_RUNS = 10_000
# The factor whose levels are made by initdb.
CHECKSUMS = "checksums"


def problems(
    draft: Draft, scenario: Scenario, runs: int, fits: Sequence[InstallationFit]
) -> Iterator[Problem]:
    """Every problem of a draft that has so many runs at most and these fits."""
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
    yield from _refusals(draft, scenario)
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


def _refusals(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
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
