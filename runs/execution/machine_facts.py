"""A machine as `probe.sh` reports it: hardware and environment, each with a fingerprint.

A fingerprint leaves out what changes by itself: the kernel's names for devices, and the few pages
of memory that another kernel reserves.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from runs.execution.control_characters import neutralised

MOST_DIGITS = 18
# Longer than any line that the probe prints about a machine or an installation.
MOST_CHARACTERS = 20_000

Sections = Mapping[str, Sequence[str]]


def sections_of(report: str) -> dict[str, list[str]]:
    """The lines below each `== name`."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for whole in neutralised(report).split("\n"):
        line = whole[:MOST_CHARACTERS]
        if line.startswith("== "):
            current = sections.setdefault(line[3:], [])
        else:
            current.append(line)
    return sections


def pairs(lines: Sequence[str], separator: str) -> dict[str, str]:
    """`name<separator>value` of each line."""
    split = (line.partition(separator) for line in lines)
    return {name.strip(): value.strip() for name, _, value in split}


def first(sections: Sections, name: str) -> str:
    """The first line of a section; empty if there is none."""
    lines = sections.get(name) or [""]
    return lines[0].strip()


def number_in(text: str | None) -> int | None:
    """A whole number that fits into a bigint of the database, or None for anything else."""
    if not text or len(text) > MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)


SECTOR_BYTES = 512
# Kernels reserve a few MB more or less of the same memory.
MEMORY_GRAIN_BYTES = 256 * 1024 * 1024
_CHOSEN = re.compile(r"\[([^\[\]]+)\]")
_CLOUD = re.compile(r'"(?:cloud_name|instance_type|machine_type|vmSize)": *"([^"]*)"')
# Limits that affect a PostgreSQL server or a load generator with many clients.
_LIMITS = {
    "Max open files": "open_files",
    "Max processes": "processes",
    "Max locked memory": "locked_memory_bytes",
    "Max stack size": "stack_bytes",
}


@dataclass(frozen=True)
class Disk:
    """A block device; size in bytes; None is unknown."""

    name: str
    size_bytes: int | None
    rotational: bool | None
    model: str


@dataclass(frozen=True)
class NetworkCard:
    """A physical network device; speed in Mbit/s, unknown for most virtual ones."""

    name: str
    driver: str
    speed_mbit: int | None
    mtu: int | None


@dataclass(frozen=True)
class Storage:
    """The storage of the base directory, and where its file system is mounted.

    `disks` are the devices below a volume or partition.
    """

    device: str = ""
    filesystem: str = ""
    options: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()
    scheduler: str = ""
    mount: str = ""


