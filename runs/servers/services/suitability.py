"""Checks a draft against its servers: each server's own faults, versions, tools and space.

Each of several servers is checked for its own part of the draft; a problem that only some of them
have names those.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.utils.translation import gettext as _

from runs.campaigns.services.designs import Design, Part
from runs.campaigns.services.drafts import Draft
from runs.configurations.services import fitted_configurations
from runs.execution.clusters.initdb_options import about_checksums, options_for
from runs.grouping import group_by_key
from runs.models import Installation, Server
from runs.queue.services.plans import CORES
from runs.scenarios.definition import Requirement, Scenario
from runs.servers.services import tools
from runs.servers.services.servers import not_ready
from runs.shared.errors import Problem
from runs.tools.pgbench import version_text

# The factor whose levels are made by initdb.
CHECKSUMS = "checksums"


def problems(design: Design) -> list[Problem]:
    """Every problem of the servers, each once. No query."""
    draft = design.draft
    servers_of: dict[Problem, list[Server]] = defaultdict(list)
    for problem in _strangers(draft):
        servers_of[problem] = list(draft.servers)
    for server_part in design.parts:
        for problem in _part_problems(server_part, design):
            if server_part.server not in servers_of[problem]:
                servers_of[problem].append(server_part.server)
    return [_add_servers(problem, on, draft) for problem, on in servers_of.items()]


def notes(design: Design) -> Iterator[str]:
    """What is left out, and what to know before comparing servers; prevents nothing. No query."""
    yield from dict.fromkeys(
        _refused(design_cell.installation, design_cell.refusal, design.scenario).message
        for design_cell in design.left_out
        if design_cell.refusal is not None
    )
    servers = design.draft.servers
    if len(servers) < 2:
        return
    yield from _release_notes(design)
    used = {
        server_part.server.name: version_text(
            server_part.tools.pgbench.pgbench_version_num or 0
        )
        for server_part in design.parts
        if server_part.tools
    }
    if len(set(used.values())) > 1:
        yield _(
            "The servers' newest pgbench are of different versions. Choose one, so that only the "
            "servers differ."
        )
    for address, names in group_by_key(
        (server.address, server.name) for server in servers
    ).items():
        if len(names) > 1:
            yield _(
                "%(servers)s have the same address, %(address)s. If they are one machine, they "
                "disturb each other: their runs overlap."
            ) % {"servers": ", ".join(names), "address": address}


def _part_problems(server_part: Part, design: Design) -> Iterator[Problem]:
    yield from _server_problems(server_part, design.draft)
    yield from _refusals(server_part, design.scenario)
    yield from _initdb_problems(server_part, design)
    yield from fitted_configurations.problems(server_part.fits)
    yield from _connection_problems(server_part, design.draft)
    yield from _core_problems(server_part, design.draft)
    yield from _disk_problems(server_part, design)


def _add_servers(problem: Problem, on: Sequence[Server], draft: Draft) -> Problem:
    """Adds the names of the servers to a problem that only some have, unless it names them."""
    names = ", ".join(server.name for server in on)
    if len(on) == len(draft.servers) or names in problem.message:
        return problem
    return replace(problem, message=f"{names}: {problem.message}")


def _strangers(draft: Draft) -> Iterator[Problem]:
    servers = {server.pk for server in draft.servers}
    for installation in draft.installations:
        if installation.server_id not in servers or installation.removed_at:
            message = _("%(installation)s is not on %(server)s (any more).") % {
                "installation": installation,
                "server": ", ".join(server.name for server in draft.servers),
            }
            remedy = _("Inspect the server again and choose from what is there.")
            yield Problem("installation_missing", message, remedy, "installations")


def _missing_versions(server_part: Part, draft: Draft) -> Iterator[Problem]:
    """The major versions that other servers measure and this one does not."""
    here = {installation.major for installation in server_part.installations}
    ordered = sorted(
        draft.installations, key=lambda installation: installation.version_num
    )
    elsewhere = group_by_key(
        (installation.major, installation.version)
        for installation in ordered
        if installation.major not in here
    )
    for major, versions in elsewhere.items():
        words = {
            "server": server_part.server.name,
            "versions": ", ".join(dict.fromkeys(versions)),
        }
        message = _("%(server)s has no PostgreSQL %(versions)s.") % words
        other_releases = dict.fromkeys(
            installation.version
            for installation in server_part.present
            if installation.major == major
        )
        remedy = _(
            "Install it there and inspect the server again, or leave out version or server."
        )
        if other_releases:
            remedy = _(
                "It has %(others)s: choose that as well, and its cells are of that release; or "
                "install the same release there and inspect the server again."
            ) % {"others": ", ".join(other_releases)}
        yield Problem("version_missing", message, remedy, "installations")


def _release_notes(design: Design) -> Iterator[str]:
    """Major versions of which the servers measure different releases."""
    releases: dict[str, dict[str, str]] = defaultdict(dict)
    for server_part in design.parts:
        for major in dict.fromkeys(
            installation.major for installation in server_part.installations
        ):
            own_releases = dict.fromkeys(
                installation.version
                for installation in server_part.installations
                if installation.major == major
            )
            releases[major][server_part.server.name] = ", ".join(own_releases)
    for releases_of in releases.values():
        if len(set(releases_of.values())) > 1:
            text = "; ".join(
                f"{name} {versions}" for name, versions in releases_of.items()
            )
            yield _(
                "Different releases of one version: %(told)s. Servers are compared only where both "
                "have the same release."
            ) % {"told": text}


def _server_problems(server_part: Part, draft: Draft) -> Iterator[Problem]:
    server = server_part.server
    if server.state != Server.State.READY:
        yield not_ready(server, "server")
    if not draft.installations:
        message = _("No installation of PostgreSQL is chosen.")
        yield Problem(
            "no_installation", message, _("Choose at least one."), "installations"
        )
    yield from _missing_versions(server_part, draft)
    yield from _tool_problems(server_part, draft.client)


def _tool_problems(server_part: Part, client: Installation | None) -> Iterator[Problem]:
    server = server_part.server
    is_here = (
        client is None or tools.counterpart(client, server_part.present) is not None
    )
    if client is not None and not is_here:
        message = _("%(installation)s has no pgbench on %(server)s (any more).")
        words = {"installation": client, "server": server.name}
        if client.server_id != server.pk:
            message = _("%(server)s has no pgbench of the version of %(installation)s.")
        message %= words
        yield Problem(
            "missing_program", message, _("Choose another pgbench."), "client"
        )
    elif server.state == Server.State.READY and server_part.tools is None:
        message = _("No installation on %(server)s has pgbench and psql.") % {
            "server": server.name
        }
        remedy = _(
            "Install PostgreSQL's client programs there and inspect the server again."
        )
        yield Problem("missing_program", message, remedy, "server")


def _refusals(server_part: Part, scenario: Scenario) -> Iterator[Problem]:
    refused = dict.fromkeys(
        (cell.installation, cell.refusal)
        for cell in server_part.cells
        if cell.refusal is not None
    )
    for installation, refusal in refused:
        yield _refused(installation, refusal, scenario)
    yield from _extension_problems(server_part, scenario)


def _extension_problems(server_part: Part, scenario: Scenario) -> Iterator[Problem]:
    lacking = dict.fromkeys(
        (cell.installation, needed)
        for cell in server_part.cells
        for needed in scenario.extensions
        if needed.name not in cell.installation.extensions
        and needed.concerns(cell.levels)
    )
    for installation, needed in lacking:
        words = {"installation": installation, "extension": needed.name}
        message = (
            _("%(installation)s does not have the extension %(extension)s.") % words
        )
        remedy = _(
            "Install it there and inspect the server again, or leave the level out."
        )
        yield Problem(
            "missing_extension", message, remedy, needed.factor or "installations"
        )


def _initdb_problems(server_part: Part, design: Design) -> Iterator[Problem]:
    """initdb options of a configuration that initdb does not know, or that are varied anyway."""
    varies_checksums = CHECKSUMS in {factor.name for factor in design.scenario.factors}
    every = dict.fromkeys(
        tuple(variant.content.initdb_options) for variant in design.variants
    )
    for options in every:
        yield from fitted_configurations.option_problems(options)
        if about_checksums(options) and varies_checksums:
            message = _(
                "The configuration decides on page checksums, which this scenario varies."
            )
            remedy = _("Choose a configuration without that initdb option.")
            yield Problem("initdb_option_is_varied", message, remedy, "configuration")
        for installation in server_part.installations:
            try:
                options_for(installation.version_num, options)
            except ValueError as error:
                message = f"{installation}: {error}"
                remedy = _("Leave out that version, or choose another configuration.")
                yield Problem("initdb_option_unknown", message, remedy, "configuration")


def _refused(
    installation: Installation, requirement: Requirement, scenario: Scenario
) -> Problem:
    titles = {factor.name: _(factor.title) for factor in scenario.factors}
    scenario_title = _(scenario.title)
    if requirement.factor:
        scenario_title = (
            f"{titles.get(requirement.factor, requirement.factor)} {requirement.level}"
        )
    words = {
        "installation": installation,
        "what": scenario_title,
        "reason": _(requirement.reason),
    }
    message = _("%(installation)s cannot run %(what)s: %(reason)s") % words
    remedy = _("Leave out that version or that level.")
    return Problem(
        "version_too_old", message, remedy, requirement.factor or "installations"
    )


def _connection_problems(server_part: Part, draft: Draft) -> Iterator[Problem]:
    most = min(
        (
            installation_fit.fitted.max_connections
            for installation_fit in server_part.fits
        ),
        default=0,
    )
    # Three connections stay reserved for the superuser, one is BenchLab's own.
    clients = [
        level for level in draft.levels.get("clients", ()) if isinstance(level, int)
    ]
    if not clients:
        clients = [draft.parameters.get("clients") or 0]
    if server_part.fits and max(clients, default=0) > most - 4:
        message = _("The configuration allows %(most)d connections.") % {"most": most}
        remedy = _(
            "Choose fewer clients, or a configuration with more max_connections."
        )
        yield Problem("too_many_clients", message, remedy, "clients")


def _core_problems(server_part: Part, draft: Draft) -> Iterator[Problem]:
    """Numbers of cores that the server does not have, if its number is known."""
    cores = [level for level in draft.levels.get(CORES, ()) if isinstance(level, int)]
    number_of_threads = (
        server_part.server.hardware.threads if server_part.server.hardware else None
    )
    if number_of_threads and max(cores, default=0) > number_of_threads:
        message = _("%(server)s has %(there)d cores, hardware threads included.")
        words = {"server": server_part.server.name, "there": number_of_threads}
        yield Problem(
            "cores_not_there", message % words, _("Choose fewer cores."), CORES
        )


def _disk_problems(server_part: Part, design: Design) -> Iterator[Problem]:
    free, needed = server_part.server.free_bytes, design.needed_bytes(server_part)
    if free is not None and needed is not None and needed > free:
        message = _(
            "The campaign needs %(needed).1f GB on %(server)s; %(free).1f GB are free."
        ) % {
            "needed": needed / 1e9,
            "server": server_part.server.name,
            "free": free / 1e9,
        }
        remedy = _("Choose a smaller scale, free space, or use another base directory.")
        yield Problem("disk_too_small", message, remedy, "scale")
