"""Checks of a load generator: pgbench, tools, and the connection to the database."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.execution.preflight import Target
from runs.execution.treatment import Treatment
from runs.models import Installation, Server
from runs.services.campaigns import treatment_checks
from runs.services.servers import machine_checks as machine_findings
from runs.services.servers.machine_checks import Finding, error


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
    yield from machine_findings.of_machine(server, target, privileges=needed, needed=needed)
    if client is not None and client.bindir not in target.clients:
        message = _("No pgbench starts in %(bindir)s.") % {"bindir": client.bindir}
        remedy = _("Inspect the server again; what is gone is then no longer offered.")
        yield error(server, "missing_program", message, remedy)
    for problem in treatment_checks.problems(treatment.on_generator(), server, target):
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
