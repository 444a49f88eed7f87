"""Calls from several threads at the same moment, each with a database connection of its own."""

import threading
from collections.abc import Callable, Sequence

from django.db import connection


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Call each in a thread of its own, all from the same moment on, and wait for their ends."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> None:
        try:
            barrier.wait(10)
            work()
        finally:
            connection.close()

    threads = [threading.Thread(target=begin, args=(each,)) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
