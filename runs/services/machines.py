"""What servers are made of: stored once per content, and each change told as an event."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from runs.execution.machine import Hardware, OperatingSystem
from runs.models import Environment, HardwareProfile, Server, ServerEvent

HARDWARE_CHANGED = "hardware_changed"
ENVIRONMENT_CHANGED = "environment_changed"

_HARDWARE_FIELDS = (
    "cpu_model",
    "sockets",
    "cores",
    "threads",
    "memory_bytes",
    "virtualization",
)
_ENVIRONMENT_FIELDS = ("os_name", "kernel", "architecture")


def keep(*, server: Server, hardware: Hardware, system: OperatingSystem) -> None:
    """Give the server, unsaved, the profile and environment of these facts.

    An event tells what is another than before. What was not known before is no change.
    """
    profile, environment = _profile(hardware), _environment(system)
    if server.hardware is not None and server.hardware != profile:
        before = _flat(server.hardware, _HARDWARE_FIELDS)
        _tell(server, HARDWARE_CHANGED, before, _flat(profile, _HARDWARE_FIELDS))
    if server.environment is not None and server.environment != environment:
        before = _flat(server.environment, _ENVIRONMENT_FIELDS)
        _tell(server, ENVIRONMENT_CHANGED, before, _flat(environment, _ENVIRONMENT_FIELDS))
    server.hardware, server.environment = profile, environment


def _tell(server: Server, code: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    changes = [
        f"{name}: {_shown(before[name])} \N{RIGHTWARDS ARROW} {_shown(after.get(name))}"
        for name in sorted(before)
        if before[name] != after.get(name)
    ]
    if changes:
        ServerEvent.objects.create(server=server, code=code, message="\n".join(changes))


def _profile(hardware: Hardware) -> HardwareProfile:
    facts = asdict(hardware)
    columns = {name: facts.pop(name) for name in _HARDWARE_FIELDS}
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


def _flat(stored: HardwareProfile | Environment, fields: tuple[str, ...]) -> dict[str, Any]:
    """Every known fact by its path."""
    columns = {name: getattr(stored, name) for name in fields}
    return dict(_leaves({**columns, **stored.facts}))


def _leaves(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        elif value is not None and value not in ("", [], ()):
            yield f"{prefix}{name}", _comparable(value)


def _comparable(value: Any) -> Any:
    """Lists of devices without what the kernel calls them, in an order of their own."""
    if not isinstance(value, list | tuple):
        return value
    shown = [
        ", ".join(f"{key} {part}" for key, part in each.items() if key != "name" and part)
        if isinstance(each, Mapping)
        else str(each)
        for each in value
    ]
    return sorted(shown)


def _shown(value: Any) -> str:
    if value is None:
        return "\N{EN DASH}"
    return "; ".join(value) if isinstance(value, list) else str(value)
