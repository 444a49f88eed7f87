"""How strict a table must be so that all its intervals hold together: the max-|t| distribution.

Rows that share a baseline are correlated; others are independent apart from the common variance.
Both are integrated numerically, without simulation: C. W. Dunnett, "A multiple comparison procedure
for comparing several treatments with a control", 1955, for each group.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

SHARED_NODES, SCALE_NODES = 24, 20
NORMAL_FREEDOM = 2000.0
Groups = tuple[tuple[tuple[float, ...], int], ...]


def level(groups: Iterable[Sequence[float]], freedom: float, significance: float) -> float:
    """The two-sided level of each row at which all rows together have `significance`.

    A group has the rows of one baseline, each with its correlation to it: the square root of the
    baseline's part of the row's variance. `freedom` is that of the common variance.
    """
    shapes = Counter(_shape(group) for group in groups)
    rounded = float(f"{min(freedom, NORMAL_FREEDOM):.2g}")
    return _level(tuple(sorted(shapes.items())), max(rounded, 1.0), significance)


def _shape(group: Sequence[float]) -> tuple[float, ...]:
    """The group rounded for reuse: correlations in steps of 0.05, none for a single row."""
    return (0.0,) if len(group) == 1 else tuple(sorted(round(20 * each) / 20 for each in group))


@lru_cache(maxsize=512)
def _level(groups: Groups, freedom: float, significance: float) -> float:
    """As level(), with the groups counted by their shape; cached, since tables are alike."""
    rows = sum(len(shape) * count for shape, count in groups)
    if rows <= 1:
        return significance
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to import)

    strict, loose = significance / rows, significance
    low = float(-stdtrit(freedom, loose / 2))
    high = float(-stdtrit(freedom, strict / 2))
    for _ in range(14):
        middle = (low + high) / 2
        if _covered(groups, freedom, middle) < 1 - significance:
            low = middle
        else:
            high = middle
    from scipy.special import stdtr  # noqa: PLC0415 (as above)

    return max(strict, float(2 * stdtr(freedom, -high)))


def _covered(groups: Groups, freedom: float, limit: float) -> float:
    """The probability that no row of any group exceeds the limit."""
    scales, weights = _scales(freedom)
    covered = np.ones(len(scales))
    for shape, count in groups:
        covered *= _group(shape, limit * scales) ** count
    return float(covered @ weights)


def _group(shape: tuple[float, ...], limits: "np.ndarray[tuple[int], np.dtype[np.float64]]"):  # type: ignore[no-untyped-def]
    """The probability for the rows of one baseline, for each limit."""
    from scipy.special import ndtr  # noqa: PLC0415 (slow to import)

    nodes, weights = _shared()
    inside = np.ones((len(limits), len(nodes)))
    for shared, rows in Counter(shape).items():
        apart = np.sqrt(max(1 - shared**2, 1e-6))
        upper = ndtr((limits[:, None] - shared * nodes) / apart)
        lower = ndtr((-limits[:, None] - shared * nodes) / apart)
        inside *= (upper - lower) ** rows
    return inside @ weights


@lru_cache(maxsize=1)
def _shared():  # type: ignore[no-untyped-def]
    """Values of what the rows of a baseline share, in its deviations, and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(SHARED_NODES)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=128)
def _scales(freedom: float):  # type: ignore[no-untyped-def]
    """Values of s / sigma and their weights: the centres of equally likely slices."""
    if freedom >= NORMAL_FREEDOM:
        return np.ones(1), np.ones(1)
    from scipy.special import chdtri  # noqa: PLC0415 (slow to import)

    # Gauss-Legendre over the probabilities, which reaches further into the tails than slices do.
    nodes, weights = np.polynomial.legendre.leggauss(SCALE_NODES)
    return np.sqrt(chdtri(freedom, 1 - (nodes + 1) / 2) / freedom), weights / 2
