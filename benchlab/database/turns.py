"""Whether requests of this process get a connection of its pool: what `/readyz` asks.

A database may be well while every connection of a process is held: pages are 503 then.
"""

import threading
import time


class Turns:
    """Since when requests have waited for a connection in vain; a connection ends that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refused_since: float | None = None

    def taken(self) -> None:
        """A request has got a connection."""
        self._refused_since = None

    def refused(self) -> None:
        """A request has waited in vain."""
        with self._lock:
            if self._refused_since is None:
                self._refused_since = time.monotonic()

    def refused_seconds(self) -> float:
        """For how long nobody has got one, though somebody wanted it; 0 where that is not so."""
        since = self._refused_since
        return 0.0 if since is None else time.monotonic() - since


turns = Turns()
