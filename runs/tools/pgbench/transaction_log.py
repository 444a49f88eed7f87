"""Transaction logs (`pgbench -l`): percentiles of latency, and what happened in each second.

Read in blocks, so memory does not grow with the log. A block whose lines are not all alike is
read again line by line; lines that are no transaction's are reported and not counted.

A line is `client transaction time script epoch microseconds [lag] [retries]`, with one blank
between two columns. Source: the manual's pgbench page, "Per-Transaction Logging", 9.2 to 18.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from runs.patterns import re
from runs.tools.output import UNKNOWN_LINES, text_of

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
        rank = math.ceil(
            round(percent * self.count / 100, 3)
        )  # 99.9 has no exact binary form
        if not rank:
            return None
        running = np.cumsum(self._short)
        if rank <= running[-1]:
            return int(np.searchsorted(running, rank))
        latencies = sorted(self._long)
        longer = list(accumulate(self._long[latency] for latency in latencies))
        return min(latencies[bisect_left(longer, rank - running[-1])], self.maximum)

    def _add_long(self, latencies: NDArray[np.int64]) -> None:
        digits = np.floor(np.log2(latencies.astype(np.float64))).astype(np.int64) + 1
        dropped = digits - _KEPT_BITS
        rounded, counts = np.unique(latencies >> dropped << dropped, return_counts=True)
        self._long.update(dict(zip(rounded.tolist(), counts.tolist())))


Numbers = NDArray[np.int64]

WIDTHS = (6, 7, 8)
# In the place of the time, what became of a transaction that has none.
OUTCOMES = ("skipped", "failed", "serialization", "deadlock", "other")
_BLANK, _NEWLINE = 32, 10
_LONGEST, _LATEST_SECOND, _LAST_MICROSECOND = 10**15 - 1, 10**11, 999_999


@dataclass(frozen=True)
class Columns:
    """The lines of a block that ran: latency and end (since the epoch), both in microseconds.

    `untimed` counts the lines of transactions that have no time.
    """

    latency: Numbers
    end: Numbers
    untimed: int


def read_columns(block: bytes) -> Columns | None:
    """Read complete lines. None if any of them is not from a transaction log."""
    width = _width(np.frombuffer(block, np.uint8))
    if width not in WIDTHS or b"-" in block:
        return None
    for word in OUTCOMES:
        block = block.replace(f" {word} ".encode(), b" -1 ")
    if block.translate(None, b"0123456789- \n"):
        return None
    table = np.fromstring(block, np.int64, sep=" ").reshape(
        -1, width
    )  # too large: the largest
    latency, seconds, microseconds = table[:, 2], table[:, 4], table[:, 5]
    timed = latency >= 0
    untimed = latency.size - int(np.count_nonzero(timed))
    if block.count(b"-") != untimed or latency.max() > _LONGEST:
        return None
    if seconds.max() > _LATEST_SECOND or microseconds.max() > _LAST_MICROSECOND:
        return None
    end = seconds * _SECOND + microseconds
    return Columns(latency[timed], end[timed], untimed)


def _width(data: NDArray[np.uint8]) -> int | None:
    """Return how many columns each line has; None if they differ or one is empty."""
    separators = np.flatnonzero(data <= _BLANK)
    newlines = np.flatnonzero(data == _NEWLINE)
    if not newlines.size or data[-1] != _NEWLINE:
        return None
    width = separators.size // newlines.size
    is_regular = np.array_equal(separators[width - 1 :: width], newlines)
    return width if is_regular and (np.diff(separators, prepend=-1) > 1).all() else None


BLOCK_BYTES = 1 << 18
_LONGEST_RUN_S = 31 * 24 * 3600
_SECOND = 1_000_000
_LINE = re.compile(
    rb"[0-9]{1,9} [0-9]{1,18} (?:[0-9]{1,15}|" + "|".join(OUTCOMES).encode() + rb") "
    rb"[0-9]{1,9} [0-9]{1,11} [0-9]{1,6}(?: [0-9]{1,15}){0,2}"
)
_TIMED_LINE = re.compile(
    rb"\A[0-9]+ [0-9]+ ([0-9]{1,15}) [0-9]+ ([0-9]{1,11}) ([0-9]{1,6})\b"
)
_LINES_LOOKED_AT = 100


@dataclass
class PerSecond:
    """Transactions that ended in each second of the run, and the sum of their latencies (us)."""

    transactions: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )
    latency_sum: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, seconds: NDArray[np.int64], latency: NDArray[np.int64]) -> None:
        """Count transactions by the second in which they ended."""
        first_second = int(seconds.min())
        size = int(seconds.max()) + 1
        if size > self.transactions.size:
            further_size = (
                max(size, 2 * self.transactions.size) - self.transactions.size
            )
            self.transactions = np.pad(self.transactions, (0, further_size))
            self.latency_sum = np.pad(self.latency_sum, (0, further_size))
        self.transactions[first_second:size] += np.bincount(seconds - first_second)
        self.latency_sum[first_second:size] += np.bincount(
            seconds - first_second, weights=latency
        )


@dataclass
class TransactionLog:
    """The logs of one run, one for each thread.

    `lines` counts those of transactions, also of those that have no time (skipped, failed ...).
    `misplaced` ones end before the run's start or a month after it.
    """

    start_us: int
    latencies: Latencies = field(default_factory=Latencies)
    per_second: PerSecond = field(default_factory=PerSecond)
    last_us: int = 0
    lines: int = 0
    misplaced: int = 0
    unknown_lines: list[str] = field(default_factory=list)

    def add(self, columns: Columns) -> None:
        """Take the lines of a block."""
        self.lines += columns.latency.size + columns.untimed
        self.latencies.add(columns.latency)
        seconds = np.maximum(columns.end - self.start_us, -_SECOND) // _SECOND
        placed = (seconds >= 0) & (seconds < _LONGEST_RUN_S)
        self.misplaced += int(np.count_nonzero(~placed))
        if placed.any():
            self.per_second.add(seconds[placed], columns.latency[placed])
            self.last_us = max(self.last_us, int(columns.end[placed].max()))

    def report(self, line: bytes) -> None:
        """Note a line that is not a transaction."""
        if len(self.unknown_lines) < UNKNOWN_LINES:
            self.unknown_lines.append(text_of(line[:300]))

    @property
    def whole_seconds(self) -> int:
        """How many seconds the log covers from beginning to end."""
        return max(self.last_us - self.start_us, 0) // _SECOND


def read_transaction_log(files: Mapping[str, bytes]) -> TransactionLog:
    """Read the logs of all threads of a run. Over 2,000,000 lines a second on one core."""
    starts = [
        start for content in files.values() if (start := _start(content)) is not None
    ]
    log = TransactionLog(min(starts, default=0))
    for content in files.values():
        for block in _blocks(content):
            _take(block, log)
    return log


def is_transaction_line(line: bytes) -> bool:
    """Whether a line is from a transaction log: its client is not a time since the epoch."""
    client = line.split(b" ", 1)[0]
    return bool(_LINE.fullmatch(line.rstrip(b"\r"))) and len(client) < 9


def _start(content: bytes) -> int | None:
    for line in content[: 1 << 14].split(b"\n")[:_LINES_LOOKED_AT]:
        if match := _TIMED_LINE.match(line):
            latency, seconds, microseconds = (int(text) for text in match.groups())
            return max(seconds * _SECOND + microseconds - latency, 0)
    return None


def _blocks(content: bytes) -> Iterator[bytes]:
    """Yield pieces that end with a line's end; a last line without one may have been cut."""
    begin = 0
    while begin < len(content):
        end = content.rfind(b"\n", begin, begin + BLOCK_BYTES) + 1
        if not end:  # a line longer than a block
            end = content.find(b"\n", begin) + 1 or len(content)
        yield content[begin:end]
        begin = end


def _take(block: bytes, log: TransactionLog) -> None:
    columns = read_columns(block)
    if columns is not None:
        log.add(columns)
        return
    *whole_lines, cut = block.split(b"\n")
    by_width: dict[int, list[bytes]] = {}
    for line in (text.removesuffix(b"\r") for text in whole_lines):
        if is_transaction_line(line):
            by_width.setdefault(line.count(b" "), []).append(line)
        elif line.strip():
            log.report(line)
    for lines in by_width.values():
        columns_read = read_columns(b"\n".join(lines) + b"\n")
        if columns_read is not None:
            log.add(columns_read)
    if cut.strip():
        log.report(cut)
