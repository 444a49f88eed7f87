"""The variance of each cell, moderated by all cells and by what is known about the server.

Three repeats say little about a cell's own scatter. So it is shrunk towards that of the campaign's
cells, and these towards the server's noise floor, as far as they agree (empirical Bayes; G. K.
Smyth, "Linear models and empirical Bayes methods for assessing differential expression", 2004).
A cell that scatters more than the others can explain (a spike) keeps its own variance (B. Phipson
and others, "Robust hyperparameter estimation protects against hypervariable genes", 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats
from runs.analysis.inference.blocks import Fit
from runs.analysis.inference.cells import Noise

# Probability of a cell's scatter: below the first it is a spike, above the second it is not.
SPIKED, USUAL = 0.0005, 0.02
# The prior on how alike cells are: its degrees of freedom, and the number of cells it counts as.
USUAL_PRIOR, PRIOR_CELLS = 20.0, 6.0
# The maximal weight of another day's noise, and how unlikely it may be before it is ignored.
MOST_OF_FLOOR = 30.0
DISAGREES = 0.05
# Fewer cells say nothing about how a machine's scatter changes from day to day.
LEAST_CELLS = 4
# Cells with so many times the runs of others are a group of their own.
UNLIKE = 2.0
# Sides scatter alike where a test with so many degrees of freedom each does not say otherwise.
LEAST_OF_SIDE, UNLIKE_SIDES = 6.0, 0.1
LEAST_SHARE = 1e-3
MOST_PRIOR = 1e6


@dataclass(frozen=True)
class Moderated:
    """`variances` to use for each cell; `own` is how much of it is the cell's own (0 to 1).

    `prior` is the degrees of freedom that each cell got in addition to its own, `pooled` the common
    variance of its `group`, with its `freedom`.
    """

    variances: Floats
    own: Floats
    prior: Floats
    pooled: Floats
    freedom: Floats
    group: Floats


def moderate(fit: Fit, noise: Noise | None, sides: Floats | None = None) -> Moderated:
    """Moderate the variances of fitted cells. If no spread is known, the freedom is 0.

    Cells of which some have twice the runs of others were not measured alike (a quiet night, and a
    job in between): each such group is moderated apart. So are those of base (-1) and head (1)
    where `sides` are given.
    """
    count = len(fit.n)
    group = _groups(fit.n) * 10 + (0 if sides is None else sides)
    moderated = Moderated(
        variances=np.zeros(count),
        own=np.zeros(count),
        prior=np.zeros(count),
        pooled=np.zeros(count),
        freedom=np.zeros(count),
        group=group,
    )
    for number in np.unique(group):
        in_group = np.flatnonzero(group == number)
        alike = _moderated(fit.variances[in_group], fit.freedom[in_group], noise)
        moderated.variances[in_group] = alike.variances
        moderated.own[in_group] = alike.own_shares
        moderated.prior[in_group] = alike.prior
        moderated.pooled[in_group] = alike.pooled
        moderated.freedom[in_group] = alike.freedom
    return moderated


def are_unlike(fit: Fit, sides: Floats) -> bool | None:
    """Whether base (-1) and head (1) scatter otherwise; None where too little is known to tell."""
    pools = []
    for side in (-1, 1):
        on_side = (sides == side) & (fit.freedom > 0)
        pools.append(_pool(fit.variances[on_side], fit.freedom[on_side])[:2])
    (base_variance, of_one), (head_variance, of_other) = pools
    if min(of_one, of_other) < LEAST_OF_SIDE:
        return None
    if min(base_variance, head_variance) <= 0:
        return base_variance != head_variance
    ratio = base_variance / head_variance
    chance = min(
        sp.special.fdtrc(of_one, of_other, ratio),
        sp.special.fdtrc(of_other, of_one, 1 / ratio),
    )
    return bool(2 * chance < UNLIKE_SIDES)


def _groups(n: Floats) -> Floats:
    """The number of each cell's group: a new one where the next larger n is twice as large."""
    several, index_of_n = np.unique(n, return_inverse=True)
    begins = several[1:] >= UNLIKE * several[:-1]
    group_of: Floats = np.concatenate(([0.0], np.cumsum(begins)))[index_of_n]
    return group_of


class _Alike(NamedTuple):
    """Cells that are moderated together; `freedom` is that of their pooled variance."""

    variances: Floats
    own_shares: Floats
    prior: Floats
    pooled: float
    freedom: float


def _moderated(variances: Floats, freedom: Floats, noise: Noise | None) -> _Alike:
    """Moderate cells that are alike."""
    has_freedom = freedom > 0
    own_pool, own_freedom, chance = _pool(variances[has_freedom], freedom[has_freedom])
    pooled, most = _combine_with_floor(own_pool, own_freedom, noise)
    prior = np.zeros(len(variances))
    # A single cell has nobody to learn from.
    if most > 0 and (len(variances) > 1 or noise is not None):
        likely = np.ones(len(variances))
        if has_freedom.any():
            likely[has_freedom] = chance
        trust = np.clip((likely - SPIKED) / (USUAL - SPIKED), 0, 1)
        prior = trust * _alike(variances[has_freedom], freedom[has_freedom], pooled)
    total = prior + freedom
    own_share = np.divide(freedom, total, out=np.zeros(len(total)), where=total > 0)
    mixed = own_share * variances + (1 - own_share) * pooled
    return _Alike(mixed, own_share, prior, pooled, most)


