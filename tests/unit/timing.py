"""How long a piece of code takes, affected as little as possible by other processes."""

import gc
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], *, tries: int = 3) -> float:
    """The least processor time of a few tries, in seconds.

    Neither other processes nor garbage collection after earlier tests belong to the work.
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
