"""What the facts of a hardware profile say: found by an inspection, printed, or uploaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import HardwareProfile

# Parts of the names under which publications and uploaders tell of storage.
STORAGE_WORDS = ("storage", "ssd", "hdd", "disk", "nvme")
LANGUAGES = ("en", "ja")


@dataclass(frozen=True)
class Fact:
    """A fact by its path (`raid.level`); the value may be a text in two languages."""

    name: str
    value: Any

    @property
    def words(self) -> str:
        """The name as one would say it."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Facts:
    """The facts of a profile. Devices are mappings as an inspection found them."""

    disks: tuple[Mapping[str, Any], ...]
    storage: tuple[Fact, ...]
    network: tuple[Mapping[str, Any], ...]
    cloud: str
    product: str
    numa_nodes: int | None
    threads_per_core: int | None
    others: tuple[Fact, ...]


def facts_of(profile: HardwareProfile) -> Facts:
    """All that is known of it beside its columns; what has another form than expected, as text."""
    told = dict(profile.facts) if isinstance(profile.facts, Mapping) else {}
    disks, network = _devices(told, "disks"), _devices(told, "network")
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


def _devices(told: dict[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
    """Takes a list of devices out of the facts."""
    found = told.get(name)
    if isinstance(found, list) and all(isinstance(each, Mapping) for each in found):
        return tuple(told.pop(name))
    return ()


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
