"""The facts of a target: hardware, operating system and PostgreSQL installations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runs.execution.errors import TargetProblem
from runs.execution.machine import identity
from runs.execution.machine.identity import Identity
from runs.execution.machine.machine_facts import (
    Hardware,
    OperatingSystem,
    hardware,
    operating_system,
)
from runs.execution.machine.sections import number_in, sections_of
from runs.execution.ssh.hosts import Host
from runs.wording import gettext_noop as _

_HERE = Path(__file__).parent
_END = "\nsection end\n"
_MACHINE = (_HERE / "probe.sh").read_text()
_PROBE = _MACHINE + (_HERE / "probe_installations.sh").read_text() + _END
_VERSION = re.compile(
    r"\)\s+(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:devel|alpha|beta|rc)\d*)?\s*(.*)$"
)


@dataclass(frozen=True)
class InstallationFacts:
    """One set of PostgreSQL binaries. `version_num` as in `server_version_num`.

    Sizes are in bytes; what the binaries do not report without a cluster is None or empty.
    """

    bindir: str
    version: str
    version_num: int
    vendor: str
    configure_options: str
    pgbench_version_num: int | None
    has_psql: bool
    cflags: str = ""
    compiler: str = ""
    block_size: int | None = None
    wal_segment_size: int | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """All results of the probe."""

    hardware: Hardware
    operating_system: OperatingSystem
    installations: tuple[InstallationFacts, ...] = field(default_factory=tuple)
    # Folders whose PostgreSQL does not say its version, and what it said.
    broken: tuple[tuple[str, str], ...] = ()
    identity: Identity = field(default_factory=Identity)


async def discover(host: Host, bindirs: Sequence[str], *, base_dir: str = "/") -> Facts:
    """Inspect a target: read-only, one command. `bindirs` are searched before the usual places.

    The reported storage is that below `base_dir`.
    """
    reply = await host.run(
        ["sh", "-c", _PROBE, "probe", base_dir, *bindirs], timeout_s=60
    )
    return read(reply.stdout.decode(errors="replace"))


def machine_probe(base_dir: str) -> list[str]:
    """A quick command line for the machine alone, without its installations."""
    return ["sh", "-c", _MACHINE + _END, "probe", base_dir]


def read_machine(report: str) -> Facts:
    """Read the output of `machine_probe`. Raises TargetProblem for an incomplete report.

    A machine that, say, had no memory for another process must not count as a different machine.
    """
    machine_facts = read(report)
    if "end" not in sections_of(report) or not machine_facts.operating_system.kernel:
        raise TargetProblem(
            _("its report is not whole: %(report)s"),
            code="facts_unknown",
            remedy=_("Inspect the server again on its page."),
            report=report[-200:],
        )
    return machine_facts


def read(report: str) -> Facts:
    """Read the probe's report. What a machine did not report stays unknown."""
    sections = sections_of(report)
    installations = _installations(sections.get("installations", []))
    return Facts(
        hardware=hardware(sections),
        operating_system=operating_system(sections),
        installations=tuple(
            installation_facts
            for installation_facts in map(_installation, installations)
            if installation_facts is not None
        ),
        broken=tuple(
            (installation["bindir"], installation.get("postgres", "")[:300])
            for installation in installations
            if _installation(installation) is None
        ),
        identity=identity.read(sections),
    )


def version_num(text: str) -> int | None:
    """`postgres (PostgreSQL) 9.6.24` is 90624, `... 16.14` is 160014, `... 19beta1` is 190000."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first_number, second, third = (
        int(number_text or 0) for number_text in match.groups()[:3]
    )
    if first_number < 10:
        return first_number * 10000 + second * 100 + third
    return first_number * 10000 + second


def version_text(text: str) -> str:
    """`postgres (PostgreSQL) 9.6.24` is 9.6.24, `... 19beta1 (Debian)` is 19beta1."""
    match = _VERSION.search(text)
    if match is None:
        return ""
    numbers = ".".join(number_text for number_text in match.groups()[:3] if number_text)
    return numbers + (match.group(4) or "")


def _installations(lines: Sequence[str]) -> list[dict[str, str]]:
    installations: list[dict[str, str]] = []
    for line in lines:
        name, _, value = line.partition("\t")
        if name == "bindir":
            installations.append({})
        if installations:
            installations[-1][name] = value
    return installations


def _installation(facts: dict[str, str]) -> InstallationFacts | None:
    number = version_num(facts.get("postgres", ""))
    if number is None:
        return None
    match = _VERSION.search(facts["postgres"])
    return InstallationFacts(
        bindir=facts["bindir"],
        version=version_text(facts["postgres"]),
        version_num=number,
        vendor=match.group(5).strip("() ") if match else "",
        configure_options=facts.get("configure", ""),
        pgbench_version_num=version_num(facts.get("pgbench", "")),
        has_psql=bool(facts.get("psql")),
        cflags=facts.get("cflags", ""),
        compiler=_compiler(facts.get("compiler", "")),
        block_size=number_in(facts.get("block_size")),
        wal_segment_size=_wal_segment_size(facts, number),
        extensions=tuple(sorted(set(facts.get("extensions", "").split()))),
    )


def _compiler(text: str) -> str:
    """Of version()'s "PostgreSQL 18.4 on x86_64-pc-linux-gnu, compiled by gcc 14.2.1, 64-bit"."""
    compiler, _, bits = text.removeprefix(", compiled by ").rpartition(", ")
    return compiler[:200] if bits.endswith("-bit") else ""


def _wal_segment_size(facts: dict[str, str], number: int) -> int | None:
    """Up to version 10 the size is given in WAL blocks."""
    size, block = (
        number_in(facts.get("wal_segment_size")),
        number_in(facts.get("wal_block_size")),
    )
    if size is None or number >= 110000:
        return size
    return size * block if block else None
