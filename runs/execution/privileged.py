"""The few things that need root on a target, each a fixed command line that sudo allows exactly.

Nothing of it is used unless a person has ticked it for that server. There are no wildcards, and no
program that would run or write something else: perf itself never runs as root, only the kernel's
permission for it is widened and set back.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs.execution.errors import TargetProblem
from runs.execution.ssh import Host
from runs.wording import gettext_noop as _

SYSCTL = "/usr/sbin/sysctl"
CPUPOWER = "/usr/bin/cpupower"
GOVERNORS = ("performance", "powersave", "schedutil", "ondemand", "conservative")
# The kernel's own values, Debian's 3 and Ubuntu's 4 among them: it must be possible to set back.
PARANOIA = ("-1", "0", "1", "2", "3", "4")
PARANOIA_FOR_PERF = "-1"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Action:
    """Something that needs root: its commands are all that sudo has to allow for it."""

    name: str
    title: str
    commands: tuple[Command, ...]


ACTIONS = (
    Action("drop_caches", _("Drop the OS caches"), ((SYSCTL, "-w", "vm.drop_caches=3"),)),
    Action(
        "governor",
        _("Set the CPU governor"),
        tuple((CPUPOWER, "frequency-set", "-g", each) for each in GOVERNORS),
    ),
    Action(
        "perf",
        _("Let perf see the kernel"),
        tuple((SYSCTL, "-w", f"kernel.perf_event_paranoid={each}") for each in PARANOIA),
    ),
)
NAMES = tuple(action.name for action in ACTIONS)


def action(name: str) -> Action:
    """The action of that name. Raises KeyError."""
    return {each.name: each for each in ACTIONS}[name]


def sudoers(username: str, names: Iterable[str]) -> str:
    """The fragment for /etc/sudoers.d that allows these actions and nothing else; empty for none.

    See sudoers(5): in arguments `,`, `:`, `=` and the backslash are escaped.
    """
    chosen = set(names)
    allowed = [
        f"{_quoted(username)} ALL=(root) NOPASSWD: {_escaped(command)}"
        for each in ACTIONS
        if each.name in chosen
        for command in each.commands
    ]
    if not allowed:
        return ""
    return "\n".join(["# BenchLab: exactly these command lines, as root.", *allowed, ""])


async def refused(host: Host, names: Iterable[str]) -> list[str]:
    """Those of the actions for which sudo does not allow every command. Changes nothing."""
    found = []
    for name in names:
        for command in action(name).commands:
            asked = await host.run(["sudo", "-n", "-l", *command], timeout_s=20)
            if asked.exit_status != 0:
                found.append(name)
                break
    return found


async def drop_caches(host: Host, granted: Sequence[str]) -> None:
    """Write dirty pages out and empty page cache, dentries and inodes. Seconds on a large machine.

    Raises TargetProblem `privilege_missing`.
    """
    await host.run(["sync"])
    await _as_root(host, granted, "drop_caches", action("drop_caches").commands[0])


async def set_governor(host: Host, granted: Sequence[str], governor: str) -> None:
    """Set all CPUs' governor. Raises TargetProblem `privilege_missing`, ValueError for another."""
    command = (CPUPOWER, "frequency-set", "-g", governor)
    await _as_root(host, granted, "governor", command)


async def let_perf_see(host: Host, granted: Sequence[str], paranoia: str) -> str:
    """Set kernel.perf_event_paranoid, and return what it was, to set it back afterwards.

    Raises TargetProblem `privilege_missing`, ValueError for a value that is not known.
    """
    was = await host.run(["cat", "/proc/sys/kernel/perf_event_paranoid"])
    command = (SYSCTL, "-w", f"kernel.perf_event_paranoid={paranoia}")
    await _as_root(host, granted, "perf", command)
    return was.stdout.decode().strip()


async def _as_root(host: Host, granted: Sequence[str], name: str, command: Command) -> None:
    if command not in action(name).commands:
        raise ValueError(f"{command} is no command of {name}")
    if name not in granted:
        raise _missing(name, _("it is not ticked for this server"))
    answer = await host.run(["sudo", "-n", *command], timeout_s=120)
    if answer.exit_status != 0:
        said = (answer.stderr + answer.stdout).decode(errors="replace").strip()
        raise _missing(name, said[-500:])


def _missing(name: str, reason: str) -> TargetProblem:
    return TargetProblem(
        f"{action(name).title}: {reason}",
        code="privilege_missing",
        remedy=_("Tick it on the server's page, and install the sudoers fragment shown there."),
    )


def _escaped(command: Command) -> str:
    return " ".join(re.sub(r"([\\,:=])", r"\\\1", word) for word in command)


def _quoted(username: str) -> str:
    """In capitals it would be the name of an alias."""
    return f'"{username}"' if username.isupper() else username
