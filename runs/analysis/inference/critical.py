"""How strict to be: over all intervals of a table, and over all looks at a growing campaign.

Rows that share a baseline are correlated; others are independent apart from the common variance.
Both are integrated numerically, without simulation: C. W. Dunnett, "A multiple comparison procedure
for comparing several treatments with a control", 1955, for each group.

A campaign that gets further repeats after a look at its figures is judged several times. Each look
then has the same, smaller level (S. J. Pocock, "Group sequential methods in the design and analysis
of clinical trials", 1977), for whatever reason the rounds were added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats

SHARED_NODES, SCALE_NODES = 24, 20
NORMAL_FREEDOM = 2000.0
Groups = tuple[tuple[tuple[float, ...], int], ...]


def level(
    groups: Iterable[Sequence[float]], freedom: float, significance: float
) -> float:
    """The two-sided level of each row at which all rows together have `significance`.

    A group has the rows of one baseline, each with its correlation to it: the square root of the
    baseline's part of the row's variance. `freedom` is that of the common variance.
    """
    shapes = Counter(_shape(group) for group in groups)
    rounded = float(f"{min(freedom, NORMAL_FREEDOM):.2g}")
    return _level(tuple(sorted(shapes.items())), max(rounded, 1.0), significance)


def _shape(group: Sequence[float]) -> tuple[float, ...]:
    """The group rounded for reuse: correlations in steps of 0.05, none for a single row."""
    return (
        (0.0,)
        if len(group) == 1
        else tuple(sorted(round(20 * correlation) / 20 for correlation in group))
    )


@lru_cache(maxsize=512)
def _level(groups: Groups, freedom: float, significance: float) -> float:
    """As level(), with the groups counted by their shape; cached, since tables are alike."""
    rows = sum(len(shape) * count for shape, count in groups)
    if rows <= 1:
        return significance

    strict, loose = significance / rows, significance
    low = float(-sp.special.stdtrit(freedom, loose / 2))
    high = float(-sp.special.stdtrit(freedom, strict / 2))
    for _ in range(14):
        middle = (low + high) / 2
        if _covered(groups, freedom, middle) < 1 - significance:
            low = middle
        else:
            high = middle

    return max(strict, float(2 * sp.special.stdtr(freedom, -high)))


def _covered(groups: Groups, freedom: float, limit: float) -> float:
    """The probability that no row of any group exceeds the limit."""
    scales, weights = _scales(freedom)
    correlations, rows, counts = _counted(groups)
    # Of all groups at once: a call for many numbers costs little more than one for a few.
    inside = np.log(np.maximum(_inside(correlations, limit * scales), 1e-300))
    of_groups = np.exp(np.tensordot(rows, inside, axes=1)) @ _shared()[1]
    return float(np.prod(of_groups**counts, axis=0) @ weights)


@lru_cache(maxsize=8)
def _counted(groups: Groups) -> tuple[Floats, Floats, Floats]:
    """(all correlations, how many rows of each group have each, how many groups are alike)."""
    correlations = sorted({shared for shape, _count in groups for shared in shape})
    of_shapes = [Counter(shape) for shape, _count in groups]
    rows = [
        [float(quantiles[shared]) for shared in correlations] for quantiles in of_shapes
    ]
    counts = [[count] for _shape, count in groups]
    return np.array(correlations), np.array(rows), np.array(counts)


def _inside(correlations: Floats, limits: Floats) -> Floats:
    """The probability that a row is within its limit: by correlation, limit, and what is shared."""
    apart = np.sqrt(np.maximum(1 - correlations**2, 1e-6))[:, None, None]
    common = (correlations[:, None] * _shared()[0])[:, None, :]
    upper = sp.special.ndtr((limits[:, None] - common) / apart)
    probability: Floats = upper - sp.special.ndtr((-limits[:, None] - common) / apart)
    return probability


@lru_cache(maxsize=1)
def _shared():  # type: ignore[no-untyped-def]
    """Values of what the rows of a baseline share, in its deviations, and their weights.

    Of a value and its negative, which give the same, only the first.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(SHARED_NODES)
    half = SHARED_NODES // 2
    return nodes[half:], 2 * weights[half:] / weights.sum()


@lru_cache(maxsize=128)
def _scales(freedom: float):  # type: ignore[no-untyped-def]
    """Values of s / sigma and their weights: the centres of equally likely slices."""
    if freedom >= NORMAL_FREEDOM:
        return np.ones(1), np.ones(1)

    # Gauss-Legendre over the probabilities, which reaches further into the tails than slices do.
    nodes, weights = np.polynomial.legendre.leggauss(SCALE_NODES)
    return np.sqrt(
        sp.special.chdtri(freedom, 1 - (nodes + 1) / 2) / freedom
    ), weights / 2


NODES = 61


def level_of_look(looks: Sequence[int], significance: float) -> float:
    """The two-sided level of each look after these rounds (ascending, at least one round)."""
    return _level_of_look(tuple(sorted(set(looks))), significance)


@lru_cache(maxsize=256)
def _level_of_look(looks: tuple[int, ...], significance: float) -> float:
    if len(looks) < 2:
        return significance

    low = float(-sp.special.ndtri(significance / 2))
    high = float(-sp.special.ndtri(significance / len(looks) / 2))
    for _ in range(14):
        middle = (low + high) / 2
        if _crossed(looks, middle) > significance:
            low = middle
        else:
            high = middle
    return float(2 * sp.special.ndtr(-high))


def _crossed(looks: Sequence[int], limit: float) -> float:
    """The probability that a sum of normal steps, in its standard deviations, passes the limit.

    The density of the sum is carried from look to look over the part that has not passed (P.
    Armitage, C. K. McPherson, B. C. Rowe, "Repeated significance tests", 1969).
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    reach = limit * np.sqrt(looks[0])
    positions = nodes * reach
    density = _normal(positions, looks[0]) * weights * reach
    for before, after in zip(looks, looks[1:]):
        reach = limit * np.sqrt(after)
        next_positions = nodes * reach
        density = density @ _normal(
            next_positions[None, :] - positions[:, None], after - before
        )
        density = density * weights * reach
        positions = next_positions
    return float(1 - density.sum())


def _normal(value: Floats, variance: float) -> Floats:
    density: Floats = np.exp(-(value**2) / (2 * variance)) / np.sqrt(
        2 * np.pi * variance
    )
    return density
