"""Transaction logs (`pgbench -l`): percentiles of latency, and what happened in each second.

Read in blocks, so memory does not grow with the log. A block whose lines are not all alike is
read again line by line; lines that are no transaction's are reported and not counted.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runs.tools.pgbench.latencies import Latencies
from runs.tools.pgbench.log_columns import OUTCOMES, Columns, read_columns
from runs.tools.text import UNKNOWN_LINES, text_of

BLOCK_BYTES = 1 << 18
_LONGEST_RUN_S = 31 * 24 * 3600
_SECOND = 1_000_000
_LINE = re.compile(
    rb"[0-9]{1,9} [0-9]{1,18} (?:[0-9]{1,15}|" + "|".join(OUTCOMES).encode() + rb") "
    rb"[0-9]{1,9} [0-9]{1,11} [0-9]{1,6}(?: [0-9]{1,15}){0,2}"
)
_TIMED_LINE = re.compile(rb"[0-9]+ [0-9]+ ([0-9]{1,15}) [0-9]+ ([0-9]{1,11}) ([0-9]{1,6})\b")
_LINES_LOOKED_AT = 100


@dataclass
class PerSecond:
    """Transactions that ended in each second of the run, and the sum of their latencies (us)."""

    transactions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    latency_sum: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, seconds: NDArray[np.int64], latency: NDArray[np.int64]) -> None:
        """Count transactions by the second in which they ended."""
        first = int(seconds.min())
        size = int(seconds.max()) + 1
        if size > self.transactions.size:
            more = max(size, 2 * self.transactions.size) - self.transactions.size
            self.transactions = np.pad(self.transactions, (0, more))
            self.latency_sum = np.pad(self.latency_sum, (0, more))
        self.transactions[first:size] += np.bincount(seconds - first)
        self.latency_sum[first:size] += np.bincount(seconds - first, weights=latency)


@dataclass
class TransactionLog:
    """The logs of one run, one for each thread.

    `lines` counts those of transactions, `outcomes` those that have no time (skipped, failed ...).
    `misplaced` transactions end before the run's start or a month after it.
    """

    start_us: int
    latencies: Latencies = field(default_factory=Latencies)
    per_second: PerSecond = field(default_factory=PerSecond)
    outcomes: Counter[str] = field(default_factory=Counter)
    last_us: int = 0
    lines: int = 0
    misplaced: int = 0
    unknown_lines: list[str] = field(default_factory=list)

    def add(self, columns: Columns) -> None:
        """Take the lines of a block."""
        self.lines += columns.latency.size + sum(columns.outcomes.values())
        self.outcomes.update(columns.outcomes)
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
    starts = [start for content in files.values() if (start := _start(content)) is not None]
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
    """Return when the first transaction began, in microseconds since the epoch."""
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
    *whole, cut = block.split(b"\n")
    by_width: dict[int, list[bytes]] = {}
    for line in (text.removesuffix(b"\r") for text in whole):
        if is_transaction_line(line):
            by_width.setdefault(line.count(b" "), []).append(line)
        elif line.strip():
            log.report(line)
    for lines in by_width.values():
        alike = read_columns(b"\n".join(lines) + b"\n")
        if alike is not None:
            log.add(alike)
    if cut.strip():
        log.report(cut)
