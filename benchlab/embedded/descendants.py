"""Every process that came from this one, detached ones too, and how to end them.

On Linux a *subreaper* inherits its descendants' orphans, so a daemon stays in the tree below it.
Elsewhere a process that detached itself twice is out of sight.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36

# A postmaster takes SIGINT as a fast shutdown, so that goes first; force only comes last.
ENDING = ((0.0, signal.SIGINT), (2.0, signal.SIGTERM), (5.0, signal.SIGKILL))


@dataclass(frozen=True)
class Process:
    """A line of the process table. pid and `started` together name a process for good."""

    pid: int
    parent: int
    started: str
    zombie: bool


def become_subreaper() -> None:
    """Adopt the orphans among our descendants (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def process_table() -> list[Process]:
    """Every process of the machine that we may see."""
    return list(_read_proc() if Path("/proc/self/stat").exists() else _read_ps())


def _read_proc() -> Iterator[Process]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - scanned often; no Path objects needed
        if name.isdigit():
            with contextlib.suppress(OSError):
                # the command's name may hold blanks and parentheses: count from its end
                fields = (
                    Path(f"/proc/{name}/stat")
                    .read_text("latin-1")
                    .rpartition(")")[2]
                    .split()
                )
                yield Process(int(name), int(fields[1]), fields[19], fields[0] in "ZX")


def _read_ps() -> Iterator[Process]:
    command = ["ps", "-axo", "pid=,ppid=,stat=,lstart="]
    for line in subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.split("\n"):
        if line.strip():
            pid, parent, state, started = line.split(None, 3)
            yield Process(int(pid), int(parent), started, state.startswith("Z"))


def started(pid: int) -> str | None:
    """When that process started, in words of the system; None when there is none (or a zombie)."""
    for process in process_table():
        if process.pid == pid and not process.zombie:
            return process.started
    return None


def descendants(pid: int) -> list[Process]:
    """All processes below that one, zombies left out."""
    children: dict[int, list[Process]] = {}
    for process in process_table():
        children.setdefault(process.parent, []).append(process)
    processes: list[Process] = []
    parents = [pid]
    while parents:
        below = children.get(parents.pop(), [])
        processes += [process for process in below if not process.zombie]
        parents += [process.pid for process in below]
    return processes


class Ending:
    """Ends all descendants of this process with rising force; call advance() until it is True."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._told: set[tuple[signal.Signals, Process]] = set()

    def advance(self) -> bool:
        """Signal the remaining processes; return whether none is left (or none that we may)."""
        elapsed = time.monotonic() - self._began
        remaining = descendants(os.getpid())
        for after, number in ENDING:
            if elapsed >= after:
                for process in remaining:
                    if (number, process) not in self._told:
                        self._told.add((number, process))
                        with contextlib.suppress(ProcessLookupError, PermissionError):
                            os.kill(process.pid, number)
        return not remaining or elapsed > ENDING[-1][0] + 3


def reap_adopted(child_pids: Collection[int]) -> None:
    """Take leave of dead orphans that we adopted; our own children's statuses stay untouched."""
    if not hasattr(os, "waitid"):
        return
    with contextlib.suppress(ChildProcessError):
        while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if dead.si_pid in child_pids:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)


def working_in(folder: Path) -> list[int]:
    """Processes whose working directory is that folder; on Linux only, elsewhere none is seen."""
    pids = []
    for process in process_table():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{process.pid}/cwd") == str(folder):  # noqa: PTH115
                pids.append(process.pid)
    return pids
