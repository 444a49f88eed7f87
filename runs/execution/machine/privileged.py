"""The few actions that need root on a target, each a fixed command line that sudo allows exactly.

They are used only if a person has ticked them for that server. There are no wildcards, and no
program that could run or write something else. perf itself never runs as root: only the kernel's
permission for it is widened and restored (`runs.execution.clusters.leftovers`).
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from runs.execution.errors import ServerFault, TargetProblem
from runs.execution.ssh.hosts import Host
from runs.wording import gettext_noop as _

P = TypeVar("P", bound=TargetProblem)

SYSCTL = "/usr/sbin/sysctl"
CPUPOWER = "/usr/bin/cpupower"
GOVERNORS = ("performance", "powersave", "schedutil", "ondemand", "conservative")
# The kernel's own values, including Debian's 3 and Ubuntu's 4, so that they can be restored.
PARANOIA = ("-1", "0", "1", "2", "3", "4")
PARANOIA_FOR_PERF = "-1"

Command = tuple[str, ...]

DROP_CACHES: Command = (SYSCTL, "-w", "vm.drop_caches=3")
# What can be set and restored: by the name of the action, the command line for each value.
SETTINGS: dict[str, dict[str, Command]] = {
    "governor": {
        governor: (CPUPOWER, "frequency-set", "-g", governor) for governor in GOVERNORS
    },
    "perf": {
        level: (SYSCTL, "-w", f"kernel.perf_event_paranoid={level}")
        for level in PARANOIA
    },
}


@dataclass(frozen=True)
class Action:
    """Something that needs root: sudo has to allow only its commands."""

    name: str
    title: str
    commands: tuple[Command, ...]


ACTIONS = (
    Action("drop_caches", _("Drop the OS caches"), (DROP_CACHES,)),
    Action("governor", _("Set the CPU governor"), tuple(SETTINGS["governor"].values())),
    Action("perf", _("Let perf see the kernel"), tuple(SETTINGS["perf"].values())),
)
NAMES = tuple(action.name for action in ACTIONS)


def action(name: str) -> Action:
    """The action of that name. Raises KeyError."""
    return {action.name: action for action in ACTIONS}[name]


def sudoers(username: str, names: Iterable[str]) -> str:
    """The fragment for /etc/sudoers.d that allows exactly these actions; empty for none.

    See sudoers(5): in arguments `,`, `:`, `=` and the backslash are escaped.
    """
    chosen = set(names)
    allowed = [
        f"{_quoted(username)} ALL=(root) NOPASSWD: {_escaped(command)}"
        for action in ACTIONS
        if action.name in chosen
        for command in action.commands
    ]
    if not allowed:
        return ""
    return "\n".join(
        ["# BenchLab: exactly these command lines, as root.", *allowed, ""]
    )


async def refused(host: Host, names: Iterable[str]) -> list[str]:
    """Those of the actions for which sudo does not allow every command. Changes nothing."""
    refused_actions = []
    for name in names:
        for command in action(name).commands:
            reply = await host.run(["sudo", "-n", "-l", *command], timeout_s=20)
            if reply.exit_status != 0:
                refused_actions.append(name)
                break
    return refused_actions


def build_root_command(
    name: str, command: Command, granted: Collection[str]
) -> tuple[str, ...]:
    """The command line with which a target executes a command of an action as root.

    Raises TargetProblem `privilege_missing` if it is not ticked, ValueError for a command that
    does not belong to the action.
    """
    if command not in action(name).commands:
        raise ValueError(f"{command} is no command of {name}")
    if name not in granted:
        raise missing(name, _("it is not ticked for this server"))
    return ("sudo", "-n", *command)


def missing(name: str, reason: str) -> TargetProblem:
    """An action that was requested but is not ticked: `privilege_missing`."""
    return _missing(TargetProblem, name, reason)


def failed(name: str, output: str) -> TargetProblem:
    """One that failed: the server is at fault where sudo does not allow it, or is not there."""
    reason = output.strip()[-500:]
    if "sudo" not in reason:
        return missing(name, reason)
    fault = _missing(ServerFault, name, reason)
    fault.privilege = name
    return fault


def _missing(kind: type[P], name: str, reason: str) -> P:
    return kind(
        "%(title)s: %(reason)s",
        code="privilege_missing",
        remedy=_(
            "Tick it on the server's page, and install the sudoers fragment shown there."
        ),
        title=action(name).title,
        reason=reason,
    )


def _escaped(command: Command) -> str:
    return " ".join(re.sub(r"([\\,:=])", r"\\\1", word) for word in command)


def _quoted(username: str) -> str:
    """In capitals it would be the name of an alias."""
    return f'"{username}"' if username.isupper() else username
