"""Latencies counted, so that percentiles of any number of transactions need little memory."""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_EXACT_BITS = 20  # latencies below 2^20 us (1.05 s) are counted to the microsecond
_KEPT_BITS = 10  # longer ones keep ten binary digits: they are exact to 0.1 %


class Latencies:
    """Counts of latencies in microseconds: 8 MiB, however many there are."""

    def __init__(self) -> None:
        self._short = np.zeros(1 << _EXACT_BITS, np.int64)
        self._long: Counter[int] = Counter()
        self.count = 0
        self.maximum = 0

    def add(self, latencies: NDArray[np.int64]) -> None:
        """Count some; none is negative."""
        if not latencies.size:
            return
        longest = int(latencies.max())
        self.count += latencies.size
        self.maximum = max(self.maximum, longest)
        if longest >> _EXACT_BITS:
            self._add_long(latencies[latencies >> _EXACT_BITS > 0])
            latencies = latencies[latencies >> _EXACT_BITS == 0]
        np.add.at(self._short, latencies, 1)

    def percentile(self, percent: float) -> int | None:
        """Return the latency that `percent` of the transactions do not exceed, by nearest rank.

        In microseconds; None where nothing was counted.
        """
        rank = math.ceil(round(percent * self.count / 100, 3))  # 99.9 has no exact binary form
        if not rank:
            return None
        running = np.cumsum(self._short)
        if rank <= running[-1]:
            return int(np.searchsorted(running, rank))
        return self._long_at(rank - int(running[-1]))

    def _long_at(self, rank: int) -> int:
        for latency, running in self._long_running():
            if running >= rank:
                return min(latency, self.maximum)
        return self.maximum

    def _long_running(self) -> Iterator[tuple[int, int]]:
        running = 0
        for latency in sorted(self._long):
            running += self._long[latency]
            yield latency, running

    def _add_long(self, latencies: NDArray[np.int64]) -> None:
        digits = np.floor(np.log2(latencies.astype(np.float64))).astype(np.int64) + 1
        dropped = digits - _KEPT_BITS
        kept, counts = np.unique(latencies >> dropped << dropped, return_counts=True)
        self._long.update(dict(zip(kept.tolist(), counts.tolist(), strict=True)))
