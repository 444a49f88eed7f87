"""Fewer points of a long series, with every spike kept."""

from collections.abc import Sequence

MAXIMUM_POINTS = 2000


def thin(values: Sequence[float | None], maximum: int = MAXIMUM_POINTS) -> list[int]:
    """The positions of at most `maximum` values to draw, ascending; all of them if that suffices.

    The series is cut into buckets and each gives its lowest and its highest value: a one-second
    stall in 48 hours stays visible, which an average or every n-th value would hide. A bucket
    without any value gives one position, so that the gap stays a gap.
    """
    if len(values) <= maximum:
        return list(range(len(values)))
    buckets = maximum // 2
    kept: list[int] = []
    for bucket in range(buckets):
        first = bucket * len(values) // buckets
        kept += _extremes(values, first, (bucket + 1) * len(values) // buckets)
    return kept


def _extremes(values: Sequence[float | None], first: int, end: int) -> list[int]:
    known = [(value, index) for index in range(first, end) if (value := values[index]) is not None]
    if not known:
        return [first]
    return sorted({min(known)[1], max(known)[1]})
