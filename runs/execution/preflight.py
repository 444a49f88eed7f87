"""Checks a target before anything is queued: read-only, one command, all problems at once."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runs.execution.machine import privileged
from runs.execution.machine.sections import number_in
from runs.execution.ssh.hosts import Host
from runs.execution.ssh.login_shell import shell_fault
from runs.execution.steps.base_dir import BaseDir

TIMEOUT_SECONDS = 5.0
NEEDED_PROGRAMS = ("postgres", "initdb", "pg_ctl")

_SCRIPT = (Path(__file__).parent / "preflight.sh").read_text()


@dataclass(frozen=True)
class Target:
    """What a target reports. Bytes and seconds; unknown is None.

    `skew_s` is how far its clock is ahead of this one.
    `tools` are those of taskset, perf, ip, strace, pgbouncer and valgrind that exist; `paranoia` is
    perf_event_paranoid, `ptrace_scope` Yama's, and `governors` are those of its processors, empty
    without cpufreq.
    `commands` are the files of the folder of that name, each with what preflight.sh says of it;
    `has_linked_commands` if that folder is a link.
    `clients` are the folders whose pgbench starts; `unresolved` and `no_routes` are addresses that
    it cannot reach. `allows_sessions`: whether one connection can have as many sessions as a run
    needs.
    """

    skew_s: float | None
    uid: int | None
    load: float | None
    processors: int | None
    memory_bytes: int | None
    available_bytes: int | None
    free_bytes: int | None
    base: str
    is_writable: bool
    is_world_writable: bool
    has_setsid: bool
    links_out: tuple[str, ...] = ()
    programs: frozenset[str] = frozenset()
    versions: dict[str, str] = field(default_factory=dict)
    sudo_refused: tuple[str, ...] = ()
    no_such_programs: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    paranoia: str = ""
    ptrace_scope: str = ""
    governors: tuple[str, ...] = ()
    clients: frozenset[str] = frozenset()
    unresolved: tuple[str, ...] = ()
    no_routes: tuple[str, ...] = ()
    allows_sessions: bool = True
    has_linked_commands: bool = False
    commands: dict[str, str] = field(default_factory=dict)

    def lacks(self, bindir: str) -> list[str]:
        """The server programs that a folder lacks."""
        return [
            needed_program
            for needed_program in NEEDED_PROGRAMS
            if f"{bindir}/{needed_program}" not in self.programs
        ]


async def look(
    host: Host,
    base: BaseDir,
    bindirs: Sequence[str],
    privileges: Sequence[str],
    addresses: Sequence[str] = (),
) -> Target:
    """Ask a target everything in one command. Raises ConnectionLost, TargetProblem."""
    sudo = [
        " ".join(words)
        for name in privileges
        for words in privileged.action(name).commands
    ]
    argv = ["sh", "-c", _SCRIPT, "preflight", base.path, base.mark(base.path), *bindirs]
    before = time.time()
    reply = await host.run(
        [*argv, "--", *sudo, "--", *addresses], timeout_s=TIMEOUT_SECONDS
    )
    after = time.time()
    report = reply.stdout.decode(errors="replace")
    if "end\tyes" not in report:
        raise shell_fault(reply.stdout + reply.stderr)
    target = read(report, before=before, after=after)
    return replace(target, allows_sessions=await host.allows_sessions())


def read(report: str, *, before: float, after: float) -> Target:
    """Read the report of a script that ran between two times of this machine's clock."""
    lines_of: dict[str, list[str]] = {}
    for line in report.splitlines():
        name, _tab, value = line.partition("\t")
        lines_of.setdefault(name, []).append(value.strip())

    def first(name: str) -> str:
        return lines_of.get(name, [""])[0]

    # The clock is read first, so close to the start; a login that prints a greeting may take time.
    clock = _number(first("clock").partition("%")[0])
    return Target(
        skew_s=_skew(clock, before, after),
        uid=number_in(first("uid")),
        load=_number(first("load")),
        processors=number_in(first("processors")),
        memory_bytes=_bytes(first("memory_total_kb")),
        available_bytes=_bytes(first("memory_available_kb")),
        free_bytes=_bytes(first("free_kb")),
        base=first("base"),
        is_writable=first("writable") == "yes",
        is_world_writable=first("world_writable") == "yes",
        has_setsid=first("setsid") == "yes",
        links_out=tuple(lines_of.get("leads_out", ())),
        programs=frozenset(lines_of.get("program", ())),
        versions=dict(_two_words(line) for line in lines_of.get("version", ())),
        sudo_refused=tuple(lines_of.get("sudo_refused", ())),
        no_such_programs=frozenset(lines_of.get("no_such_program", ())),
        tools=frozenset(lines_of.get("tool", ())),
        paranoia=first("paranoia"),
        ptrace_scope=first("ptrace_scope"),
        governors=tuple(first("governors").split()),
        clients=frozenset(lines_of.get("client", ())),
        unresolved=tuple(lines_of.get("unresolved", ())),
        no_routes=tuple(lines_of.get("no_route", ())),
        has_linked_commands=first("commands") == "link",
        commands=_commands(lines_of.get("command", ())),
    )


def _commands(lines: Sequence[str]) -> dict[str, str]:
    files = (line.partition(" ") for line in lines)
    return {name: state for state, _blank, name in files}


def _skew(clock: float | None, before: float, after: float) -> float | None:
    """0 if the target's clock is between the two times; else how far it is outside."""
    if clock is None:
        return None
    if clock < before:
        return clock - before
    return max(0.0, clock - after)


def _two_words(text: str) -> tuple[str, str]:
    """A folder, which may contain blanks, and the output of its postgres."""
    bindir, separator, version = text.partition(" postgres (")
    return (bindir, f"postgres ({version}") if separator else (text, "")


def _number(text: str) -> float | None:
    return (
        float(text) if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", text, re.ASCII) else None
    )


def _bytes(kilobytes: str) -> int | None:
    number = number_in(kilobytes)
    return number * 1024 if number is not None else None
