"""The known facts of a machine by their path, and the differences of two states of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import Environment, HardwareProfile

HARDWARE_FIELDS = (
    "cpu_model",
    "sockets",
    "cores",
    "threads",
    "memory_bytes",
    "virtualization",
)
ENVIRONMENT_FIELDS = ("os_name", "kernel", "architecture")

Profile = HardwareProfile | Environment


@dataclass(frozen=True)
class Difference:
    """A fact with a changed value; `after` is None if it is no longer known.

    Devices are given as a sorted list of texts.
    """

    name: str
    before: Any
    after: Any

    @property
    def told(self) -> str:
        """As events show it: `kernel: Linux 6.1 → Linux 6.8`."""
        arrow = "\N{RIGHTWARDS ARROW}"
        return f"{self.name}: {shown(self.before)} {arrow} {shown(self.after)}"


def differences(before: Profile, after: Profile) -> list[Difference]:
    """The changed facts, by name. A fact that was unknown before is not a change."""
    was, now = _flat(before), _flat(after)
    return [
        Difference(name, was[name], now.get(name))
        for name in sorted(was)
        if was[name] != now.get(name)
    ]


def shown(value: Any) -> str:
    """A fact in words."""
    if value is None:
        return "\N{EN DASH}"
    return "; ".join(value) if isinstance(value, list) else str(value)


def _flat(stored: Profile) -> dict[str, Any]:
    """Every known fact by its path."""
    fields = HARDWARE_FIELDS if isinstance(stored, HardwareProfile) else ENVIRONMENT_FIELDS
    columns = {name: getattr(stored, name) for name in fields}
    return dict(_leaves({**columns, **stored.facts}))


def _leaves(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        elif value is not None and value not in ("", [], ()):
            yield f"{prefix}{name}", _comparable(value)


def _comparable(value: Any) -> Any:
    """Lists of devices without their kernel names, in a fixed order."""
    if not isinstance(value, list | tuple):
        return value
    texts = [
        ", ".join(f"{key} {part}" for key, part in each.items() if key != "name" and part)
        if isinstance(each, Mapping)
        else str(each)
        for each in value
    ]
    return sorted(texts)
