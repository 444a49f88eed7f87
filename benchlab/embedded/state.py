"""What an instance leaves on disk for the next start: its lock, ports and process ids."""

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchlab.embedded.descendants import started
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import write_private
from benchlab.embedded.processes import Pause

# Longer than the target takes to end what was started through it.
LEFTOVER_PATIENCE = 12.0


@dataclass
class State:
    """instance.json. `pid` is the supervisor's, 0 when stopped; `started` tells pids apart."""

    url: str = ""
    pid: int = 0
    ports: dict[str, int] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    started: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "State":
        """The state as written last; an empty one when there is none to be understood."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return cls()

    def write(self, path: Path) -> None:
        """Replace the file."""
        write_private(path, json.dumps(asdict(self), indent=2) + "\n")

    def note_processes(self, pids: Mapping[str, int]) -> None:
        """Remember which processes run now."""
        self.pids = dict(pids)
        self.started = {name: started(pid) or "" for name, pid in pids.items()}


@contextlib.contextmanager
def locked(lock: Path, state: Path) -> Iterator[None]:
    """Hold the instance's lock. Raises StartError, with its holder, if it is taken."""
    with lock.open("a") as file:
        lock.chmod(0o600)  # anybody who can open it could also hold it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            running = State.read(state)
            raise StartError(
                f"already running at {running.url or 'an address not known yet'}/"
                f" (process {running.pid or '?'}, files in {lock.parent})."
                " For a second one set BENCHLAB_VAR and BENCHLAB_PORT."
            ) from None
        yield


def end_leftovers(state: State, pause: Pause) -> None:
    """End processes of an instance whose supervisor was killed before it could."""
    pids_left = {
        pid
        for name, pid in state.pids.items()
        if _is_still(pid, state.started.get(name))
    }
    for pid in pids_left:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_PATIENCE
    while any(map(_alive, pids_left)) and time.monotonic() < deadline:
        pause(0.1)
    for pid in filter(_alive, pids_left):
        _signal(pid, signal.SIGKILL)


def _is_still(pid: int, since: str | None) -> bool:
    return bool(since) and started(pid) == since


def _alive(pid: int) -> bool:
    return started(pid) is not None


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
