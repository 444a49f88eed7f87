"""What servers are made of: stored once per content, and each change told as an event."""

from collections.abc import Sequence
from dataclasses import asdict

from runs.execution.machine import Hardware, OperatingSystem
from runs.models import Environment, HardwareProfile, Server, ServerEvent
from runs.selectors.host_facts import HARDWARE_FIELDS, Difference, differences

HARDWARE_CHANGED = "hardware_changed"
ENVIRONMENT_CHANGED = "environment_changed"


def keep(*, server: Server, hardware: Hardware, system: OperatingSystem) -> None:
    """Give the server, unsaved, the profile and environment of these facts.

    An event tells what is another than before. What was not known before is no change.
    """
    profile, environment = _profile(hardware), _environment(system)
    if server.hardware is not None and server.hardware != profile:
        _tell(server, HARDWARE_CHANGED, differences(server.hardware, profile))
    if server.environment is not None and server.environment != environment:
        _tell(server, ENVIRONMENT_CHANGED, differences(server.environment, environment))
    server.hardware, server.environment = profile, environment


def _tell(server: Server, code: str, differing: Sequence[Difference]) -> None:
    if differing:
        message = "\n".join(each.told for each in differing)
        ServerEvent.objects.create(server=server, code=code, message=message)


def _profile(hardware: Hardware) -> HardwareProfile:
    facts = asdict(hardware)
    columns = {name: facts.pop(name) for name in HARDWARE_FIELDS}
    name = hardware.cloud or hardware.product or hardware.cpu_model or "?"
    profile, _created = HardwareProfile.objects.get_or_create(
        fingerprint=hardware.fingerprint, defaults={"name": name[:200], **columns, "facts": facts}
    )
    return profile


def _environment(system: OperatingSystem) -> Environment:
    facts = asdict(system)
    columns = {"os_name": facts.pop("name")}
    columns |= {name: facts.pop(name) for name in ("kernel", "architecture")}
    environment, _created = Environment.objects.get_or_create(
        fingerprint=system.fingerprint, defaults={**columns, "facts": facts}
    )
    return environment
