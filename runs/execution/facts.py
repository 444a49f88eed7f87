"""What a target is: hardware, operating system and PostgreSQL installations, discovered."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from runs.execution.ssh import Host

_PROBE = (Path(__file__).parent / "probe.sh").read_text()
_VERSION = re.compile(r"\)\s+(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:devel|alpha|beta|rc)\d*)?\s*(.*)$")
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Disk:
    """A block device; size in bytes; unknown is None."""

    name: str
    size_bytes: int | None
    rotational: bool | None
    model: str


@dataclass(frozen=True)
class Hardware:
    """What the machine is made of. Memory in bytes; unknown is None or empty."""

    cpu_model: str
    sockets: int | None
    cores: int | None
    threads: int | None
    memory_bytes: int | None
    virtualization: str
    product: str
    disks: tuple[Disk, ...]

    @property
    def fingerprint(self) -> str:
        """The same for the same hardware."""
        return _fingerprint(asdict(self))


@dataclass(frozen=True)
class OperatingSystem:
    """What changes without the hardware changing."""

    name: str
    kernel: str
    architecture: str
    governor: str

    @property
    def fingerprint(self) -> str:
        """The same for the same environment."""
        return _fingerprint(asdict(self))


@dataclass(frozen=True)
class InstallationFacts:
    """One set of PostgreSQL binaries. `version_num` as in `server_version_num`.

    Sizes are in bytes; what the binaries do not tell without a cluster is None or empty.
    """

    bindir: str
    version: str
    version_num: int
    vendor: str
    configure_options: str
    pgbench_version_num: int | None
    has_psql: bool
    cflags: str = ""
    block_size: int | None = None
    wal_segment_size: int | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """All that the probe found."""

    hardware: Hardware
    operating_system: OperatingSystem
    installations: tuple[InstallationFacts, ...] = field(default_factory=tuple)


async def discover(host: Host, bindirs: Sequence[str]) -> Facts:
    """Look at a target: read-only, one command. `bindirs` are looked at before the usual places."""
    answer = await host.run(["sh", "-c", _PROBE, "probe", *bindirs], timeout_s=60)
    return read(answer.stdout.decode(errors="replace"))


def read(report: str) -> Facts:
    """Read the probe's report. What a machine did not tell stays unknown."""
    sections = _sections(report)
    return Facts(
        hardware=_hardware(sections),
        operating_system=_operating_system(sections),
        installations=tuple(_installations(sections.get("installations", []))),
    )


def version_num(text: str) -> int | None:
    """`postgres (PostgreSQL) 9.6.24` is 90624, `... 16.14` is 160014, `... 19beta1` is 190000."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second, third = (int(part or 0) for part in match.groups()[:3])
    if first < 10:
        return first * 10000 + second * 100 + third
    return first * 10000 + second


def _version_text(text: str) -> str:
    match = _VERSION.search(text)
    if match is None:
        return ""
    numbers = ".".join(part for part in match.groups()[:3] if part)
    return numbers + (match.group(4) or "")


def _sections(report: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in report.splitlines():
        if line.startswith("== "):
            current = sections.setdefault(line[3:], [])
        else:
            current.append(line)
    return sections


def _hardware(sections: dict[str, list[str]]) -> Hardware:
    cpu = _pairs(sections.get("lscpu", []), ":")
    sockets = _number(cpu.get("Socket(s)"))
    per_socket = _number(cpu.get("Core(s) per socket"))
    named = cpu.get("Model name") or _after_colon(_first(sections, "cpuinfo"))
    memory = _pairs(sections.get("meminfo", []), ":").get("MemTotal", "")
    virtualization = _first(sections, "virtualization") or cpu.get("Hypervisor vendor", "")
    return Hardware(
        cpu_model=named,
        sockets=sockets,
        cores=sockets * per_socket if sockets and per_socket else None,
        threads=_number(cpu.get("CPU(s)")) or _number(_first(sections, "processors")),
        memory_bytes=int(memory.split()[0]) * 1024 if memory.split() else None,
        virtualization="" if virtualization == "none" else virtualization,
        product=" ".join(line.strip() for line in sections.get("product", [])).strip(),
        disks=tuple(_disk(line) for line in sections.get("disks", []) if line.count("\t") == 3),
    )


def _operating_system(sections: dict[str, list[str]]) -> OperatingSystem:
    release = _pairs(sections.get("os_release", []), "=")
    system, _, rest = _first(sections, "uname").partition(" ")
    kernel, _, architecture = rest.rpartition(" ")
    return OperatingSystem(
        name=release.get("PRETTY_NAME", system).strip('"'),
        kernel=f"{system} {kernel}".strip(),
        architecture=architecture,
        governor=_first(sections, "governor"),
    )


def _installations(lines: Sequence[str]) -> list[InstallationFacts]:
    found: list[dict[str, str]] = []
    for line in lines:
        name, _, value = line.partition("\t")
        if name == "bindir":
            found.append({})
        if found:
            found[-1][name] = value
    return [facts for facts in map(_installation, found) if facts is not None]


def _installation(told: dict[str, str]) -> InstallationFacts | None:
    number = version_num(told.get("postgres", ""))
    if number is None:
        return None
    match = _VERSION.search(told["postgres"])
    return InstallationFacts(
        bindir=told["bindir"],
        version=_version_text(told["postgres"]),
        version_num=number,
        vendor=match.group(5).strip("() ") if match else "",
        configure_options=told.get("configure", ""),
        pgbench_version_num=version_num(told.get("pgbench", "")),
        has_psql=bool(told.get("psql")),
        cflags=told.get("cflags", ""),
        block_size=_number(told.get("block_size")),
        wal_segment_size=_wal_segment_size(told, number),
        extensions=tuple(sorted(set(told.get("extensions", "").split()))),
    )


def _wal_segment_size(told: dict[str, str], number: int) -> int | None:
    """To version 10 the size is told in WAL blocks."""
    size, block = _number(told.get("wal_segment_size")), _number(told.get("wal_block_size"))
    if size is None or number >= 110000:
        return size
    return size * block if block else None


def _disk(line: str) -> Disk:
    name, sectors, rotational, model = line.split("\t")
    size = _number(sectors)
    return Disk(
        name=name,
        size_bytes=size * SECTOR_BYTES if size is not None else None,
        rotational={"0": False, "1": True}.get(rotational),
        model=model.strip(),
    )


def _pairs(lines: Sequence[str], separator: str) -> dict[str, str]:
    split = (line.partition(separator) for line in lines)
    return {name.strip(): value.strip() for name, _, value in split}


def _first(sections: dict[str, list[str]], name: str) -> str:
    lines = sections.get(name) or [""]
    return lines[0].strip()


def _after_colon(text: str) -> str:
    return text.partition(":")[2].strip()


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _fingerprint(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
