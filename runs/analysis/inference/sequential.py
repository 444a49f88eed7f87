"""Looking more than once: how strict each look must be so that all together keep the level.

A campaign that gets further repeats after a look at its figures is judged several times. Each look
then has the same, smaller level (S. J. Pocock, "Group sequential methods in the design and analysis
of clinical trials", 1977), for whatever reason the rounds were added.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

NODES = 61


def level(looks: Sequence[int], significance: float) -> float:
    """The two-sided level of each look after these rounds (ascending, at least one round)."""
    return _level(tuple(sorted(set(looks))), significance)


@lru_cache(maxsize=256)
def _level(looks: tuple[int, ...], significance: float) -> float:
    if len(looks) < 2:
        return significance
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 (slow to import)

    low = float(-ndtri(significance / 2))
    high = float(-ndtri(significance / len(looks) / 2))
    for _ in range(14):
        middle = (low + high) / 2
        if _crossed(looks, middle) > significance:
            low = middle
        else:
            high = middle
    return float(2 * ndtr(-high))


def _crossed(looks: Sequence[int], limit: float) -> float:
    """The probability that a sum of normal steps, in its standard deviations, passes the limit.

    The density of the sum is carried from look to look over the part that has not passed (P.
    Armitage, C. K. McPherson, B. C. Rowe, "Repeated significance tests", 1969).
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    reach = limit * np.sqrt(looks[0])
    at = nodes * reach
    density = _normal(at, looks[0]) * weights * reach
    for before, after in pairwise(looks):
        reach = limit * np.sqrt(after)
        further = nodes * reach
        density = density @ _normal(further[None, :] - at[:, None], after - before)
        density = density * weights * reach
        at = further
    return float(1 - density.sum())


def _normal(
    value: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", variance: float
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    density: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.exp(
        -(value**2) / (2 * variance)
    ) / np.sqrt(2 * np.pi * variance)
    return density
