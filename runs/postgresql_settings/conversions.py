"""Formulas that carry a value from one version's setting to another's. WAL segments are 16 MB
unless the cluster was made with others.
"""

import math
import re

from runs.postgresql_settings import units

_PRIORITY = re.compile(
    r"\s*(?:(?P<method>first|any)\s+)?(?P<count>\d+)\s*\((?P<names>[^()]*)\)\s*", re.IGNORECASE
)


def max_wal_bytes(checkpoint_segments: int, segment_bytes: int) -> int:
    """3 x checkpoint_segments x segment: the formula in the release notes of 9.5."""
    return 3 * checkpoint_segments * segment_bytes


def kept_wal_bytes(checkpoint_segments: int, segment_bytes: int) -> int:
    """(2 x checkpoint_segments + 1) x segment: the files that 9.4 keeps for reuse.

    Source: manual of 9.4, WAL Configuration, with checkpoint_completion_target of 0 as the least.
    """
    return (2 * checkpoint_segments + 1) * segment_bytes


def checkpoint_segments(max_wal_size_bytes: int, segment_bytes: int) -> int:
    """The inverse of `max_wal_bytes`, at least 1."""
    return max(1, round(max_wal_size_bytes / (3 * segment_bytes)))


def segments(size_bytes: int, segment_bytes: int) -> int:
    """How many segments keep at least that much WAL."""
    return math.ceil(size_bytes / segment_bytes)


def prefetch_distance(concurrency: int) -> int:
    """effective_io_concurrency of 13 for that of 12: the sum of n/i for i to n, rounded.

    Source: release notes of 13. To 12 the number was of disks, from which the server made this
    distance itself.
    """
    return round(sum(concurrency / each for each in range(1, concurrency + 1)))


def disks(distance: int) -> int:
    """The smallest effective_io_concurrency of 12 that prefetches at least so far; at most 1000."""
    return next((n for n in range(1001) if prefetch_distance(n) >= distance), 1000)


def as_megabytes(size_bytes: int, major: str) -> str:
    """An amount of memory in the largest unit that the version reads: `4800MB`, `160GB`."""
    return units.spelled(size_bytes // units.BYTES["MB"], "MB", major)


def standby_names_before_10(value: str) -> str | None:
    """`FIRST n (...)` as 9.6 writes it; None for ANY, which counts any standbys."""
    match = _PRIORITY.fullmatch(value)
    if match is None or match["method"] is None:
        return value
    return f"{match['count']} ({match['names']})" if match["method"].lower() == "first" else None


def standby_names_before_9_6(value: str) -> str | None:
    """A plain list: the first connected one is synchronous; None for more than one."""
    match = _PRIORITY.fullmatch(value)
    if match is None:
        return value
    return match["names"].strip() if match["count"] == "1" else None


def log_destination_before_15(value: str) -> str | None:
    """Without jsonlog, which csvlog comes nearest to."""
    words = [word.strip() for word in value.split(",")]
    return ",".join(dict.fromkeys("csvlog" if w.lower() == "jsonlog" else w for w in words))


def log_connections_before_18(value: str) -> str | None:
    """On where any stage of a connection was logged."""
    return "off" if value.strip().lower() in {"", "off", "false", "no", "0"} else "on"


def log_min_messages_before_19(value: str) -> str | None:
    """The level for all processes; levels of single processes (`autovacuum:debug1`) go."""
    plain = [word.strip() for word in value.split(",") if ":" not in word]
    return plain[0] if plain else None


def first_of_list(value: str, separator: str) -> str:
    """The first item of a list."""
    return value.partition(separator)[0].strip().strip('"')
