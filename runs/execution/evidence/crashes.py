"""Why a process of PostgreSQL ended: by a signal, a panic, or the kernel for lack of memory.

Read from the server's log of the run, and where the machine lets us from its kernel's log, at the
time of the failure.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from runs.execution.errors import CommandTimeout, TargetProblem
from runs.execution.nodes import Node
from runs.wording import gettext_noop as _

_SCRIPT = (Path(__file__).parent / "killed.sh").read_text()
# In the log: server process (PID 4711) was terminated by signal 9.
_ENDED = re.compile(
    r"\(PID (\d{1,10})\) was terminated by (?:signal|exception) (\w{1,20})"
)
_PANIC = re.compile(r"\bPANIC: ")
_RECOVERY = ("automatic recovery in progress", "reinitializing")
_KILLED_BY_KERNEL = re.compile(r"Kill(?:ed)? process (\d{1,10})[ ,]\s?\(([^)]{1,20})\)")
_SINCE_BOOT = re.compile(r"\[\s{0,10}(\d{1,12}\.\d{1,9})\]")
KILL = "9"
LONGEST_LINE = 300
# A kernel's line without our process' number is believed only if it is as new as the load.
SLACK_SECONDS = 900.0
# What fails when its own process is killed.
OF_GENERATOR = frozenset({"pgbench_interrupted"})


@dataclass(frozen=True)
class Crash:
    """How a process ended: the line of the log, its number, and the signal (empty: a panic)."""

    line: str
    pid: str = ""
    signal: str = ""


@dataclass(frozen=True)
class KernelLog:
    """What a machine's kernel killed: lines; `in_group` of the server's control group."""

    lines: tuple[str, ...] = ()
    is_readable: bool = False
    uptime: float = 0.0
    in_group: int = 0

    def line_of(self, pid: str) -> str:
        """The line of a process by its number; empty without."""
        for line in reversed(self.lines):
            match = _KILLED_BY_KERNEL.search(line)
            if match and match[1] == pid:
                return line
        return ""

    def line_of_program(self, name: str, *, seconds: float) -> str:
        """The newest line of a program that is at most so old; empty without."""
        for line in reversed(self.lines):
            match = _KILLED_BY_KERNEL.search(line)
            at = _SINCE_BOOT.search(line)
            if not match or match[2] != name or not at:
                continue
            if self.uptime - float(at[1]) <= seconds:
                return line
        return ""


def first_crash(log: str) -> Crash | None:
    """The first process that ended otherwise than it should; what follows is its consequence."""
    for line in log.splitlines():
        if match := _ENDED.search(line):
            return Crash(line.strip()[:LONGEST_LINE], match[1], match[2])
        if _PANIC.search(line):
            return Crash(line.strip()[:LONGEST_LINE])
    return None


def has_recovered(log: str) -> bool:
    """Whether the server has ended all sessions after a crash, and recovered."""
    return any(phrase in log for phrase in _RECOVERY)


async def kernel_log(node: Node, pid: str = "") -> KernelLog:
    """What the kernel of a machine says; empty where it does not answer."""
    try:
        reply = await node.run(["sh", "-c", _SCRIPT, "killed", pid])
    except CommandTimeout:
        return KernelLog()
    return parse(reply.stdout.decode(errors="replace"))


def parse(report: str) -> KernelLog:
    """Read the script's output; what is not of it is left out."""
    lines: list[str] = []
    uptime, in_group, is_readable = 0.0, 0, True
    for row in report.splitlines():
        name, _space, value = row.partition(" ")
        if name == "kernel":
            lines.append(value.strip()[:LONGEST_LINE])
        elif name == "unreadable":
            is_readable = False
        elif name == "uptime" and re.fullmatch(r"\d{1,12}(\.\d{1,9})?", value):
            uptime = float(value)
        elif name == "group" and re.fullmatch(r"\d{1,18}", value):
            in_group = int(value)
    return KernelLog(tuple(lines), is_readable and bool(report), uptime, in_group)


def named(
    problem: TargetProblem, crash: Crash, log: str, kernel: KernelLog
) -> TargetProblem:
    """The problem with what the logs say of its cause."""
    line = crash.line
    if has_recovered(log):
        what = TargetProblem(
            _(
                "The server's log has: %(line)s. PostgreSQL ended all sessions and recovered in "
                "the load."
            ),
            line=line,
        )
    else:
        what = TargetProblem(_("The server's log has: %(line)s."), line=line)
    if crash.signal != KILL:
        return TargetProblem(
            "%(problem)s\n%(what)s",
            code="server_process_crashed",
            remedy=_(
                "Read the server's log: this is a fault of PostgreSQL, of an extension or of the "
                "machine."
            ),
            problem=problem,
            what=what,
        )
    if memory := kernel.line_of(crash.pid):
        both = TargetProblem("%(problem)s\n%(what)s", problem=problem, what=what)
        return out_of_memory(both, memory)
    return TargetProblem(
        "%(problem)s\n%(what)s %(kernel)s",
        code="server_process_killed",
        remedy=_(
            "Something ended a process of PostgreSQL by KILL: mostly the kernel for lack of memory "
            "(dmesg), else a person or a program. Lower shared_buffers, work_mem or the clients."
        ),
        problem=problem,
        what=what,
        kernel=_explain_kernel(kernel),
    )


def out_of_memory(problem: TargetProblem, line: str) -> TargetProblem:
    """The problem, where the kernel's log names the process that it killed."""
    return TargetProblem(
        _("%(problem)s\nThe kernel's log has: %(line)s."),
        code="out_of_memory",
        remedy=_(
            "The machine, or a control group of it, had too little memory: lower shared_buffers, "
            "work_mem or the clients, or raise the limit."
        ),
        problem=problem,
        line=line,
    )


def _explain_kernel(kernel: KernelLog) -> TargetProblem:
    if kernel.in_group:
        return TargetProblem(
            _(
                "The control group of the server has lost %(number)s processes for lack of memory "
                "since it was made."
            ),
            number=kernel.in_group,
        )
    if not kernel.is_readable:
        return TargetProblem(
            _(
                "The kernel's log cannot be read there: whether memory was short is not known."
            )
        )
    return TargetProblem(_("The kernel's log says nothing of that process."))
