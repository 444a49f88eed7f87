"""Aggregated logs (`pgbench -l --aggregate-interval`): counts and sums for each interval.

The columns are `start transactions sum sum2 min max` (6), with `-R` the same of the lag (10), with
`-L` also the skipped ones (11). From 15 on all 15 are always there, the last four `retried retries
serialization deadlock`; 19 adds other failures. To 14 the transactions include the skipped ones.
Times are in microseconds. The tool never writes the last interval, and the first one begins with
the run, not with a second. Source: the manual's page of each version, and its recorded output.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runs.tools.text import UNKNOWN_LINES, text_of

_WIDTHS = (6, 10, 11, 15, 16)
_NUMBERS = re.compile(rb"[0-9]{9,11}(?: [0-9]{1,24}){5,15}")
_SKIPPED, _FAILURES = 10, slice(13, 16)
_SKIPPED_COUNTED = 11  # columns of the versions that count skipped transactions


@dataclass
class Interval:
    """What ran in one interval, in all threads. Times are in microseconds."""

    transactions: int = 0
    latency_sum: int = 0
    latency_maximum: int = 0
    skipped: int = 0
    failed: int = 0
    writers: int = 0

    def add(self, numbers: list[int]) -> None:
        """Add a thread's line."""
        self.writers += 1
        skipped = numbers[_SKIPPED] if len(numbers) > _SKIPPED else 0
        counted = skipped if len(numbers) == _SKIPPED_COUNTED else 0
        self.transactions += max(numbers[1] - counted, 0)
        self.latency_sum += numbers[2]
        self.latency_maximum = max(self.latency_maximum, numbers[5])
        self.skipped += skipped
        self.failed += sum(numbers[_FAILURES])


@dataclass
class AggregatedLog:
    """The intervals by their start, in seconds since the epoch."""

    intervals: dict[int, Interval] = field(default_factory=dict)
    unknown_lines: list[str] = field(default_factory=list)

    @property
    def writers(self) -> int:
        """How many threads' logs these are: each writes a line for an interval."""
        return max((found.writers for found in self.intervals.values()), default=0)


def is_aggregated_line(line: bytes) -> bool:
    """Whether a line is an aggregated log's."""
    return bool(_NUMBERS.fullmatch(line.rstrip(b"\r"))) and line.count(b" ") + 1 in _WIDTHS


def read_aggregated_log(files: Mapping[str, bytes]) -> AggregatedLog:
    """Read the logs of all threads of a run."""
    log = AggregatedLog()
    for content in files.values():
        *whole, cut = content.split(b"\n")
        for line in whole:
            _take(line.removesuffix(b"\r"), log)
        _report([cut], log)
    return log


def _take(line: bytes, log: AggregatedLog) -> None:
    if not is_aggregated_line(line):
        _report([line], log)
        return
    numbers = [int(text) for text in line.split(b" ")]
    log.intervals.setdefault(numbers[0], Interval()).add(numbers)


def _report(lines: Iterable[bytes], log: AggregatedLog) -> None:
    for line in lines:
        if line.strip() and len(log.unknown_lines) < UNKNOWN_LINES:
            log.unknown_lines.append(text_of(line[:300]))
