"""The lines of `-P` (9.4 and later, on standard error)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from runs.tools.pgbench.printed import COUNT, THREE_PLACES, count, decimal
from runs.tools.pgbench.result import ProgressPoint

# The fixed number of decimals shows whether a number is complete or was cut.
_LINE = re.compile(
    rf"progress: (?P<seconds>[0-9]{{1,15}}\.[0-9]{{1,3}}) s, "
    rf"(?P<tps>[0-9]{{1,15}}\.[0-9]) tps, "
    rf"lat (?P<latency>{THREE_PLACES}) ms stddev (?P<stddev>{THREE_PLACES})"
    rf"(?:, (?P<failed>{COUNT}) failed)?"
    rf"(?:, lag (?P<lag>{THREE_PLACES}) ms)?"
    rf"(?:, (?P<skipped>{COUNT}) skipped)?"
    rf"(?:, (?P<retried>{COUNT}) retried, (?P<retries>{COUNT}) retries)?"
)


def take_progress(line: str) -> tuple[list[ProgressPoint], str]:
    """Return the points in a line, and what is left of the line without them.

    Threads write to the same stream, so a line may have two reports, or an error next to one.
    """
    if "progress: " not in line:
        return [], line
    points = [_point(match) for match in _LINE.finditer(line)]
    return points, _LINE.sub("", line)


def _point(match: re.Match[str]) -> ProgressPoint:
    tps = float(match["tps"])
    latency = decimal(match["latency"])
    idle = tps == 0 and not latency
    return ProgressPoint(
        seconds=float(match["seconds"]),
        tps=tps,
        latency_ms=None if idle else latency,
        stddev_ms=None if idle else decimal(match["stddev"]),
        lag_ms=None if idle else decimal(match["lag"]),
        failed=count(match["failed"]),
        skipped=count(match["skipped"]),
        retried=count(match["retried"]),
        retries=count(match["retries"]),
    )


def without_skipped(
    points: Sequence[ProgressPoint], *, is_limited: bool, is_cut: bool
) -> tuple[ProgressPoint, ...]:
    """Drop the figures of intervals in which the tool counted skipped transactions as done.

    They cannot be corrected: the interval is printed to a tenth of a second, and skipped
    transactions may outnumber real ones by ten to one. A point without the column was cut where
    others have it, where the summary says that there was a limit (`is_limited`), and perhaps
    where it is the last one and the text ends within its line (`is_cut`).
    """
    limited = is_limited or any(point.skipped is not None for point in points)
    last = points[-1] if points and is_cut else None
    return tuple(
        replace(point, tps=None, latency_ms=None, stddev_ms=None, lag_ms=None)
        if point.failed is None
        and (point.skipped or (point.skipped is None and (limited or point is last)))
        else point
        for point in points
    )
