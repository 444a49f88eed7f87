"""Latencies of a run's logs (`-l`), counted on their machine: buckets are sent, not lines.

A bucket holds the latencies that have the same number of digits (in microseconds) and the same
first three: it is exact below 1 ms and at most 1 % wide above. Digits and not logarithms, because
every awk counts them alike, and quickly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from runs.patterns import re
from runs.tools.pgbench.command import Log

# A line is "client transaction latency script seconds microseconds"; transactions that failed or
# were skipped have a word in the place of the latency, which no number in the loops below finds.
# 15 digits are 31 years. Powers (^) are left out: busybox may be built without them.
_COUNT = r"""NF > 5 { counted[length($3), substr($3, 1, 3)]++ }
END {
    print "# from (us), width of a bucket (us), transactions in each of ten buckets"
    low = 0
    high = 10
    width = 1
    for (digits = 1; digits <= 15; digits++) {
        for (head = low; head < high; head += 10) {
            row = ""
            sum = 0
            for (i = 0; i < 10; i++) {
                n = counted[digits, head + i] + 0
                row = row " " n
                sum += n
            }
            if (sum)
                printf "%.0f %.0f%s\n", head * width, width, row
        }
        if (digits < 3) {
            low = high
            high *= 10
        } else
            width *= 10
    }
}
"""
_ROW = re.compile(r"\d{1,15} 10{0,12}(?: \d{1,18}){10}")
_ENOUGH_ABOVE = 10
_US_PER_MS = 1000


def count(log: Log) -> tuple[str, ...]:
    """Return the command that counts a log's lines by latency; it fails without a log.

    0.2 s for a million lines with mawk and gawk, 0.7 s with busybox.
    """
    return ("sh", "-c", 'exec awk "$1" "$2".*', "count", _COUNT, log.prefix)


@dataclass(frozen=True)
class Histogram:
    """Numbers of transactions by (shortest latency, width) of their buckets, in microseconds."""

    buckets: Mapping[tuple[int, int], int]

    @property
    def transactions(self) -> int:
        """How many were counted."""
        return sum(self.buckets.values())

    def percentile_ms(self, percent: float) -> float | None:
        """Return the latency that `percent` of the transactions do not exceed.

        By nearest rank, and evenly within the bucket: less than 1 % off, and exact below 1 ms. In
        milliseconds, to the microsecond; None if too few (under ten) are above it.
        """
        total = self.transactions
        if round(total * (100 - percent), 3) < _ENOUGH_ABOVE * 100:
            return None
        rank = math.ceil(
            round(percent * total / 100, 3)
        )  # 99.9 has no exact binary form
        for (shortest, width), number in sorted(self.buckets.items()):
            if rank <= number:
                within = (width - 1) * (rank - 0.5) / number
                return round((shortest + within) / _US_PER_MS, 3)
            rank -= number
        return None


def read_histogram(text: str) -> Histogram:
    """Read what `count` printed. Raises ValueError for anything else."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    strange = next((line for line in lines if not _ROW.fullmatch(line)), None)
    if strange is not None:
        raise ValueError(f"Not a row of counted latencies: {strange[:100]!r}")
    return Histogram(dict(bucket for line in lines for bucket in _row(line)))


def together(histograms: Iterable[Histogram]) -> Histogram:
    """Return all of them as one: logs of machines that logged the same share."""
    sums: Counter[tuple[int, int]] = Counter()
    for histogram in histograms:
        sums.update(histogram.buckets)
    return Histogram(sums)


def _row(line: str) -> Iterator[tuple[tuple[int, int], int]]:
    start, width, *numbers = map(int, line.split())
    for index, number in enumerate(numbers):
        if number:
            yield (start + index * width, width), number
