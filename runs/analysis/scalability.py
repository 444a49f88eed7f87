"""How throughput grows with clients, cores or nodes: the laws of Amdahl and Gunther.

    X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))

gamma is the throughput of one, alpha the share that waits in line (contention), beta the cost of
keeping all consistent (coherency): Gunther's Universal Scalability Law. Amdahl's law is the same
with beta = 0. Source: N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapters 4 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats

Law = Literal["amdahl", "usl"]
Interval = tuple[float, float | None]

# One more than the law has parameters: with as many points as parameters any law fits.
MINIMUM_LEVELS: dict[Law, int] = {"amdahl": 3, "usl": 4}
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Fit:
    """A law fitted to measured throughput.

    `r_squared` is the share of the variance that the law explains (negative for a law worse than
    the mean). `peak_level` is where the law is greatest and `peak` its value there; both are None
    if it grows forever, or may do so according to the points. `intervals` has the 95 % interval of
    gamma, alpha, beta and peak_level; a high end of None has no bound.
    """

    law: Law
    gamma: float
    alpha: float
    beta: float
    r_squared: float
    peak_level: float | None
    peak: float | None
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    def throughput(self, level: float) -> float:
        """What the law predicts at a level, in the unit of the measured throughput."""
        return level * self.gamma / (1 + (level - 1) * (self.alpha + self.beta * level))


def fitted(
    law: Law, levels: Sequence[float], throughputs: Sequence[float]
) -> Fit | None:
    """Fit a law, 0 <= alpha <= 1 and beta >= 0; None for fewer than MINIMUM_LEVELS.

    Raises ValueError for a level below 1 or a throughput that is not positive.
    """
    n, measured = np.asarray(levels, dtype=float), np.asarray(throughputs, dtype=float)
    if n.shape != measured.shape:
        raise ValueError("There must be one throughput for each level.")
    if not (np.all(n >= 1) and np.all(measured > 0) and np.all(np.isfinite(measured))):
        raise ValueError("Levels begin at 1, and throughputs are positive.")
    if len(np.unique(n)) < MINIMUM_LEVELS[law]:
        return None
    gamma, alpha, beta = _least_squares(law, n, measured)
    predicted = gamma * _capacity(n, alpha, beta)
    spread = float(np.sum((measured - measured.mean()) ** 2))
    residual = float(np.sum((measured - predicted) ** 2))
    r_squared = 1 - residual / spread if spread > 0 else math.nan
    intervals = _intervals(law, n, measured)
    plain = Fit(law, gamma, alpha, beta, r_squared, None, None, intervals)
    if beta <= 0 or "peak_level" not in intervals:
        return plain
    # The law falls from the start if its formula's peak is below one client.
    peak_level = max(1.0, math.sqrt((1 - alpha) / beta))
    return replace(plain, peak_level=peak_level, peak=plain.throughput(peak_level))


def _intervals(law: Law, n: Floats, measured: Floats) -> dict[str, Interval]:
    """The intervals by Fieller's theorem: N / X is linear in (1, alpha, beta) / gamma.

    Assumes that throughputs scatter by the same share each. Unless coherency is proven (beta above
    0), there is no interval of a peak, and no peak. E. C. Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954.
    """
    columns = [np.ones_like(n), n - 1, n * (n - 1)][: 3 if law == "usl" else 2]
    design = np.stack(columns, axis=1) * (measured / n)[:, None]
    freedom = len(n) - design.shape[1]
    if freedom < 1:
        return {}

    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ np.ones_like(n)
    squares = float(np.sum((1 - design @ coefficients) ** 2))
    covariance = inverse * squares / freedom
    wide = -float(sp.special.stdtrit(freedom, SIGNIFICANCE / 2))

    def ratio(top: Sequence[float], bottom: Sequence[float]) -> Interval:
        sides = np.array([top, bottom])[:, : len(coefficients)]
        return _fieller(sides @ coefficients, sides @ covariance @ sides.T, wide)

    intervals = {
        "gamma": _inverse(coefficients, covariance, wide),
        "alpha": _within(ratio((0, 1, 0), (1, 0, 0)), 0.0, 1.0),
    }
    if law == "usl":
        intervals["beta"] = _within(ratio((0, 0, 1), (1, 0, 0)), 0.0, None)
        if coefficients[2] > wide * math.sqrt(max(float(covariance[2, 2]), 0.0)):
            low, high = ratio((1, -1, 0), (0, 0, 1))
            intervals["peak_level"] = (
                math.sqrt(max(low, 1.0)),
                high and math.sqrt(max(high, 1.0)),
            )
    return intervals


def _inverse(coefficients: Floats, covariance: Floats, wide: float) -> Interval:
    """gamma is one through the first coefficient."""
    width = wide * math.sqrt(max(float(covariance[0, 0]), 0.0))
    low, high = coefficients[0] - width, coefficients[0] + width
    return float(1 / high), float(1 / low) if low > 0 else None


def _fieller(sides: Floats, covariance: Floats, wide: float) -> Interval:
    """The interval of a ratio of two estimates (top, bottom)."""
    (top, bottom), square = sides, wide**2
    leading = bottom**2 - square * covariance[1, 1]
    middle = top * bottom - square * covariance[0, 1]
    constant = top**2 - square * covariance[0, 0]
    if leading <= 0:
        return -math.inf, None
    root = math.sqrt(max(float(middle**2 - leading * constant), 0.0))
    return float((middle - root) / leading), float((middle + root) / leading)


def _within(interval: Interval, least: float, most: float | None) -> Interval:
    low, high = interval
    if high is not None:
        high = max(high, least) if most is None else min(max(high, least), most)
    return max(low, least), most if high is None else high


def _capacity(n: Floats, alpha: float, beta: float) -> Floats:
    """Throughput in units of gamma."""
    capacity: Floats = n / (1 + (n - 1) * (alpha + beta * n))
    return capacity


def _least_squares(law: Law, n: Floats, measured: Floats) -> tuple[float, float, float]:
    """(gamma, alpha, beta) of the least squares of the throughput itself.

    gamma enters linearly and is solved for (variable projection), so that the search is over
    alpha and beta alone. beta is searched in units of 1 / N max squared, where it is about 1.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 (slow to import)

    unit = 1 / float(n.max()) ** 2

    def gamma_of(shape: Floats) -> tuple[float, Floats]:
        capacity = _capacity(n, shape[0], shape[1] * unit if law == "usl" else 0.0)
        return float(capacity @ measured / (capacity @ capacity)), capacity

    def residuals(shape: Floats) -> Floats:
        gamma, capacity = gamma_of(shape)
        missed: Floats = (gamma * capacity - measured) / measured.max()
        return missed

    size = 2 if law == "usl" else 1
    starts = ([0.02, 0.1], [0.2, 1.0], [0.8, 5.0])
    solution = min(
        (
            least_squares(
                residuals,
                start[:size],
                bounds=([0.0, 0.0][:size], [1.0, np.inf][:size]),
                xtol=1e-12,
                ftol=1e-12,
                gtol=1e-12,
            )
            for start in starts
        ),
        key=lambda result: result.cost,
    )
    gamma, _ = gamma_of(solution.x)
    return (
        gamma,
        float(solution.x[0]),
        float(solution.x[1]) * unit if law == "usl" else 0.0,
    )
