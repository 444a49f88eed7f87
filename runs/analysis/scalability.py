"""How throughput grows with clients, cores or nodes: the laws of Amdahl and Gunther.

    X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))

gamma is the throughput of one, alpha the share that waits in line (contention), beta the price of
keeping all in agreement (coherency): Gunther's Universal Scalability Law. Amdahl's law is the same
with beta = 0. Source: N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapters 4 to 6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Law = Literal["amdahl", "usl"]

MINIMUM_LEVELS = 3


@dataclass(frozen=True)
class Fit:
    """A law fitted to measured throughput.

    `r_squared` is the share of the variance that the law explains (it is below 0 for a law worse
    than the mean). `peak_level` is where the law is greatest and `peak` its value there; both are
    None where it grows for ever.
    """

    law: Law
    gamma: float
    alpha: float
    beta: float
    r_squared: float
    peak_level: float | None
    peak: float | None

    def throughput(self, level: float) -> float:
        """What the law predicts at a level, in the unit of the measured throughput."""
        return level * self.gamma / (1 + (level - 1) * (self.alpha + self.beta * level))


def fit_amdahl(levels: Sequence[float], throughputs: Sequence[float]) -> Fit | None:
    """Fit Amdahl's law, 0 <= alpha <= 1; None for fewer than three different levels.

    Raises ValueError for a level below 1 or a throughput that is not positive.
    """
    return _fit("amdahl", levels, throughputs)


def fit_usl(levels: Sequence[float], throughputs: Sequence[float]) -> Fit | None:
    """Fit the Universal Scalability Law, 0 <= alpha <= 1 and beta >= 0; else as fit_amdahl()."""
    return _fit("usl", levels, throughputs)


def _fit(law: Law, levels: Sequence[float], throughputs: Sequence[float]) -> Fit | None:
    n, measured = np.asarray(levels, dtype=float), np.asarray(throughputs, dtype=float)
    if n.shape != measured.shape:
        raise ValueError("There must be one throughput for each level.")
    if not (np.all(n >= 1) and np.all(measured > 0) and np.all(np.isfinite(measured))):
        raise ValueError("Levels begin at 1, and throughputs are positive.")
    if len(np.unique(n)) < MINIMUM_LEVELS:
        return None
    gamma, alpha, beta = _least_squares(law, n, measured)
    predicted = gamma * _capacity(n, alpha, beta)
    spread = float(np.sum((measured - measured.mean()) ** 2))
    residual = float(np.sum((measured - predicted) ** 2))
    r_squared = 1 - residual / spread if spread > 0 else math.nan
    plain = Fit(law, gamma, alpha, beta, r_squared, None, None)
    if beta <= 0:
        return plain
    # The law falls from the start where its formula's peak lies below one client.
    peak_level = max(1.0, math.sqrt((1 - alpha) / beta))
    return Fit(law, gamma, alpha, beta, r_squared, peak_level, plain.throughput(peak_level))


def _capacity(n: NDArray[np.float64], alpha: float, beta: float) -> NDArray[np.float64]:
    """Throughput in units of gamma."""
    capacity: NDArray[np.float64] = n / (1 + (n - 1) * (alpha + beta * n))
    return capacity


def _least_squares(
    law: Law, n: NDArray[np.float64], measured: NDArray[np.float64]
) -> tuple[float, float, float]:
    """(gamma, alpha, beta) of the least squares of the throughput itself.

    gamma enters linearly and is solved for (variable projection), so that the search is over
    alpha and beta alone. beta is searched in units of 1 / N max squared, where it is about 1.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 (slow to import)

    unit = 1 / float(n.max()) ** 2

    def gamma_of(shape: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        capacity = _capacity(n, shape[0], shape[1] * unit if law == "usl" else 0.0)
        return float(capacity @ measured / (capacity @ capacity)), capacity

    def residuals(shape: NDArray[np.float64]) -> NDArray[np.float64]:
        gamma, capacity = gamma_of(shape)
        missed: NDArray[np.float64] = (gamma * capacity - measured) / measured.max()
        return missed

    size = 2 if law == "usl" else 1
    starts = ([0.02, 0.1], [0.2, 1.0], [0.8, 5.0])
    found = min(
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
    gamma, _ = gamma_of(found.x)
    return gamma, float(found.x[0]), float(found.x[1]) * unit if law == "usl" else 0.0
