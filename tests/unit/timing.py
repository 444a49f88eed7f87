"""How long a piece of code takes, as little as possible by what runs beside it."""

import gc
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], *, tries: int = 3) -> float:
    """The least processor time of a few tries, in seconds.

    Neither other processes nor a collection of what earlier tests left are the work's own.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return min(_once(work) for _ in range(tries))
    finally:
        if was_enabled:
            gc.enable()


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
