"""What runs on this machine, read from /proc."""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process by number, with its arguments and the folder that it works in."""

    pid: int
    argv: tuple[str, ...]
    folder: str

    @property
    def program(self) -> str:
        """The last part of its first argument."""
        return self.argv[0].rpartition("/")[2]

    def concerns(self, path: str) -> bool:
        """Whether a path is in its arguments, or it works below the path."""
        return self.folder.startswith(path) or any(path in word for word in self.argv)


def concerning(path: str, *, program: str = "") -> list[Process]:
    """Processes with a path in their arguments, or below it; those of one program, if named."""
    looked_for = os.fsencode(path)
    found = [
        each for each in _all(looked_for, os.fsencode(program)) if each.concerns(path)
    ]
    return [each for each in found if not program or each.program == program]


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal to a process; whether it was still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def has_mapped(pid: int, path: str) -> bool:
    """Whether a process has a file in its memory, such as a library."""
    with contextlib.suppress(OSError):
        return path in Path(f"/proc/{pid}/maps").read_text()
    return False


def _all(path: bytes, program: bytes) -> Iterator[Process]:
    """Those that may concern a path. This is done several times a second, so without pathlib."""
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # The kernel keeps 15 bytes of a name, which are quicker to read than arguments.
            if program and _read(f"/proc/{name}/comm").rstrip(b"\n") != program[:15]:
                continue
            words = _read(f"/proc/{name}/cmdline").rstrip(b"\0")
            folder = os.readlink(f"/proc/{name}/cwd") if words else ""  # noqa: PTH115
            if words and (path in words or os.fsencode(folder).startswith(path)):
                argv = words.decode(errors="replace").split("\0")
                yield Process(int(name), tuple(argv), folder)


def _read(path: str) -> bytes:
    with open(path, "rb", 0) as file:  # noqa: PTH123
        return file.read()


# A load that ends sooner than this may be missed; the shortest that is put on takes a second.
SECONDS_BETWEEN_LOOKS = 0.3


@dataclass(frozen=True)
class Span:
    """Between which two looks a load was seen, by time.monotonic(): it lasted at least so long."""

    attempt: str
    first: float
    last: float
    # Its arguments; slices of a run have each its random seed.
    command: tuple[str, ...] = ()

    def overlaps(self, other: "Span") -> bool:
        """Whether both loads were there at one moment."""
        return self.first <= other.last and other.first <= self.last


class Loads:
    """Each pgbench under load that has been seen below a base directory, by attempt."""

    def __init__(self, base: Path) -> None:
        self._base = base
        # By number and command: the kernel gives numbers again, after minutes on a busy machine.
        self._spans: dict[tuple[int, str, tuple[str, ...]], Span] = {}
        self._lock = threading.Lock()

    def look(self) -> set[int]:
        """The processes that put load on right now."""
        now = running(self._base)
        at = time.monotonic()
        with self._lock:
            for each in now:
                attempt = _attempt(each, self._base)
                key = (each.pid, attempt, each.argv)
                first = self._spans[key].first if key in self._spans else at
                self._spans[key] = Span(attempt, first, at, each.argv)
        return {each.pid for each in now}

    @property
    def spans(self) -> list[Span]:
        """When each was seen."""
        with self._lock:
            return list(self._spans.values())

    @property
    def number(self) -> int:
        """How many there have been."""
        return len(self._spans)

    @property
    def by_attempt(self) -> dict[str, int]:
        """How many there have been of each attempt, which is named RUN-ATTEMPT."""
        with self._lock:
            return dict(Counter(span.attempt for span in self._spans.values()))

    @property
    def doubled(self) -> list[str]:
        """The attempts of which one command was put on more than once."""
        with self._lock:
            numbers = Counter(
                (span.attempt, span.command) for span in self._spans.values()
            )
        return sorted({name for (name, _argv), number in numbers.items() if number > 1})


def running(base: Path) -> list[Process]:
    """Every pgbench that puts load on for a run below that base directory (`-T`; not `-i`)."""
    found = concerning(f"{base}/", program="pgbench")
    return [each for each in found if "-T" in each.argv]


@contextmanager
def counted(base: Path) -> Iterator[Loads]:
    """Count, all the time until the end of the block."""
    loads, over = Loads(base), threading.Event()

    def watch() -> None:
        while not over.is_set():
            began = time.monotonic()
            loads.look()
            # Reading /proc takes its time on a busy machine.
            over.wait(max(0.02, SECONDS_BETWEEN_LOOKS - (time.monotonic() - began)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield loads
    finally:
        over.set()
        thread.join()


def _attempt(process: Process, base: Path) -> str:
    """The name of the run's folder that it was told of, or works in."""
    before = f"{base}/runs/"
    for word in (*process.argv, f"{process.folder}/"):
        _start, found, rest = word.partition(before)
        if found:
            return rest.partition("/")[0]
    return ""
