"""The facts of a hardware profile: found by an inspection, printed, or uploaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from runs.execution.machine import Disk, NetworkCard
from runs.models import HardwareProfile
from runs.templatetags.formats import term

Device = TypeVar("Device", Disk, NetworkCard)

# Parts of the names that publications and uploads use for storage.
STORAGE_WORDS = ("storage", "ssd", "hdd", "disk", "nvme")
LANGUAGES = ("en", "ja")


@dataclass(frozen=True)
class Fact:
    """A fact by its path (`raid.level`); the value may be a text in two languages."""

    name: str
    value: Any

    @property
    def words(self) -> str:
        """The name in readable form."""
        return term(self.name)


@dataclass(frozen=True)
class Facts:
    """The facts of a profile. Text, numbers and devices of an unexpected form are in `others`."""

    disks: tuple[Disk, ...]
    storage: tuple[Fact, ...]
    network: tuple[NetworkCard, ...]
    cloud: str
    product: str
    numa_nodes: int | None
    threads_per_core: int | None
    others: tuple[Fact, ...]


def facts_of(profile: HardwareProfile) -> Facts:
    """Everything known besides its columns; values of unexpected form as text."""
    told = dict(profile.facts) if isinstance(profile.facts, Mapping) else {}
    disks = _devices(told, "disks", Disk)
    network = _devices(told, "network", NetworkCard)
    cloud, product = _text_of(told, "cloud"), _text_of(told, "product")
    numa_nodes, threads = _number_of(told, "numa_nodes"), _number_of(told, "threads_per_core")
    remaining = [Fact(*leaf) for leaf in _leaves(told)]
    return Facts(
        disks=disks,
        storage=tuple(fact for fact in remaining if _is_storage(fact)),
        network=network,
        cloud=cloud,
        product=product,
        numa_nodes=numa_nodes,
        threads_per_core=threads,
        others=tuple(fact for fact in remaining if not _is_storage(fact)),
    )


def _devices(told: dict[str, Any], name: str, kind: type[Device]) -> tuple[Device, ...]:
    """Takes devices out of the facts, if all have the form that an inspection gives them."""
    found = told.get(name)
    made = [_device(each, kind) for each in found] if isinstance(found, list) else []
    known = tuple(each for each in made if each is not None)
    if not known or len(known) < len(made):
        return ()
    del told[name]
    return known


def _device(given: Any, kind: type[Device]) -> Device | None:
    types = {each.name: each.type for each in fields(kind)}
    if not isinstance(given, Mapping) or set(given) - set(types):
        return None
    values = {name: given.get(name, "" if of is str else None) for name, of in types.items()}
    is_readable = all(isinstance(values[name], of) for name, of in types.items())  # type: ignore[arg-type]
    return kind(**values) if is_readable else None


def _text_of(told: dict[str, Any], name: str) -> str:
    """Takes a text out of the facts."""
    return str(told.pop(name)) if isinstance(told.get(name), str) else ""


def _number_of(told: dict[str, Any], name: str) -> int | None:
    """Takes a number out of the facts."""
    return int(told.pop(name)) if isinstance(told.get(name), int) else None


def _is_storage(fact: Fact) -> bool:
    return any(word in fact.name.lower() for word in STORAGE_WORDS)


def _leaves(told: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in told.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and not set(value) <= set(LANGUAGES):
            yield from _leaves(value, f"{path}.")
        elif isinstance(value, list):
            yield path, "; ".join(map(_text, value))
        elif value not in (None, "", {}):
            yield path, value if isinstance(value, Mapping) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {part}" for name, part in value.items() if part is not None)
    return str(value)
