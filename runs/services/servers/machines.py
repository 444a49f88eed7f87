"""The hardware and environment of servers: stored once per content; each change is an event."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from django.db import transaction

from runs.execution.facts import Facts
from runs.execution.machine import MEMORY_GRAIN_BYTES, Hardware, OperatingSystem
from runs.execution.nodes import DATABASE_NODE
from runs.models import Environment, HardwareProfile, Run, Server, ServerEvent
from runs.selectors.runs import at_work_on
from runs.selectors.servers.hardware import HARDWARE_FIELDS, Difference, differences

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
def keep_found(*, run: Run, name: str, facts: Facts | None, is_taken_over: bool) -> None:
    """Store the facts of a machine in the run's plan, with its server and with the run.

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


def as_untreated(*, server: Server, system: OperatingSystem) -> OperatingSystem:
    """The facts of a machine, without what the treatment of a run may have changed just now.

    While a run has the machine, or has left something there, those facts keep their known values.
    """
    known = server.environment.facts if server.environment else {}
    if not known or not _is_in_use(server):
        return system
    was = {PARANOIA: known.get("kernel_settings", {}).get(PARANOIA)}
    settings = {**system.kernel_settings, **{name: value for name, value in was.items() if value}}
    return replace(
        system, governor=known.get("governor", system.governor), kernel_settings=settings
    )


def _is_in_use(server: Server) -> bool:
    begun = Run.objects.filter(state__in=(*Run.ACTIVE, Run.State.LOST))
    return server.needs_sweep or begun.filter(at_work_on(server.pk)).exists()


def _server(run: Run, name: str) -> Server:
    """The server of a machine in the run's plan, locked."""
    plan = run.plan or {}
    others = (*plan.get("machines", ()), *plan.get("generators", ()))
    keys = {each["name"]: each["server_id"] for each in others}
    key = run.server_id if name == DATABASE_NODE else keys[name]
    servers = Server.objects.select_related("hardware", "environment")
    return servers.select_for_update(of=("self",)).get(pk=key or 0)


def _tell(server: Server, code: str, differing: Sequence[Difference]) -> None:
    if differing:
        message = "\n".join(each.told for each in differing)
        ServerEvent.objects.create(server=server, code=code, message=message)


def _profile(hardware: Hardware, known: HardwareProfile | None) -> HardwareProfile:
    if known is not None and _is_same(hardware, known):
        return known
    facts = asdict(hardware)
    columns = {name: facts.pop(name) for name in HARDWARE_FIELDS}
    name = hardware.cloud or hardware.product or hardware.cpu_model or "?"
    profile, _created = HardwareProfile.objects.get_or_create(
        fingerprint=hardware.fingerprint, defaults={"name": name[:200], **columns, "facts": facts}
    )
    return profile


def _is_same(hardware: Hardware, known: HardwareProfile) -> bool:
    """Apart from the pages that the kernel reserves, even across the border of a grain."""
    now, before = hardware.memory_bytes, known.memory_bytes
    if now is None or before is None or abs(now - before) >= MEMORY_GRAIN_BYTES / 2:
        return False
    return replace(hardware, memory_bytes=before).fingerprint == known.fingerprint


def _environment(system: OperatingSystem) -> Environment:
    facts = asdict(system)
    columns = {"os_name": facts.pop("name")}
    columns |= {name: facts.pop(name) for name in ("kernel", "architecture")}
    environment, _created = Environment.objects.get_or_create(
        fingerprint=system.fingerprint, defaults={**columns, "facts": facts}
    )
    return environment
