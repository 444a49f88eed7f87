"""Treatments: what a campaign may do to its machines, and what prevents it."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

from runs.campaigns.services.drafts import Draft
from runs.execution.evidence import evidence
from runs.execution.machine import cpus, privileged
from runs.execution.machine.treatment import Treatment
from runs.execution.preflight import Target
from runs.models import Installation, Server
from runs.scenarios import arrangements
from runs.shared.errors import Problem
from runs.tools.pgbench import version_text

# Where it is stricter, the kernel lets only root sample, even one's own processes.
STRICTEST_FOR_OWN = 2
PARANOIA = "kernel.perf_event_paranoid"


def offered(server: Server) -> dict[str, bool]:
    """Which parts of a treatment need a permission, and whether that server gives it."""
    return {
        "cold_cache": "drop_caches" in server.privileges,
        "governor": "governor" in server.privileges,
    }


def needed_privileges(treatment: Treatment, server: Server) -> list[str]:
    """The actions that a run with the treatment performs as root on a database server."""
    is_wanted_by_name = {
        "drop_caches": treatment.cold_cache,
        "governor": bool(treatment.governor),
        "perf": treatment.profile and "perf" in server.privileges,
    }
    return [name for name, is_wanted in is_wanted_by_name.items() if is_wanted]


def problems(draft: Draft) -> Iterator[Problem]:
    """Everything that prevents the machines and installations of a draft from being treated so."""
    treatment, servers, generators = draft.treatment, draft.servers, draft.generators
    for server in servers:
        if treatment.cold_cache and not offered(server)["cold_cache"]:
            yield _not_ticked(server, "drop_caches", "cold_cache")
        if treatment.profile:
            paranoia = str(_facts(server).get("kernel_settings", {}).get(PARANOIA, ""))
            yield from _perf_problems(server, paranoia)
    if treatment.governor:
        yield from _governor_problems(treatment.governor, servers, generators)
    yield from _cpu_problems("server_cpus", treatment.server_cpus, servers)
    yield from _cpu_problems(
        "pgbench_cpus", treatment.pgbench_cpus, generators or servers
    )
    yield from _evidence_problems(treatment, draft.installations)


def _governor_problems(
    governor: str, servers: Sequence[Server], generators: Sequence[Server]
) -> Iterator[Problem]:
    if governor not in privileged.GOVERNORS:
        message = _("There is no CPU governor %(name)s.") % {"name": governor[:40]}
        remedy = _("Choose one of: %(names)s.") % {
            "names": ", ".join(privileged.GOVERNORS)
        }
        yield Problem("unknown_governor", message, remedy, "governor")
    for server in servers:
        if not offered(server)["governor"]:
            yield _not_ticked(server, "governor", "governor")
    for server in (*servers, *generators):
        if offered(server)["governor"]:
            facts = _facts(server)
            known_governors = (
                str(facts["governor"]).split() if "governor" in facts else None
            )
            yield from _cpufreq_problems(server, known_governors)


def _cpufreq_problems(
    server: Server, governors: Sequence[str] | None
) -> Iterator[Problem]:
    """Why its governor cannot be changed, given those in use; None means not known."""
    name = {"server": server.name}
    if governors is None:
        return
    if not governors:
        message = (
            _("%(server)s has no CPU governor (no cpufreq), as most virtual machines.")
            % name
        )
        remedy = _("Leave the governor out, or choose another server.")
        yield Problem("no_cpufreq", message, remedy, "governor")
    elif len(governors) > 1 or governors[0] not in privileged.GOVERNORS:
        message = _(
            "The governor of %(server)s could not be restored: it is %(found)s."
        )
        words = {**name, "found": ", ".join(governors)}
        remedy = _(
            "Give all its processors one of these, and inspect the server again: %(names)s."
        )
        names = {"names": ", ".join(privileged.GOVERNORS)}
        yield Problem("cannot_be_set_back", message % words, remedy % names, "governor")


def _cpu_problems(
    field: str, text: str, machines: Sequence[Server]
) -> Iterator[Problem]:
    if not text:
        return
    try:
        highest_cpu = max(cpus.parse(text))
    except ValueError:
        message = _("%(text)s is not a list of CPUs.") % {"text": text[:40]}
        yield Problem(
            "not_a_cpu_list", message, _("Give numbers and ranges, as in 0-3,8."), field
        )
        return
    for machine in machines:
        threads = machine.hardware.threads if machine.hardware else None
        if threads and highest_cpu >= threads:
            message = _("%(server)s has no CPU %(number)d.")
            words = {"server": machine.name, "number": highest_cpu}
            remedy = _("Choose from 0 to %(last)d.") % {"last": threads - 1}
            yield Problem("out_of_range", message % words, remedy, field)


def _perf_problems(server: Server, paranoia: str) -> Iterator[Problem]:
    """That the kernel lets only root sample, and nothing can be changed about it."""
    if (
        "perf" in server.privileges
        or not paranoia.isdigit()
        or int(paranoia) <= STRICTEST_FOR_OWN
    ):
        return
    message = _(
        "The kernel of %(server)s lets only root use perf (%(setting)s = %(value)s)."
    ) % {
        "server": server.name,
        "setting": PARANOIA,
        "value": paranoia,
    }
    remedy = _(
        "Tick 'Let perf see the kernel' on its Edit page and install the sudoers fragment."
    )
    yield Problem("perf_not_permitted", message, remedy, "profile")


def _evidence_problems(
    treatment: Treatment, installations: Sequence[Installation]
) -> Iterator[Problem]:
    """Evidence that these installations cannot give, or that one run cannot combine."""
    if treatment.syscalls and treatment.stacks:
        message = _("strace counts system calls or shows stacks, and not both at once.")
        yield Problem("one_tracer_only", message, _("Queue two campaigns."), "stacks")
    since = {"waits": evidence.WAITS_SINCE, "io": evidence.IO_SINCE}
    for installation in installations:
        for name, first_version in since.items():
            if getattr(treatment, name) and installation.version_num < first_version:
                message = _(
                    "PostgreSQL %(version)s does not provide this: it was added in %(since)s."
                )
                words = {
                    "version": installation.version,
                    "since": version_text(first_version),
                }
                yield Problem(
                    "version_too_old", message % words, _("Leave one out."), name
                )
        if treatment.statements and evidence.LIBRARY not in installation.extensions:
            message = _("%(installation)s does not have the extension %(extension)s.")
            words = {"extension": evidence.LIBRARY, "installation": str(installation)}
            remedy = _(
                "Install PostgreSQL's contrib modules there (postgresql-contrib)."
            )
            yield Problem("missing_extension", message % words, remedy, "statements")


def _not_ticked(server: Server, action: str, field: str) -> Problem:
    words = {"server": server.name, "action": _(privileged.action(action).title)}
    message = _("%(server)s does not permit: %(action)s.") % words
    remedy = _(
        "Tick it on the server's Edit page, and install the sudoers fragment shown then."
    )
    return Problem("privilege_missing", message, remedy, field)


def _facts(server: Server) -> dict[str, Any]:
    return server.environment.facts if server.environment else {}


def problems_of_machines(
    treatment: Treatment, server: Server, target: Target
) -> Iterator[Problem]:
    """Why this machine cannot be treated so, beyond what stored facts already show.

    Pass what is done to this machine: for a load generator `Treatment.select_generator_part`.
    """
    pinned = [
        name for name in ("server_cpus", "pgbench_cpus") if getattr(treatment, name)
    ]
    if pinned and "taskset" not in target.tools:
        yield _missing("taskset", _("Install util-linux on the server."), pinned[0])
    if treatment.profile:
        if "perf" not in target.tools:
            remedy = _(
                "Install it (linux-perf, linux-tools or perf), or leave the profile out."
            )
            yield _missing("perf", remedy, "profile")
        else:
            yield from _perf_problems(server, target.paranoia)
    if treatment.syscalls or treatment.stacks:
        if "strace" not in target.tools:
            remedy = _("Install strace there, or leave the system calls out.")
            yield _missing("strace", remedy, "syscalls")
        elif target.ptrace_scope not in {"", "0"}:
            message = _("The kernel of %(server)s lets only root attach strace.")
            message %= {"server": server.name}
            remedy = _(
                "Set kernel.yama.ptrace_scope to 0 there, or leave the system calls out."
            )
            yield Problem("trace_not_permitted", message, remedy, "syscalls")
    if treatment.instructions and "valgrind" not in target.tools:
        remedy = _("Install valgrind there, or leave the instructions out.")
        yield _missing("valgrind", remedy, "instructions")
    if treatment.governor and offered(server)["governor"]:
        yield from _cpufreq_problems(server, list(target.governors))


def arrangement_problems(draft: Draft, target: Target) -> Iterator[Problem]:
    """What an arrangement of the campaign needs and this machine has not."""
    chosen = draft.levels.get(arrangements.NAME, ())
    for level, program in arrangements.PROGRAMS.items():
        if level in chosen and program not in target.tools:
            remedy = _("Install it there, or leave this arrangement out.")
            yield _missing(program, remedy, arrangements.NAME)


def _missing(program: str, remedy: str, field: str) -> Problem:
    message = _("The program %(program)s is missing on the server.") % {
        "program": program
    }
    return Problem("missing_program", message, remedy, field)
