"""Checks of any machine of a campaign, database or load generator."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from django.utils.translation import gettext as _

from runs.execution import privileged, sessions
from runs.execution.errors import TooFewSessions
from runs.execution.preflight import Target
from runs.execution.treatment import Treatment
from runs.models import Installation, Server
from runs.services.campaigns import treatments

MOST_SKEW_SECONDS = 2.0
BUSY_LOAD_PER_PROCESSOR = 0.25

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """A problem for a campaign, or (a warning) for trusting its numbers."""

    server: str
    code: str
    level: Level
    message: str
    remedy: str


def of_machine(
    server: Server, target: Target, *, privileges: Collection[str], needed: Collection[str]
) -> Iterator[Finding]:
    """Sessions, base directory, setsid, sudo and conditions.

    Of its `privileges`, those that are not `needed` only make a warning.
    """
    if not target.allows_sessions:
        message = _("It opens fewer sessions on one connection than a run needs (%(count)d).")
        yield error(
            server,
            TooFewSessions.code,
            message % {"count": sessions.NEEDED},
            _(TooFewSessions.remedy),
        )
    yield from _base_dir(server, target)
    if not target.has_setsid:
        message = _("The program setsid is missing on the server.")
        yield error(server, "missing_program", message, _("Install util-linux on the server."))
    yield from _sudo(server, target, privileges, needed)
    yield from _conditions(server, target)


def _base_dir(server: Server, target: Target) -> Iterator[Finding]:
    path = {"path": server.base_dir}
    told = {
        "another": (_("%(path)s belongs to another BenchLab."), "base_dir_foreign"),
        "foreign": (_("%(path)s holds files that BenchLab did not make."), "base_dir_foreign"),
        "file": (_("%(path)s is no folder."), "base_dir_not_writable"),
    }
    if target.base in told:
        message, code = told[target.base]
        remedy = _("Give each BenchLab its own empty or new folder.")
        yield error(server, code, message % path, remedy)
    elif not target.is_writable:
        message = _("The user %(user)s cannot write to %(path)s.")
        remedy = _("Run there, as root: install -d -o %(user)s -m 700 %(path)s")
        words = {"user": server.username, **path}
        yield error(server, "base_dir_not_writable", message % words, remedy % words)
    for name in target.links_out:
        message = _("%(path)s/%(name)s is a symbolic link.") % {"name": name, **path}
        yield error(server, "leads_out", message, _("Remove it."))
    if target.is_world_writable:
        message = _("Everybody on the machine can write to %(path)s.") % path
        remedy = _("Run there: chmod 700 %(path)s") % path
        yield error(server, "base_dir_world_writable", message, remedy)


def _sudo(
    server: Server, target: Target, privileges: Collection[str], needed: Collection[str]
) -> Iterator[Finding]:
    """Privileges that are ticked but not possible: a warning, or an error if one is needed."""
    for name in privileges:
        tell = error if name in needed else warning
        commands = [" ".join(words) for words in privileged.action(name).commands]
        programs = {command.partition(" ")[0] for command in commands}
        for program in sorted(programs & target.no_such_programs):
            message = _("%(program)s is not on the server; a privileged action needs it.")
            remedy = _("Install it, or take the action away on the server's page.")
            yield tell(server, "missing_program", message % {"program": program}, remedy)
        if refused := sorted(set(commands) & set(target.sudo_refused)):
            message = _("sudo does not allow: %(commands)s") % {"commands": "; ".join(refused)}
            remedy = _("Install the sudoers fragment that the server's page shows.")
            yield tell(server, "privilege_missing", message, remedy)


def _conditions(server: Server, target: Target) -> Iterator[Finding]:
    """What makes numbers or times doubtful, but prevents nothing."""
    if target.skew_s is not None and abs(target.skew_s) > MOST_SKEW_SECONDS:
        message = _("The clock differs by %(seconds).0f s from BenchLab's.")
        remedy = _("Let both keep their time by NTP (chrony, systemd-timesyncd).")
        yield warning(server, "clock_skew", message % {"seconds": target.skew_s}, remedy)
    load, processors = target.load, target.processors
    if load is not None and processors and load > BUSY_LOAD_PER_PROCESSOR * processors:
        message = _("The machine is busy: load %(load).1f on %(processors)d processors.")
        words = {"load": load, "processors": processors}
        remedy = _(
            "Look what runs there, and wait for its end before you measure: runs under foreign load"
            " are marked as doubtful."
        )
        yield warning(server, "host_busy", message % words, remedy)


def error(server: Server, code: str, message: str, remedy: str) -> Finding:
    """A problem that prevents the campaign."""
    return Finding(server.name, code, "error", message, remedy)


def warning(server: Server, code: str, message: str, remedy: str) -> Finding:
    """A problem that makes its numbers doubtful."""
    return Finding(server.name, code, "warning", message, remedy)


def needed_privileges(treatment: Treatment, server: Server) -> list[str]:
    """The actions that a run with the treatment performs as root on a load generator."""
    return ["governor"] if treatment.governor and "governor" in server.privileges else []


def of_generator(
    server: Server, target: Target, *, client: Installation | None, treatment: Treatment
) -> Iterator[Finding]:
    """Everything that keeps this machine from generating the load, or makes it doubtful.

    `client` is the installation whose pgbench is used; None if none is known, which the check of
    the draft reports.
    """
    needed = needed_privileges(treatment, server)
    yield from of_machine(server, target, privileges=needed, needed=needed)
    if client is not None and client.bindir not in target.clients:
        message = _("No pgbench starts in %(bindir)s.") % {"bindir": client.bindir}
        remedy = _("Inspect the server again; what is gone is then no longer offered.")
        yield error(server, "missing_program", message, remedy)
    for problem in treatments.problems_of_machines(treatment.on_generator(), server, target):
        yield error(server, problem.code, problem.message, problem.remedy)
    yield from _ways(server, target)


def _ways(server: Server, target: Target) -> Iterator[Finding]:
    if "ip" not in target.tools:
        message = _("The program ip is missing: the way to the database cannot be found by it.")
        yield error(server, "missing_program", message, _("Install iproute2 on this machine."))
    for address in target.unresolved:
        message = _("The name %(address)s of the database is not known here.")
        remedy = _(
            "Add it to DNS or to /etc/hosts of this machine, or register the database by a number."
        )
        yield error(server, "database_not_resolved", message % {"address": address}, remedy)
    for address in target.no_routes:
        message = _("No route leads from here to the database at %(address)s.")
        remedy = _("Add a route, or register the database by an address that this machine reaches.")
        yield error(server, "database_without_route", message % {"address": address}, remedy)
