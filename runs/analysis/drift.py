"""Is a run stable? Finds warm-up, slow drift and dips in a series of values over time.

A series of any length is first reduced to at most BLOCKS medians of equally many neighbouring
points: 172,800 points (48 hours of seconds) become 400, whose pairs and lags are few enough for
the exact formulas. Only dips are searched in the points themselves. See docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runs.analysis.arrays import Floats
from runs.analysis.dips import Dip, dips
from runs.analysis.noise import estimate, spread

BLOCKS = 400
MINIMUM_POINTS = 10
SIGNIFICANCE = 0.01
WARM_UP_SIGNIFICANCE = 0.001
MINIMUM_CHANGE = 0.03

NORMAL_QUANTILE = 1.96


@dataclass(frozen=True)
class Drift:
    """A slow change over the series, without its warm-up.

    `change` is that from start to end of the line, as a share of the median (-0.1 is a loss of
    10 %); `slope` is in the metric's unit per second. `p_value` is Mann and Kendall's, corrected
    for autocorrelation. `is_proven`: p below SIGNIFICANCE and at least MINIMUM_CHANGE.
    """

    change: float
    slope: float
    p_value: float
    is_proven: bool


@dataclass(frozen=True)
class Stability:
    """The result of examine(); `drift` is None for fewer than MINIMUM_POINTS points."""

    warm_up_s: float
    drift: Drift | None
    dips: tuple[Dip, ...]


def examine(times_s: Sequence[float], values: Sequence[float]) -> Stability:
    """Search for all three. Times are seconds, ascending; points that are not finite are left out.

    172,800 points take about 20 ms. Raises ValueError if times and values differ in number.
    """
    if len(times_s) == len(values) < MINIMUM_POINTS:
        return Stability(
            0.0, None, ()
        )  # without numpy, which a worker of short runs never loads
    times, points = np.asarray(times_s, dtype=float), np.asarray(values, dtype=float)
    if times.shape != points.shape:
        raise ValueError("There must be one time for each value.")
    is_known = np.isfinite(times) & np.isfinite(points)
    times, points = times[is_known], points[is_known]
    if len(points) < MINIMUM_POINTS:
        return Stability(0.0, None, ())
    warm_up_s = _warm_up(times, points)
    is_warm = times >= times[0] + warm_up_s
    return Stability(
        warm_up_s, _drift(times[is_warm], points[is_warm]), dips(times, points)
    )


def _warm_up(times: Floats, points: Floats) -> float:
    """Seconds to leave out at the start, by MSER: the cut with the most precise mean of the rest.

    K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
    Simulation 69, 1997. A minimum at the half is not a warm-up but a drift; nor is it a warm-up if
    it does not stand out from the noise with its autocorrelation, or by MINIMUM_CHANGE.
    """
    starts, medians = _blocks(times, points)
    half = len(medians) // 2
    level = _remove_drift(starts, medians, half)
    middle, sd = float(np.median(level[half:])), spread(level[half:])
    # Pulled in, so that a later dip is not a reason to keep the start.
    calm = np.clip(level, middle - 5 * sd, middle + 5 * sd)
    cut = _mser(calm - middle, half)
    if cut in (0, half):
        return 0.0
    noise = estimate(calm[half:])
    error = float(noise.errors(np.array([cut]), np.array([len(calm) - cut]))[0])
    distance = abs(float(np.median(level[:cut])) - middle)
    is_noise = distance <= noise.threshold(WARM_UP_SIGNIFICANCE) * error
    is_small = distance < MINIMUM_CHANGE * abs(middle)
    return 0.0 if is_noise or is_small else float(starts[cut] - times[0])


def _remove_drift(starts: Floats, medians: Floats, half: int) -> Floats:
    """Remove a drift, which could look like a warm-up or hide one.

    The second half is warm and shows it best. If it is too short to be sure, the complete series
    is used: a warm-up affects only a few of its slopes.
    """
    for stretch in (slice(half, None), slice(None)):
        slope = _theil_sen(starts[stretch], medians[stretch])
        level: Floats = medians - slope * (starts - starts[-1])
        if _mann_kendall(medians[stretch], level[stretch]) < SIGNIFICANCE:
            return level
    return medians


def _mser(distances: Floats, half: int) -> int:
    """How many of the first blocks to cut, at most half: the least squared standard error."""
    remaining_counts = np.arange(len(distances), 0, -1)
    sums = np.cumsum(distances[::-1])[::-1]
    squares = np.cumsum(distances[::-1] ** 2)[::-1]
    errors = (squares - sums**2 / remaining_counts) / remaining_counts**2
    return int(errors[: half + 1].argmin())


def _blocks(times: Floats, points: Floats) -> tuple[Floats, Floats]:
    """(first times, medians) of blocks of equally many points, at most BLOCKS of them."""
    size = math.ceil(len(points) / BLOCKS)
    full = (
        len(points) // size * size
    )  # the last few points that fill no block are left out
    medians: Floats = np.median(points[:full].reshape(-1, size), axis=1)
    return times[:full:size], medians


def _drift(times: Floats, points: Floats) -> Drift | None:
    starts, medians = _blocks(times, points)
    middle = float(np.median(medians))
    if len(medians) < MINIMUM_POINTS or middle == 0:
        return None
    slope = _theil_sen(starts, medians)
    p_value = _mann_kendall(medians, medians - slope * (starts - starts[0]))
    change = slope * float(times[-1] - times[0]) / abs(middle)
    return Drift(
        change,
        slope,
        p_value,
        is_proven=p_value < SIGNIFICANCE and abs(change) >= MINIMUM_CHANGE,
    )


def _theil_sen(times: Floats, values: Floats) -> float:
    """The median of the slopes of all pairs.

    P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", Journal of the
    American Statistical Association 63, 1968.
    """
    earlier, later = np.triu_indices(len(values), k=1)
    spans = times[later] - times[earlier]
    slopes = (values[later] - values[earlier])[spans > 0] / spans[spans > 0]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _mann_kendall(values: Floats, detrended: Floats) -> float:
    """The two-sided p-value of no trend: the normal approximation, with continuity.

    The variance grows by what the autocorrelation that is left without the trend takes from the
    points; it never shrinks.
    """
    n = len(values)
    earlier, later = np.triu_indices(n, k=1)
    score = float(np.sign(values[later] - values[earlier]).sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (
        float(n * (n - 1) * (2 * n + 5) - np.sum(ties * (ties - 1) * (2 * ties + 5)))
        / 18
    )
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(score) - 1) / math.sqrt(
        variance * max(1.0, _variance_factor(detrended))
    )
    return math.erfc(z / math.sqrt(2))


def _variance_factor(detrended: Floats) -> float:
    """n / n*, the greater of two estimates: what all lags say, and what an AR(1) process would.

    The first: K. H. Hamed, A. R. Rao, "A modified Mann-Kendall trend test for autocorrelated data",
    Journal of Hydrology 204, 1998, of the lags whose autocorrelation of ranks is itself significant
    (5 %). The second: S. Yue, C. Wang, "The Mann-Kendall test modified by effective sample size",
    Water Resources Management 18, 2004; lag 1 corrected for its bias in short series (M. G.
    Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954).
    """
    n = len(detrended)
    ranks = detrended.argsort().argsort().astype(float)
    ranks -= ranks.mean()
    full = np.correlate(ranks, ranks, mode="full")[n - 1 :]
    lags, rho = np.arange(1, n), full[1:] / full[0]
    correlation = min(float(rho[0]) + (1 + 4 * float(rho[0])) / n, 0.98)
    rho[np.abs(rho) < NORMAL_QUANTILE / math.sqrt(n)] = 0
    weights = (n - lags) * (n - lags - 1.0) * (n - lags - 2.0)
    by_lags = 1 + 2 * float(weights @ rho) / (n * (n - 1) * (n - 2))
    if correlation <= NORMAL_QUANTILE / math.sqrt(n):
        return by_lags
    return max(by_lags, 1 + 2 * float((1 - lags / n) @ correlation**lags))