@dataclass(frozen=True)
class Hardware:
    """The hardware. Memory in bytes; unknown is None or empty.

    `cloud` is the instance in the cloud's terms (provider and instance type).
    """

    cpu_model: str
    sockets: int | None
    cores: int | None
    threads: int | None
    memory_bytes: int | None
    virtualization: str
    product: str
    disks: tuple[Disk, ...]
    threads_per_core: int | None = None
    numa_nodes: int | None = None
    cloud: str = ""
    network: tuple[NetworkCard, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The same for the same hardware, even if its devices are renamed at a restart."""
        facts = asdict(self)
        if self.memory_bytes is not None:
            facts["memory_bytes"] = round(self.memory_bytes / MEMORY_GRAIN_BYTES)
        for devices in ("disks", "network"):
            facts[devices] = _nameless(facts[devices])
        return _fingerprint(facts)


@dataclass(frozen=True)
class OperatingSystem:
    """What can change while the hardware stays.

    `governor` has every governor in use; `smt` and `turbo` whether they are on; `huge_pages` is
    the setting of transparent ones. `kernel_settings` are sysctls, `limits` the soft limits of
    the user that BenchLab logs in as (None is unlimited), `tools` versions by name, `more` any
    other named values from the probe.
    """

    name: str
    kernel: str
    architecture: str
    governor: str
    smt: bool | None = None
    turbo: bool | None = None
    huge_pages: str = ""
    storage: Storage = field(default_factory=Storage)
    kernel_settings: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int | None] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The same for the same environment, even if the disk is renamed at a restart."""
        facts = asdict(self)
        facts["storage"] |= {"device": "", "disks": ()}
        return _fingerprint(facts)


def hardware(sections: Sections) -> Hardware:
    """Read the sections about hardware."""
    cpu = pairs(sections.get("lscpu", []), ":")
    sockets = number_in(cpu.get("Socket(s)"))
    per_socket = number_in(cpu.get("Core(s) per socket"))
    named = cpu.get("Model name") or _after_colon(first(sections, "cpuinfo"))
    memory = number_in(
        pairs(sections.get("meminfo", []), ":").get("MemTotal", "").partition(" ")[0]
    )
    virtualization = first(sections, "virtualization") or cpu.get("Hypervisor vendor", "")
    cards = sections.get("network", [])
    return Hardware(
        cpu_model=named,
        sockets=sockets,
        cores=sockets * per_socket if sockets and per_socket else None,
        threads=number_in(cpu.get("CPU(s)")) or number_in(first(sections, "processors")),
        memory_bytes=memory * 1024 if memory is not None else None,
        virtualization="" if virtualization == "none" else virtualization,
        product=" ".join(line.strip() for line in sections.get("product", [])).strip(),
        disks=tuple(_disk(line) for line in sections.get("disks", []) if line.count("\t") == 3),
        threads_per_core=number_in(cpu.get("Thread(s) per core")),
        numa_nodes=number_in(cpu.get("NUMA node(s)")),
        cloud=" ".join(_CLOUD.findall("\n".join(sections.get("cloud", [])))),
        network=tuple(_card(line) for line in cards if line.count("\t") == 3),
    )


def operating_system(sections: Sections) -> OperatingSystem:
    """Read the sections about the environment."""
    release = pairs(sections.get("os_release", []), "=")
    system, _, rest = first(sections, "uname").partition(" ")
    kernel, _, architecture = rest.rpartition(" ")
    no_turbo = _flag(first(sections, "no_turbo"))
    chosen = _CHOSEN.search(first(sections, "huge_pages"))
    return OperatingSystem(
        name=release.get("PRETTY_NAME", system).strip('"'),
        kernel=f"{system} {kernel}".strip(),
        architecture=architecture,
        governor=" ".join(sections.get("governor", [])).strip(),
        smt=_flag(first(sections, "smt")),
        turbo=None if no_turbo is None else not no_turbo,
        huge_pages=chosen.group(1) if chosen else "",
        storage=_storage(pairs(sections.get("storage", []), "\t")),
        kernel_settings=_told(pairs(sections.get("sysctl", []), "\t")),
        limits=_limits(sections.get("limits", [])),
        tools=_told(pairs(sections.get("tools", []), "\t")),
        more=_told(pairs(sections.get("more", []), "\t")),
    )


def _disk(line: str) -> Disk:
    name, sectors, rotational, model = line.split("\t")
    size = number_in(sectors)
    return Disk(
        name=name,
        size_bytes=size * SECTOR_BYTES if size is not None else None,
        rotational=_flag(rotational),
        model=model.strip(),
    )


def _card(line: str) -> NetworkCard:
    name, driver, speed, mtu = line.split("\t")
    # A card without a cable reports -1, and so does one that does not know.
    return NetworkCard(name, driver, number_in(speed), number_in(mtu))


def _storage(told: dict[str, str]) -> Storage:
    return Storage(
        device=told.get("device", ""),
        filesystem=told.get("filesystem", ""),
        # Options of the mount and of the file system: many are in both.
        options=tuple(dict.fromkeys(filter(None, told.get("options", "").split(",")))),
        disks=tuple(told.get("disks", "").split()),
        scheduler=told.get("scheduler", ""),
        mount=told.get("mount", ""),
    )


def _limits(lines: Sequence[str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for line in lines:
        for title, name in _LIMITS.items():
            if line.startswith(title):
                found[name] = number_in(line[len(title) :].split()[0])
    return found


def _told(told: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in told.items() if name and value}


def _flag(text: str) -> bool | None:
    return {"0": False, "1": True}.get(text)


def _after_colon(text: str) -> str:
    return text.partition(":")[2].strip()


def _nameless(devices: Sequence[dict[str, Any]]) -> list[str]:
    """Devices in a stable order: the kernel numbers them as it finds them."""
    return sorted(json.dumps({**device, "name": ""}, sort_keys=True) for device in devices)


def _fingerprint(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
