"""Hardware profiles, what was measured on each, and how two states of a machine differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    Count,
    Exists,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.campaigns.selectors import campaigns
from runs.campaigns.selectors.campaigns import CampaignRow
from runs.execution.machine.machine_facts import Disk, NetworkCard
from runs.grouping import group_by_key
from runs.models import (
    Campaign,
    Environment,
    HardwareProfile,
    PublishedNode,
    Run,
    Server,
)
from runs.models.campaigns import Origin
from runs.shared.formats import term

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
    facts = dict(profile.facts) if isinstance(profile.facts, Mapping) else {}
    devices: dict[str, Any] = {
        "disks": _devices(facts, "disks", Disk),
        "network": _devices(facts, "network", NetworkCard),
        **{name: _taken(facts, name, str) or "" for name in ("cloud", "product")},
        **{
            name: _taken(facts, name, int)
            for name in ("numa_nodes", "threads_per_core")
        },
    }
    # What is left.
    remaining_facts = group_by_key(
        (_is_storage(fact), fact) for fact in (Fact(*leaf) for leaf in _leaves(facts))
    )
    return Facts(
        **devices,
        storage=tuple(remaining_facts[True]),
        others=tuple(remaining_facts[False]),
    )


def _devices(
    facts: dict[str, Any], name: str, kind: type[Device]
) -> tuple[Device, ...]:
    """Takes devices out of the facts, if all have the form that an inspection gives them."""
    entries = facts.get(name)
    devices_made = (
        [_device(entry, kind) for entry in entries] if isinstance(entries, list) else []
    )
    devices_known = tuple(
        network_card for network_card in devices_made if network_card is not None
    )
    if not devices_known or len(devices_known) < len(devices_made):
        return ()
    del facts[name]
    return devices_known


def _device(entry: Any, kind: type[Device]) -> Device | None:
    types = {field.name: field.type for field in fields(kind)}
    if not isinstance(entry, Mapping) or set(entry) - set(types):
        return None
    values = {
        name: entry.get(name, "" if field_type is str else None)
        for name, field_type in types.items()
    }
    is_readable = all(
        isinstance(values[name], field_type)  # type: ignore[arg-type]
        for name, field_type in types.items()
    )
    return kind(**values) if is_readable else None


def _taken(facts: dict[str, Any], name: str, kind: type) -> Any:
    """Takes a text or a number out of the facts; None where there is none of that kind."""
    return kind(facts.pop(name)) if isinstance(facts.get(name), kind) else None


def _is_storage(fact: Fact) -> bool:
    return any(word in fact.name.lower() for word in STORAGE_WORDS)


def _leaves(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and not set(value) <= set(LANGUAGES):
            yield from _leaves(value, f"{path}.")
        elif isinstance(value, list):
            yield path, "; ".join(map(_text, value))
        elif value not in (None, "", {}):
            yield path, value if isinstance(value, Mapping) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name} {member}" for name, member in value.items() if member is not None
        )
    return str(value)


# At most this many runs are counted: a list of machines must not read a million of them.
MOST_COUNTED = 1_000


@dataclass(frozen=True)
class HardwareRow:
    """A profile, the servers that have it now, and how much was measured on it.

    `runs` are the finished ones that the reader may see, counted up to MOST_COUNTED; published ones
    are counted as campaigns.
    """

    hardware: HardwareProfile
    facts: Facts
    servers: tuple[Server, ...]
    runs: int
    published: int

    @property
    def has_more_runs(self) -> bool:
        """There are more runs than were counted."""
        return self.runs >= MOST_COUNTED


def listed(*, to: Reader) -> QuerySet[HardwareProfile]:
    """Profiles by name that the reader may know of.

    These are the profiles of a server or a publication, and those with a run that the reader may
    see: a profile that only a private project has uploaded stays private.
    """
    runs = Run.objects.filter(hardware=OuterRef("pk")).order_by("-pk")
    # Not Exists: for that PostgreSQL may read all runs there are, at once for all profiles.
    seen = {
        f"seen_{number}": Subquery(part.values("pk")[:1])
        for number, part in enumerate(projects.parts(runs, to=to))
    }
    is_seen = Q(Exists(Server.objects.filter(hardware=OuterRef("pk"))))
    is_seen |= Q(Exists(PublishedNode.objects.filter(hardware=OuterRef("pk"))))
    for name in seen:
        is_seen |= Q(**{f"{name}__isnull": False})
    profiles_with_runs = HardwareProfile.objects.alias(**seen).filter(is_seen)
    return profiles_with_runs.order_by("name", "pk")


def rows(
    hardware_profiles: Sequence[HardwareProfile], *, to: Reader
) -> list[HardwareRow]:
    """These profiles with what was measured on each. Three queries, whatever their number."""
    keys = [hardware_profile.pk for hardware_profile in hardware_profiles]
    servers, runs, published = _servers(keys), _runs(keys, to), _published(keys, to)
    return [
        HardwareRow(
            hardware=hardware_profile,
            facts=facts_of(hardware_profile),
            servers=tuple(servers[hardware_profile.pk]),
            runs=runs.get(hardware_profile.pk, 0),
            published=published.get(hardware_profile.pk, 0),
        )
        for hardware_profile in hardware_profiles
    ]


def used_by(hardware: HardwareProfile, *, to: Reader, limit: int) -> list[CampaignRow]:
    """The newest campaigns of its newest runs that the reader may see, and published ones on it."""
    own_runs = Run.objects.filter(hardware=hardware).order_by("-pk")
    runs = projects.newest(own_runs, to=to, number=MOST_COUNTED)
    ran = sorted(set(runs.values_list("campaign", flat=True)), reverse=True)[:limit]
    printed = (
        PublishedNode.objects.filter(hardware=hardware)
        .order_by()
        .values("table__campaign")
    )
    using = campaigns.listed().filter(Q(pk__in=ran) | Q(pk__in=printed))
    return campaigns.rows(projects.visible(using, to=to)[:limit])


def _servers(keys: Sequence[int]) -> dict[int, list[Server]]:
    servers = Server.objects.filter(hardware__in=keys).order_by("name", "pk")
    return group_by_key((server.hardware_id or 0, server) for server in servers)


def _runs(keys: Sequence[int], to: Reader) -> dict[int, int]:
    # PostgreSQL reads only a profile's runs, and stops at the limit.
    finished_runs = Run.objects.filter(
        hardware=OuterRef("pk"), state=Run.State.FINISHED
    ).order_by()
    here = finished_runs.exclude(origin=Origin.PUBLISHED)
    counts = {
        f"number_{number}": Func(
            ArraySubquery(part.values("pk")[:MOST_COUNTED]),
            function="cardinality",
            output_field=IntegerField(),
        )
        for number, part in enumerate(projects.parts(here, to=to))
    }
    profiles = HardwareProfile.objects.filter(pk__in=keys).order_by()
    return {
        pk: min(sum(numbers), MOST_COUNTED)
        for pk, *numbers in profiles.annotate(**counts).values_list("pk", *counts)
    }


def _published(keys: Sequence[int], to: Reader) -> dict[int | None, int]:
    visible_campaigns = projects.visible(Campaign.objects.all(), to=to)
    nodes = PublishedNode.objects.filter(
        hardware__in=keys, table__campaign__in=visible_campaigns
    ).order_by()
    return dict(
        nodes.values_list("hardware").annotate(Count("table__campaign", distinct=True))
    )


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
    """A fact with a changed value, None if no longer known; devices as a sorted list of texts."""

    name: str
    before: Any
    after: Any

    @property
    def text(self) -> str:
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
    fields = (
        HARDWARE_FIELDS if isinstance(stored, HardwareProfile) else ENVIRONMENT_FIELDS
    )
    columns = {name: getattr(stored, name) for name in fields}
    return dict(_comparable_leaves({**columns, **stored.facts}))


def _comparable_leaves(
    facts: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _comparable_leaves(value, f"{prefix}{name}.")
        elif value is not None and value not in ("", [], ()):
            yield f"{prefix}{name}", _comparable(value)


def _comparable(value: Any) -> Any:
    """Lists of devices without their kernel names, in a fixed order."""
    if not isinstance(value, list | tuple):
        return value
    texts = [
        ", ".join(
            f"{key} {member}"
            for key, member in device.items()
            if key != "name" and member
        )
        if isinstance(device, Mapping)
        else str(device)
        for device in value
    ]
    return sorted(texts)
