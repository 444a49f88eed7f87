"""Checks a treatment against what a machine reports now: tools, kernel permissions."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.execution.preflight import Target
from runs.execution.treatment import Treatment
from runs.models import Server
from runs.scenarios import arrangements
from runs.services.campaigns import treatments
from runs.services.campaigns.drafts import Draft
from runs.services.problems import Problem


def problems(treatment: Treatment, server: Server, target: Target) -> Iterator[Problem]:
    """Why this machine cannot be treated so, beyond what stored facts already show.

    Pass what is done to this machine: for a load generator `Treatment.on_generator`.
    """
    pinned = [name for name in ("server_cpus", "pgbench_cpus") if getattr(treatment, name)]
    if pinned and "taskset" not in target.tools:
        yield _missing("taskset", _("Install util-linux on the server."), pinned[0])
    if treatment.profile:
        if "perf" not in target.tools:
            remedy = _("Install it (linux-perf, linux-tools or perf), or leave the profile out.")
            yield _missing("perf", remedy, "profile")
        elif (
            "perf" not in server.privileges
            and target.paranoia.isdigit()
            and int(target.paranoia) > treatments.STRICTEST_FOR_OWN
        ):
            yield treatments.perf_not_permitted(server, target.paranoia)
    if treatment.syscalls or treatment.stacks:
        if "strace" not in target.tools:
            remedy = _("Install strace there, or leave the system calls out.")
            yield _missing("strace", remedy, "syscalls")
        elif target.ptrace_scope not in {"", "0"}:
            yield treatments.trace_not_permitted(server)
    if treatment.governor and treatments.offered(server)["governor"]:
        yield from treatments.cpufreq_problems(server, list(target.governors))


def arrangement_problems(draft: Draft, target: Target) -> Iterator[Problem]:
    """What an arrangement of the campaign needs and this machine has not."""
    chosen = draft.levels.get(arrangements.NAME, ())
    for level, program in arrangements.PROGRAMS.items():
        if level in chosen and program not in target.tools:
            remedy = _("Install it there, or leave this arrangement out.")
            yield _missing(program, remedy, arrangements.NAME)


def _missing(program: str, remedy: str, field: str) -> Problem:
    message = _("The program %(program)s is missing on the server.") % {"program": program}
    return Problem("missing_program", message, remedy, field)