def _pool(variances: Floats, freedom: Floats) -> tuple[float, float, Floats]:
    """(variance, freedom, probability of each cell's scatter) from the cells without spikes."""
    chance = np.ones(len(variances))
    if not len(variances):
        return 0.0, 0.0, chance
    pooled = _start(variances, freedom)
    # Without its tail a distribution's mean is lower: by this share.
    untailed = _map_distinct(_untailed, freedom)
    usual = np.ones(len(variances), dtype=bool)
    for _ in range(4):
        if pooled <= 0:
            break
        chance = sp.special.chdtrc(freedom, freedom * variances / pooled)
        usual = chance >= SPIKED
        if not usual.any():
            usual = chance >= chance.max()
        weights = freedom[usual]
        pooled = float(
            np.sum(weights * variances[usual]) / np.sum(weights * untailed[usual])
        )
    return pooled, float(freedom[usual].sum()), chance


def _start(variances: Floats, freedom: Floats) -> float:
    """A first guess that spikes do not affect: the median; for few cells the mean."""
    mean = float(np.sum(freedom * variances) / np.sum(freedom))
    if len(variances) < 4:
        return mean
    middle = float(np.median(variances / (_map_distinct(_median, freedom) / freedom)))
    return middle or mean


def _map_distinct(function: Callable[[Floats], Floats], freedom: Floats) -> Floats:
    """A slow function of degrees of freedom, once for all cells that have as many runs."""
    several, index_of_freedom = np.unique(freedom, return_inverse=True)
    return function(several)[index_of_freedom]


def _median(freedom: Floats) -> Floats:
    middle: Floats = sp.special.chdtri(freedom, 0.5)
    return middle


def _untailed(freedom: Floats) -> Floats:
    cut = _upper(freedom)
    share: Floats = sp.special.gammainc(freedom / 2 + 1, cut / 2) / sp.special.gammainc(
        freedom / 2, cut / 2
    )
    return share


def _upper(freedom: Floats) -> Floats:
    cut: Floats = sp.special.chdtri(freedom, SPIKED)
    return cut


def _combine_with_floor(
    pooled: float, freedom: float, noise: Noise | None
) -> tuple[float, float]:
    """The campaign's variance combined with the server's, unless the campaign is noisier."""
    if noise is None or noise.variance <= 0 or noise.freedom <= 0:
        return pooled, freedom
    weight = min(noise.freedom, MOST_OF_FLOOR)
    if (
        freedom > 0
        and sp.special.fdtrc(freedom, weight, pooled / noise.variance) < DISAGREES
    ):
        return pooled, freedom
    return (freedom * pooled + weight * noise.variance) / (
        freedom + weight
    ), freedom + weight


def _alike(variances: Floats, freedom: Floats, pooled: float) -> float:
    """How alike the cells scatter, as the degrees of freedom of a common prior."""
    # trigamma(x) is zeta(2, x): polygamma() does more for the same bits.
    expected = sp.special.zeta(2.0, USUAL_PRIOR / 2) * PRIOR_CELLS
    cells = PRIOR_CELLS
    if len(variances) > 1 and pooled > 0:
        half = freedom / 2
        # A spike counts like the greatest usual value: it suggests that others may come.
        most = pooled * _map_distinct(_upper, freedom) / freedom
        spread = np.log(
            np.clip(variances, LEAST_SHARE * pooled, most)
        ) - sp.special.psi(half)
        spread += np.log(half)
        apart = float(np.sum((spread - spread.mean()) ** 2))
        expected += apart - (len(variances) - 1) * float(
            np.mean(sp.special.zeta(2.0, half))
        )
        cells += len(variances) - 1
    excess = float(expected) / cells
    return _inverse_trigamma(excess) * 2 if excess > 0 else MOST_PRIOR


def _inverse_trigamma(value: float) -> float:
    """The x with trigamma(x) = value, by Newton's steps on 1 / trigamma (as limma does)."""
    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(sp.special.zeta(2.0, x))
        step = trigamma * (1 - trigamma / value) / float(-2.0 * sp.special.zeta(3.0, x))
        x += step
        if -step / x < 1e-8:
            break
    return float(x)


def noise_of(scatter: Sequence[tuple[int, float]]) -> Noise | None:
    """The noise of a machine from (n, variance of logs) of other cells; None for too few.

    It counts more, the more alike they scatter.
    """
    freedom_and_variance = [(n - 1, variance) for n, variance in scatter if n > 1]
    if len(freedom_and_variance) < LEAST_CELLS:
        return None
    freedom = np.array(
        [freedom for freedom, _variance in freedom_and_variance], dtype=float
    )
    variances = np.array([variance for _freedom, variance in freedom_and_variance])
    pooled, total, _chance = _pool(variances, freedom)
    if pooled <= 0:
        return None
    return Noise(pooled, min(total, _alike(variances, freedom, pooled), MOST_OF_FLOOR))
