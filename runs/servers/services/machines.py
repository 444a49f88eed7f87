"""Machines: their hardware and environment are stored, and checked for a campaign."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from django.db import transaction
from django.utils.translation import gettext as _

from runs.campaigns.services import treatments
from runs.execution.errors import TooFewSessions
from runs.execution.machine import privileged
from runs.execution.machine.machine_facts import (
    MEMORY_GRAIN_BYTES,
    Hardware,
    OperatingSystem,
)
from runs.execution.machine.target_facts import Facts
from runs.execution.machine.treatment import Treatment
from runs.execution.nodes import DATABASE_NODE
from runs.execution.preflight import Target
from runs.execution.ssh.hosts import SESSIONS_NEEDED
from runs.models import (
    Environment,
    HardwareProfile,
    Installation,
    Run,
    Server,
    ServerEvent,
)
from runs.queue.selectors.runs import match_server
from runs.servers.selectors.hardware import HARDWARE_FIELDS, Difference, differences
from runs.servers.selectors.shared_machines import add_twins
from runs.servers.services import shared_machines

HARDWARE_CHANGED = "hardware_changed"
ENVIRONMENT_CHANGED = "environment_changed"
# The sysctl that a run changes while it profiles.
PARANOIA = "kernel.perf_event_paranoid"


def keep(*, server: Server, hardware: Hardware, system: OperatingSystem) -> None:
    """Assign the profile and environment of these facts to the server, without saving it.

    An event reports what has changed. A fact that was unknown before is not a change.
    """
    profile, environment = _profile(hardware, server.hardware), _environment(system)
    if server.hardware is not None and server.hardware != profile:
        _tell(server, HARDWARE_CHANGED, differences(server.hardware, profile))
    if server.environment is not None and server.environment != environment:
        _tell(server, ENVIRONMENT_CHANGED, differences(server.environment, environment))
    server.hardware, server.environment = profile, environment


@transaction.atomic
def keep_found(
    *, run: Run, name: str, facts: Facts | None, is_taken_over: bool
) -> int | None:
    """Store the facts of a machine in the run's plan, with its server and with the run.

    Returns the server, if another machine or another kernel answers there than the last time.

    Without facts the run gets those known of its server. Facts of a run that was taken over were
    found by the previous worker: they belong to the run, but are not news about the server.
    """
    is_own = name == DATABASE_NODE
    if is_own:
        # Lock the run first, then its server, in the same order as cancelling.
        Run.objects.select_for_update(of=("self",)).filter(pk=run.pk).only("pk").first()
    server = _server(run, name)
    if facts is not None:
        before = server.hardware_id, server.environment_id
        if is_taken_over:
            server.hardware = _profile(facts.hardware, server.hardware)
            server.environment = _environment(facts.operating_system)
        else:
            keep(server=server, hardware=facts.hardware, system=facts.operating_system)
            if (server.hardware_id, server.environment_id) != before:
                server.save(update_fields=["hardware", "environment"])
    if is_own and not (is_taken_over and facts is None):
        Run.objects.filter(pk=run.pk).update(
            hardware=server.hardware, environment=server.environment
        )
    if (
        facts is None
        or is_taken_over
        or not shared_machines.is_news(server, facts.identity)
    ):
        return None
    return server.pk


def describe_untreated(*, server: Server, system: OperatingSystem) -> OperatingSystem:
    """The facts of a machine, without what the treatment of a run may have changed just now.

    While a run has the machine, or has left something there, those facts keep their known values.
    """
    known_facts = server.environment.facts if server.environment else {}
    if not known_facts or not _is_in_use(server):
        return system
    was = {PARANOIA: known_facts.get("kernel_settings", {}).get(PARANOIA)}
    settings = {
        **system.kernel_settings,
        **{name: value for name, value in was.items() if value},
    }
    return replace(
        system,
        governor=known_facts.get("governor", system.governor),
        kernel_settings=settings,
    )


def _is_in_use(server: Server) -> bool:
    begun = Run.objects.filter(state__in=(*Run.ACTIVE, Run.State.LOST))
    servers = add_twins({server.pk})
    return server.needs_sweep or any(
        begun.filter(match_server(pk)).exists() for pk in servers
    )


def _server(run: Run, name: str) -> Server:
    plan = run.plan or {}
    other_machines = (*plan.get("machines", ()), *plan.get("generators", ()))
    keys = {machine["name"]: machine["server_id"] for machine in other_machines}
    key = run.server_id if name == DATABASE_NODE else keys[name]
    servers = Server.objects.select_related("hardware", "environment")
    return servers.select_for_update(of=("self",)).get(pk=key or 0)


def _tell(server: Server, code: str, differing: Sequence[Difference]) -> None:
    if differing:
        message = "\n".join(difference.text for difference in differing)
        ServerEvent.objects.create(server=server, code=code, message=message)


def _profile(
    hardware: Hardware, known_profile: HardwareProfile | None
) -> HardwareProfile:
    if known_profile is not None and _is_same(hardware, known_profile):
        return known_profile
    facts = asdict(hardware)
    columns = {name: facts.pop(name) for name in HARDWARE_FIELDS}
    name = hardware.cloud or hardware.product or hardware.cpu_model or "?"
    profile, _created = HardwareProfile.objects.get_or_create(
        fingerprint=hardware.fingerprint,
        defaults={"name": name[:200], **columns, "facts": facts},
    )
    return profile


def _is_same(hardware: Hardware, known_profile: HardwareProfile) -> bool:
    """Apart from the pages that the kernel reserves, even across the border of a grain."""
    now, before = hardware.memory_bytes, known_profile.memory_bytes
    if now is None or before is None or abs(now - before) >= MEMORY_GRAIN_BYTES / 2:
        return False
    return (
        replace(hardware, memory_bytes=before).fingerprint == known_profile.fingerprint
    )


def _environment(system: OperatingSystem) -> Environment:
    facts = asdict(system)
    columns = {"os_name": facts.pop("name")}
    columns |= {name: facts.pop(name) for name in ("kernel", "architecture")}
    environment, _created = Environment.objects.get_or_create(
        fingerprint=system.fingerprint, defaults={**columns, "facts": facts}
    )
    return environment


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


def check_machine(
    server: Server,
    target: Target,
    *,
    privileges: Collection[str],
    needed: Collection[str],
) -> Iterator[Finding]:
    """Sessions, base directory, setsid, sudo and conditions.

    Of its `privileges`, those that are not `needed` only make a warning.
    """
    if not target.allows_sessions:
        message = _(
            "It opens fewer sessions on one connection than a run needs (%(count)d)."
        )
        yield error(
            server,
            TooFewSessions.code,
            message % {"count": SESSIONS_NEEDED},
            _(TooFewSessions.remedy),
        )
    yield from _base_dir(server, target)
    if not target.has_setsid:
        message = _("The program setsid is missing on the server.")
        yield error(
            server, "missing_program", message, _("Install util-linux on the server.")
        )
    yield from _sudo(server, target, privileges, needed)
    yield from _conditions(server, target)


def _base_dir(server: Server, target: Target) -> Iterator[Finding]:
    path = {"path": server.base_dir}
    values = {
        "another": (_("%(path)s belongs to another BenchLab."), "base_dir_foreign"),
        "foreign": (
            _("%(path)s holds files that BenchLab did not make."),
            "base_dir_foreign",
        ),
        "file": (_("%(path)s is no folder."), "base_dir_not_writable"),
    }
    if target.base in values:
        message, code = values[target.base]
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
            message = _(
                "%(program)s is not on the server; a privileged action needs it."
            )
            remedy = _("Install it, or take the action away on the server's page.")
            yield tell(
                server, "missing_program", message % {"program": program}, remedy
            )
        if refused := sorted(set(commands) & set(target.sudo_refused)):
            message = _("sudo does not allow: %(commands)s") % {
                "commands": "; ".join(refused)
            }
            remedy = _("Install the sudoers fragment that the server's page shows.")
            yield tell(server, "privilege_missing", message, remedy)


def _conditions(server: Server, target: Target) -> Iterator[Finding]:
    """What makes numbers or times doubtful, but prevents nothing."""
    if target.skew_s is not None and abs(target.skew_s) > MOST_SKEW_SECONDS:
        message = _("The clock differs by %(seconds).0f s from BenchLab's.")
        remedy = _("Let both keep their time by NTP (chrony, systemd-timesyncd).")
        yield warning(
            server, "clock_skew", message % {"seconds": target.skew_s}, remedy
        )
    load, processors = target.load, target.processors
    if load is not None and processors and load > BUSY_LOAD_PER_PROCESSOR * processors:
        message = _(
            "The machine is busy: load %(load).1f on %(processors)d processors."
        )
        words = {"load": load, "processors": processors}
        remedy = _(
            "Check what is running there, and wait until it ends before you measure: runs under "
            "foreign load are marked as doubtful."
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
    return (
        ["governor"] if treatment.governor and "governor" in server.privileges else []
    )


def check_generator(
    server: Server, target: Target, *, client: Installation | None, treatment: Treatment
) -> Iterator[Finding]:
    """Everything that keeps this machine from generating the load, or makes it doubtful.

    `client` is the installation whose pgbench is used; None if none is known, which the check of
    the draft reports.
    """
    needed = needed_privileges(treatment, server)
    yield from check_machine(server, target, privileges=needed, needed=needed)
    if client is not None and client.bindir not in target.clients:
        message = _("No pgbench starts in %(bindir)s.") % {"bindir": client.bindir}
        remedy = _("Inspect the server again; what is gone is then no longer offered.")
        yield error(server, "missing_program", message, remedy)
    for problem in treatments.problems_of_machines(
        treatment.select_generator_part(), server, target
    ):
        yield error(server, problem.code, problem.message, problem.remedy)
    yield from _ways(server, target)


def _ways(server: Server, target: Target) -> Iterator[Finding]:
    if "ip" not in target.tools:
        message = _(
            "The program ip is missing, so the route to the database cannot be checked."
        )
        yield error(
            server, "missing_program", message, _("Install iproute2 on this machine.")
        )
    for address in target.unresolved:
        message = _("The name %(address)s of the database is not known here.")
        remedy = _(
            "Add it to DNS or to /etc/hosts of this machine, or register the database by a number."
        )
        yield error(
            server, "database_not_resolved", message % {"address": address}, remedy
        )
    for address in target.no_routes:
        message = _("No route leads from here to the database at %(address)s.")
        remedy = _(
            "Add a route, or register the database by an address that this machine reaches."
        )
        yield error(
            server, "database_without_route", message % {"address": address}, remedy
        )
