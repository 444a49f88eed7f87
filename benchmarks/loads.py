"""Counting the pgbench processes that put load on a target, whatever BenchLab's record says."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import processes

# A load that ends sooner than this may be missed; the shortest that is put on takes a second.
SECONDS_BETWEEN_LOOKS = 0.3


class Loads:
    """Each pgbench under load that has been seen below a base directory, by attempt."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._attempts: dict[int, str] = {}
        self._lock = threading.Lock()

    def look(self) -> set[int]:
        """The processes that put load on right now."""
        now = {each.pid: _attempt(each, self._base) for each in running(self._base)}
        with self._lock:
            self._attempts.update(now)
        return set(now)

    @property
    def number(self) -> int:
        """How many there have been."""
        return len(self._attempts)

    @property
    def by_attempt(self) -> dict[str, int]:
        """How many there have been of each attempt, which is named RUN-ATTEMPT."""
        with self._lock:
            return dict(Counter(self._attempts.values()))

    @property
    def doubled(self) -> list[str]:
        """The attempts whose load was put on more than once."""
        return sorted(name for name, number in self.by_attempt.items() if number > 1)


def running(base: Path) -> list[processes.Process]:
    """Every pgbench that puts load on for a run below that base directory (`-T`; not `-i`)."""
    found = processes.concerning(f"{base}/", program="pgbench")
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


def _attempt(process: processes.Process, base: Path) -> str:
    """The name of the run's folder that it was told of, or works in."""
    before = f"{base}/runs/"
    for word in (*process.argv, f"{process.folder}/"):
        _start, found, rest = word.partition(before)
        if found:
            return rest.partition("/")[0]
    return ""
