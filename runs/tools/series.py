"""Points in time as values at a fixed interval."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from runs.tools.adapter import SeriesReading

# A reading with more gaps than this for each point is of times that are wrong.
_INTERVALS_PER_POINT = 10
_INTERVALS_ALWAYS = 1000

Point = tuple[float, float | None]


def interval_of(seconds: Sequence[float]) -> float | None:
    """Return the usual distance of times in order, in seconds; None if there are too few."""
    distances = sorted(later - earlier for earlier, later in pairwise(seconds))
    middle = distances[len(distances) // 2] if distances else 0.0
    return round(middle, 3) if middle > 0.0005 else None


def regular(
    name: str, unit: str, points: Iterable[Point], *, interval: float | None
) -> tuple[SeriesReading, ...]:
    """Put points at their intervals; the first point's time is the start.

    An interval without a point has None; of two points in one the later counts. No series comes of
    times that cannot be those of one run, or of points that are all None.
    """
    ordered = sorted(points, key=lambda point: point[0])
    if not interval or all(value is None for _, value in ordered):
        return ()
    start = ordered[0][0]
    count = round((ordered[-1][0] - start) / interval) + 1
    if count > _INTERVALS_PER_POINT * len(ordered) + _INTERVALS_ALWAYS:
        return ()
    values: list[float | None] = [None] * count
    for seconds, value in ordered:
        values[round((seconds - start) / interval)] = value
    return (SeriesReading(name, unit, start, interval, tuple(values)),)


# measurements: an upload takes 1,000
