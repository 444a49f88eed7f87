"""Mann and Whitney's test: is one side greater more often than not? By ranks, without a shape.

Beside Welch's test it is the second opinion that one wild run cannot sway. The formulas are in
docs/statistics.md.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

MINIMUM_RUNS = 4
"""Below 4 runs a side, no arrangement of ranks reaches p < 0.05: three against three give 0.1."""

EXACT_UP_TO = 30
"""Runs of both sides together up to which all arrangements are counted (milliseconds)."""


def p_value(base: Sequence[float], head: Sequence[float]) -> float | None:
    """Two-sided p-value of no difference; None where a side has fewer than MINIMUM_RUNS values.

    Up to EXACT_UP_TO values it is exact, also with ties: the share of all ways to deal the pooled
    mid-ranks to two sides that are at least as lopsided, counted by the shift algorithm
    (B. Streitberg and J. Röhmel, "Exact distributions for permutation and rank tests",
    Statistical Software Newsletter 12, 1986). Beyond, the normal approximation with the
    corrections for ties and for continuity. Raises ValueError for a value that is not a number.
    """
    if min(len(base), len(head)) < MINIMUM_RUNS:
        return None
    doubled = doubled_mid_ranks([*base, *head])
    if len(doubled) <= EXACT_UP_TO:
        return _exact(tuple(sorted(doubled)), len(base), sum(doubled[: len(base)]))
    return _approximate(doubled, len(base))


def doubled_mid_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, ties sharing the mean of theirs: twice, to stay whole."""
    if any(math.isnan(value) for value in values):
        raise ValueError("A value is not a number.")
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    below = 0
    for _, group in groupby(order, key=values.__getitem__):
        tied = list(group)
        for index in tied:
            ranks[index] = 2 * below + len(tied) + 1
        below += len(tied)
    return ranks


@lru_cache(maxsize=64)
def arrangements(doubled: tuple[int, ...], size: int) -> tuple[int, ...]:
    """How many choices of `size` of the doubled ranks have the sum 0, 1, 2 ..., in this order."""
    ways = [[0] * (sum(doubled) + 1) for _ in range(size + 1)]
    ways[0][0] = 1
    for seen, rank in enumerate(doubled, start=1):
        for chosen in range(min(seen, size), 0, -1):
            fewer, more = ways[chosen - 1], ways[chosen]
            for total in range(rank, len(more)):
                more[total] += fewer[total - rank]
    return tuple(ways[size])


def _exact(doubled: tuple[int, ...], size: int, observed: int) -> float:
    ways = arrangements(doubled, size)
    tail = min(sum(ways[: observed + 1]), sum(ways[observed:]))
    return min(1.0, 2 * tail / math.comb(len(doubled), size))


def _approximate(doubled: Sequence[int], size: int) -> float:
    total, other = len(doubled), len(doubled) - size
    u = sum(doubled[:size]) / 2 - size * (size + 1) / 2
    ties = sum(count**3 - count for count in _counts(doubled))
    variance = size * other / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    distance = max(0.0, abs(u - size * other / 2) - 0.5)
    return math.erfc(distance / math.sqrt(2 * variance))


def _counts(values: Sequence[int]) -> list[int]:
    return [len(list(group)) for _, group in groupby(sorted(values))]
