"""A machine as `probe.sh` reports it: hardware and environment, each with a fingerprint.

A fingerprint leaves out what changes by itself: the kernel's names for devices, and the few pages
of memory that another kernel reserves.
"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from runs.execution.machine.processors import processors_of, restrictions, usable_memory
from runs.execution.machine.sections import Sections, first, number_in, pairs
from runs.fingerprints import fingerprint

SECTOR_BYTES = 512
# Kernels reserve a few MB more or less of the same memory.
MEMORY_GRAIN_BYTES = 256 * 1024 * 1024
_CHOSEN = re.compile(r"\[([^\[\]]+)\]")
_QUOTED = re.compile(r"""\A(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+(?=\s+#)""")
_ESCAPED = re.compile(r"\\([$`])")
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
        return fingerprint(facts)


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
        return fingerprint(facts)


def hardware(sections: Sections) -> Hardware:
    """Read the sections about hardware."""
    cpu = pairs(sections.get("lscpu", []), ":")
    virtualization = first(sections, "virtualization") or cpu.get(
        "Hypervisor vendor", ""
    )
    cards = sections.get("network", [])
    return Hardware(
        **processors_of(sections),
        memory_bytes=usable_memory(sections),
        virtualization="" if virtualization == "none" else virtualization,
        product=" ".join(line.strip() for line in sections.get("product", [])).strip(),
        disks=tuple(
            _disk(line) for line in sections.get("disks", []) if line.count("\t") == 3
        ),
        threads_per_core=number_in(cpu.get("Thread(s) per core")),
        numa_nodes=number_in(cpu.get("NUMA node(s)")),
        cloud=" ".join(_CLOUD.findall("\n".join(sections.get("cloud", [])))),
        network=tuple(_card(line) for line in cards if line.count("\t") == 3),
    )


def operating_system(sections: Sections) -> OperatingSystem:
    """Read the sections about the environment."""
    system, _, release_and_architecture = first(sections, "uname").partition(" ")
    kernel, _, architecture = release_and_architecture.rpartition(" ")
    no_turbo = _flag(first(sections, "no_turbo"))
    chosen = _CHOSEN.search(first(sections, "huge_pages"))
    return OperatingSystem(
        name=_system_name(sections.get("os_release", [])) or system,
        kernel=f"{system} {kernel}".strip(),
        architecture=architecture,
        governor=" ".join(sections.get("governor", [])).strip(),
        smt=_flag(first(sections, "smt")),
        turbo=None if no_turbo is None else not no_turbo,
        huge_pages=chosen.group(1) if chosen else "",
        storage=_storage(pairs(sections.get("storage", []), "\t")),
        kernel_settings=_known(pairs(sections.get("sysctl", []), "\t")),
        limits=_limits(sections.get("limits", [])),
        tools=_known(pairs(sections.get("tools", []), "\t")),
        more=_known(pairs(sections.get("more", []), "\t")) | restrictions(sections),
    )


def _system_name(lines: Sequence[str]) -> str:
    """The name in os-release, which is read as a shell reads it; else the first line."""
    release = {name: _read_shell(value) for name, value in pairs(lines, "=").items()}
    version = release.get("VERSION") or release.get("VERSION_ID", "")
    name = f"{release.get('NAME') or release.get('ID', '')} {version}".strip()
    first_line = next(
        (line.strip() for line in lines if line.strip() and "=" not in line), ""
    )
    return release.get("PRETTY_NAME") or name or first_line


def _read_shell(text: str) -> str:
    quoted = _QUOTED.match(text)  # a comment may stand behind it
    try:
        return _ESCAPED.sub(r"\1", " ".join(shlex.split(quoted[0] if quoted else text)))
    except ValueError:
        return text.strip("\"'")


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


def _storage(facts: dict[str, str]) -> Storage:
    return Storage(
        device=facts.get("device", ""),
        filesystem=facts.get("filesystem", ""),
        # Options of the mount and of the file system: many are in both.
        options=tuple(dict.fromkeys(filter(None, facts.get("options", "").split(",")))),
        disks=tuple(facts.get("disks", "").split()),
        scheduler=facts.get("scheduler", ""),
        mount=facts.get("mount", ""),
    )


def _limits(lines: Sequence[str]) -> dict[str, int | None]:
    limits: dict[str, int | None] = {}
    for line in lines:
        for title, name in _LIMITS.items():
            if line.startswith(title):
                limits[name] = number_in(line[len(title) :].split()[0])
    return limits


def _known(facts: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if name and value}


def _flag(text: str) -> bool | None:
    return {"0": False, "1": True}.get(text)


def _nameless(devices: Sequence[dict[str, Any]]) -> list[str]:
    """Devices in a stable order: the kernel numbers them as it finds them."""
    return sorted(
        json.dumps({**device, "name": ""}, sort_keys=True) for device in devices
    )
