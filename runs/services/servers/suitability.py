"""What stands against a draft on its servers: each server's own faults, versions, tools and room.

With several servers each is looked at for its own part of the draft, and a problem that only some
of them have names those.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from django.utils.translation import gettext as _

from runs.execution.initdb import about_checksums, options_for
from runs.models import Installation, Server
from runs.scenarios.definition import Requirement, Scenario
from runs.services.campaigns.drafts import Draft, cells, needed_bytes, parts
from runs.services.configurations import fitting as fitted_configurations
from runs.services.configurations.fitting import InstallationFit
from runs.services.problems import Problem
from runs.services.runs.plans import CORES
from runs.services.servers import tools
from runs.tools.pgbench import version_text

# The factor whose levels are made by initdb.
CHECKSUMS = "checksums"

Present = Mapping[int, Sequence[Installation]]


def problems(draft: Draft, scenario: Scenario, fits: Sequence[InstallationFit]) -> list[Problem]:
    """Every problem of the servers, each once. One query, however many servers."""
    present = tools.installed(draft.servers)
    found: dict[Problem, list[Server]] = defaultdict(list)
    for problem in _strangers(draft):
        found[problem] = list(draft.servers)
    for part in parts(draft):
        own = [each for each in fits if each.installation.server_id == part.server.pk]
        for problem in _of_part(part, draft, scenario, own, present):
            if part.server not in found[problem]:
                found[problem].append(part.server)
    return [_told(problem, on, draft) for problem, on in found.items()]


def notes(draft: Draft) -> Iterator[str]:
    """What is to be known before several servers are compared; nothing forbids it. One query."""
    if len(draft.servers) < 2:
        return
    yield from _release_notes(draft)
    present = tools.installed(draft.servers)
    used = {
        each.name: version_text(found.pgbench.pgbench_version_num or 0)
        for each in draft.servers
        if (found := tools.tools_among(present[each.pk], draft.client))
    }
    if len(set(used.values())) > 1:
        yield _(
            "The servers' newest pgbench are of different versions. Choose one, so that only the "
            "servers differ."
        )
    for address, names in _by_address(draft.servers).items():
        if len(names) > 1:
            yield _(
                "%(servers)s have the same address, %(address)s. If they are one machine, they "
                "disturb each other: their runs go on at the same time."
            ) % {"servers": ", ".join(names), "address": address}


def _of_part(
    part: Draft, draft: Draft, scenario: Scenario, fits: Sequence[InstallationFit], present: Present
) -> Iterator[Problem]:
    yield from _server_problems(part, draft, present)
    yield from _refusals(part, scenario)
    yield from _initdb_problems(part, scenario)
    yield from fitted_configurations.problems(fits)
    yield from _connection_problems(part, fits)
    yield from _core_problems(part)
    yield from _disk_problems(part)


def _told(problem: Problem, on: Sequence[Server], draft: Draft) -> Problem:
    """A problem of some servers only says which, unless it does so by itself."""
    names = ", ".join(each.name for each in on)
    if len(on) == len(draft.servers) or names in problem.message:
        return problem
    return replace(problem, message=f"{names}: {problem.message}")


def _strangers(draft: Draft) -> Iterator[Problem]:
    servers = {each.pk for each in draft.servers}
    for installation in draft.installations:
        if installation.server_id not in servers or installation.removed_at:
            message = _("%(installation)s is not on %(server)s (any more).") % {
                "installation": installation,
                "server": ", ".join(each.name for each in draft.servers),
            }
            remedy = _("Inspect the server again and choose from what is there.")
            yield Problem("installation_missing", message, remedy, "installations")


def _missing_versions(part: Draft, draft: Draft, present: Present) -> Iterator[Problem]:
    """The major versions that other servers measure and this one does not."""
    here = {each.major for each in part.installations}
    asked: dict[str, list[str]] = defaultdict(list)
    for each in sorted(draft.installations, key=lambda one: one.version_num):
        if each.major not in here and each.version not in asked[each.major]:
            asked[each.major].append(each.version)
    for major, versions in asked.items():
        if not versions:
            continue
        message = _("%(server)s has no PostgreSQL %(versions)s.") % {
            "server": part.server.name,
            "versions": ", ".join(versions),
        }
        others = dict.fromkeys(
            each.version for each in present.get(part.server.pk, ()) if each.major == major
        )
        remedy = _("Install it there and inspect the server again, or leave out version or server.")
        if others:
            remedy = _(
                "It has %(others)s: choose that as well, and its cells are of that release; or "
                "install the same release there and inspect the server again."
            ) % {"others": ", ".join(others)}
        yield Problem("version_missing", message, remedy, "installations")


def _release_notes(draft: Draft) -> Iterator[str]:
    """Major versions of which the servers measure different releases."""
    releases: dict[str, dict[str, str]] = defaultdict(dict)
    for part in parts(draft):
        ordered = sorted(part.installations, key=lambda each: each.version_num)
        for major in dict.fromkeys(each.major for each in ordered):
            own = dict.fromkeys(each.version for each in ordered if each.major == major)
            releases[major][part.server.name] = ", ".join(own)
    for found in releases.values():
        if len(set(found.values())) > 1:
            told = "; ".join(f"{name} {versions}" for name, versions in found.items())
            yield _(
                "Different releases of one version: %(told)s. Servers are compared only where both "
                "have the same release."
            ) % {"told": told}


def _by_address(servers: Sequence[Server]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for each in servers:
        found[each.address].append(each.name)
    return found


def _server_problems(part: Draft, draft: Draft, present: Present) -> Iterator[Problem]:
    server = part.server
    if server.state != Server.State.READY:
        message = server.problem or _("Server %(server)s is not ready.") % {"server": server.name}
        mend = _("Mend it and inspect the server again on its page.")
        remedy = _(server.problem_remedy) if server.problem_remedy else mend
        yield Problem(server.problem_code or "server_not_ready", message, remedy, "server")
    if not draft.installations:
        message = _("No installation of PostgreSQL is chosen.")
        yield Problem("no_installation", message, _("Choose at least one."), "installations")
    yield from _missing_versions(part, draft, present)
    yield from _tool_problems(part, present.get(server.pk, ()))


def _tool_problems(draft: Draft, present: Sequence[Installation]) -> Iterator[Problem]:
    server, client = draft.server, draft.client
    is_here = client is None or tools.counterpart(client, present) is not None
    if client is not None and not is_here:
        message = _("%(installation)s has no pgbench on %(server)s (any more).")
        words = {"installation": client, "server": server.name}
        if client.server_id != server.pk:
            message = _("%(server)s has no pgbench of the version of %(installation)s.")
        message %= words
        yield Problem("missing_program", message, _("Choose another pgbench."), "client")
    elif server.state == Server.State.READY and tools.tools_among(present, client) is None:
        message = _("No installation on %(server)s has pgbench and psql.") % {"server": server.name}
        remedy = _("Install PostgreSQL's client programs there and inspect the server again.")
        yield Problem("missing_program", message, remedy, "server")


def _refusals(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """Each installation that cannot run the scenario, or a level of it, with the reason."""
    seen = set()
    for installation, cell in cells(draft):
        requirement = scenario.refusal(installation.version_num, cell)
        if requirement is not None and (installation, requirement) not in seen:
            seen.add((installation, requirement))
            yield _refused(installation, requirement, scenario)
    yield from _extension_problems(draft, scenario)


def _extension_problems(draft: Draft, scenario: Scenario) -> Iterator[Problem]:
    """Each installation without an extension that a level needs."""
    seen = set()
    for installation, cell in cells(draft):
        for needed in scenario.extensions:
            lacks = needed.name not in installation.extensions
            if lacks and needed.concerns(cell) and (installation, needed) not in seen:
                seen.add((installation, needed))
                message = _("%(installation)s does not have the extension %(extension)s.") % {
                    "installation": installation,
                    "extension": needed.name,
                }
                remedy = _("Install it there and inspect the server again, or leave the level out.")
                field = needed.factor or "installations"
                yield Problem("missing_extension", message, remedy, field)


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


def _connection_problems(draft: Draft, fits: Sequence[InstallationFit]) -> Iterator[Problem]:
    most = min((each.fitted.max_connections for each in fits), default=0)
    # Three connections stay reserved for the superuser, one is BenchLab's own.
    clients = [level for level in draft.levels.get("clients", ()) if isinstance(level, int)]
    if not clients:
        clients = [draft.parameters.get("clients") or 0]
    if fits and max(clients, default=0) > most - 4:
        message = _("The configuration allows %(most)d connections.") % {"most": most}
        remedy = _("Choose fewer clients, or a configuration with more max_connections.")
        yield Problem("too_many_clients", message, remedy, "clients")


def _core_problems(part: Draft) -> Iterator[Problem]:
    """Numbers of cores that the server does not have, as far as it was asked."""
    cores = [level for level in part.levels.get(CORES, ()) if isinstance(level, int)]
    there = part.server.hardware.threads if part.server.hardware else None
    if there and max(cores, default=0) > there:
        message = _("%(server)s has %(there)d cores, hardware threads included.")
        words = {"server": part.server.name, "there": there}
        yield Problem("cores_not_there", message % words, _("Choose fewer cores."), CORES)


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
