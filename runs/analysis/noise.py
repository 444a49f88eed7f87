"""A server's noise floor, and which effects its repeats can detect.

The formulas are in docs/statistics.md; power is for two sides with equally many repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats, Places
from runs.analysis.inference.verdicts import MINIMUM_EFFECT, SIGNIFICANCE
from runs.analysis.summary import Summary

POWER = 0.8
MOST_FREEDOM = 10_000
# This many standard errors beyond the threshold nothing is missed, and no digit is left.
CERTAIN = 8.0


@dataclass(frozen=True)
class NoiseFloor:
    """How repeats of the same thing scatter: the pooled standard deviation of ln value.

    0.02 is about 2 %. `low` and `high` are its 95 % interval; `freedom` the degrees of freedom
    behind it, from `cells` cells.
    """

    log_sd: float
    low: float
    high: float
    freedom: int
    cells: int


def noise_floor(summaries: Iterable[Summary]) -> NoiseFloor | None:
    """Pool the scatter within cells, each weighted by its degrees of freedom (n - 1).

    Cells are not compared with each other, so they may be of any scenario; use cells of the same
    metric on the same server. None if no cell has two runs.
    """
    freedom_and_variance = [
        ((cell.n or 1) - 1, cell.log_variance)
        for cell in summaries
        if cell.log_variance is not None
    ]
    freedom = sum(runs for runs, _ in freedom_and_variance)
    if freedom == 0:
        return None
    squares = math.fsum(runs * variance for runs, variance in freedom_and_variance)

    # chdtri takes the probability of the upper tail.
    low, high = (
        sp.special.chdtri(freedom, SIGNIFICANCE / 2),
        sp.special.chdtri(freedom, 1 - SIGNIFICANCE / 2),
    )
    return NoiseFloor(
        log_sd=math.sqrt(squares / freedom),
        low=math.sqrt(squares / float(low)),
        high=math.sqrt(squares / float(high)),
        freedom=freedom,
        cells=len(freedom_and_variance),
    )


def power(log_sd: float, repeats: int, effect: float, *, rows: int = 1) -> float:
    """The probability that `repeats` per side give the right verdict for a true effect in one row.

    `effect` 0.05 is 5 %, `rows` the number of rows in the table, whose cells share their variance.
    From the noncentral t distribution at the level of the table (Sidak's, for separate rows).
    Raises ValueError below two repeats.
    """
    if repeats < 2:
        raise ValueError("A test needs two repeats on each side.")
    difference = math.log1p(effect)
    if log_sd == 0:
        return 1.0 if difference > math.log1p(MINIMUM_EFFECT) else 0.0

    freedom = float(min(2 * (repeats - 1) * rows, MOST_FREEDOM))
    level = -math.expm1(math.log1p(-SIGNIFICANCE) / rows)
    threshold = -float(sp.special.stdtrit(freedom, level / 2))
    standardized = difference / (log_sd * math.sqrt(2 / repeats))
    if standardized - threshold > CERTAIN:
        return 1.0
    return 1 - float(sp.special.nctdtr(freedom, standardized, threshold))


def minimum_detectable_effect(log_sd: float, repeats: int, *, rows: int = 1) -> float:
    """The smallest effect (0.04 is 4 %) that is found with POWER in one of the rows.

    "3 repeats on this server can show 4 %." It is at least the minimum effect, since anything
    smaller is called the same. Raises ValueError below two repeats.
    """
    lowest, highest = 0.0, 0.01
    while power(log_sd, repeats, highest, rows=rows) < POWER:
        highest *= 2
    for _ in range(40):  # halvings: 1e-12 of the start is far finer than anybody reads
        middle = (lowest + highest) / 2
        if power(log_sd, repeats, middle, rows=rows) < POWER:
            lowest = middle
        else:
            highest = middle
    return max(highest, MINIMUM_EFFECT)


def half_width(summary: Summary) -> float | None:
    """Half the 95 % interval of the cell's geometric mean, as a ratio - 1; None if unknown."""
    if summary.log_variance is None or summary.n is None or summary.n < 2:
        return None

    quantile = float(sp.special.stdtrit(summary.n - 1, 1 - SIGNIFICANCE / 2))
    return math.expm1(quantile * math.sqrt(summary.log_variance / summary.n))


def needs_more(summary: Summary, wanted_half_width: float) -> bool:
    """Whether a cell needs another repeat: its interval is wider than wanted (0.02 is ±2 %).

    A cell without a spread needs one more; one with a value that is not positive does not, since
    its logarithms stay unknown.
    """
    if summary.log_mean is None:
        return False
    width = half_width(summary)
    return width is None or width > wanted_half_width


SPIKE = 3.0
"""Standard deviations from the running median beyond which a point is a spike."""

MOST_AUTOCORRELATION = 0.9
TOLD = 0.5
"""The degrees of freedom of a difference, reduced for the effect of pulling in."""
SHRINKS = 15.0
"""With this many points the autocorrelation counts half: from few points it is mostly luck."""

# The distance from the 10th to the 90th percentile of a normal distribution.
DECILES_APART = 2.5631
WITHIN = 2.5
# How much of a normal distribution's standard deviation remains after pulling in.
OF_NORMAL = 0.98872


@dataclass(frozen=True)
class HistoryNoise:
    """`sd` of the points (logs), their `autocorrelation` at lag 1, and the t's `freedom`."""

    sd: float
    autocorrelation: float
    freedom: float

    def errors(self, left_counts: Places, right: Places) -> Floats:
        """The standard error of the difference of the means of `left_counts` and `right` points."""
        variance = self._variance_of_mean(left_counts) + self._variance_of_mean(right)
        errors: Floats = self.sd * np.sqrt(variance)
        return errors

    def threshold(self, p_value: float) -> float:
        """The t-statistic with this two-sided p-value."""
        return float(-sp.special.stdtrit(self.freedom, p_value / 2))

    def p_value(self, statistic: float) -> float:
        """The two-sided p-value of a t-statistic."""
        return float(2 * sp.special.stdtr(self.freedom, -abs(statistic)))

    def _variance_of_mean(self, n: Places) -> Floats:
        """For n points of an AR(1) process with variance 1, exact (few points gain less)."""
        rho = self.autocorrelation
        variance: Floats = (
            (1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)
        ) / n
        return variance


def replace_spikes(logs: Floats, shortest: int) -> Floats:
    """Replace points farther than SPIKE from their running median by that median.

    F. R. Hampel, "The influence curve and its role in robust estimation", Journal of the American
    Statistical Association 69, 1974. A level that holds for `shortest` points stays.
    """
    if len(logs) < 2:
        return logs
    # The median of 2 s - 1 points follows a level of s of them, and nothing shorter.
    middle = _running_median(logs, 2 * shortest - 1)
    sd = max(spread(logs - middle), spread(np.diff(logs)) / math.sqrt(2))
    # Replaced, not only pulled in: a spike of two points before a low third would look like a
    # level.
    return np.where(np.abs(logs - middle) > SPIKE * sd, middle, logs)


def estimate(
    calm: Floats, shortest: int | None = None, changes: Sequence[int] = ()
) -> HistoryNoise:
    """The noise from differences, of which a change of level affects only one or two.

    In a short history that is a large part, so the known `changes` and the likeliest further one
    are removed first. The autocorrelation is shrunk towards zero with the weight of SHRINKS points.

    For an AR(1) process the variance of differences at lag 1 is 2 s² (1 - r), at lag 2
    2 s² (1 - r²): their ratio is 1 + r. (The idea: I. Tecuapetla-Gómez, A. Munk, "Autocovariance
    estimation in regression with a discontinuous signal", Scandinavian Journal of Statistics 44,
    2017.) Negative autocorrelation counts as none. Fewer than three points tell nothing.
    """
    if len(calm) < 3:
        return HistoryNoise(math.inf, 0.0, 1.0)
    if shortest is not None:
        calm = _level(calm, shortest, changes)
    first_variance, second = (
        spread(np.diff(calm)) ** 2,
        spread(calm[2:] - calm[:-2]) ** 2,
    )
    if first_variance == 0:
        # A history of equal values, or nearly: whatever scatter there is must do.
        first_variance = second = float(np.var(np.diff(calm)))
    rho = 0.0
    if first_variance > 0:
        rho = min(max(second / first_variance - 1, 0.0), MOST_AUTOCORRELATION)
        rho *= len(calm) / (len(calm) + SHRINKS)
    sd = max(math.sqrt(first_variance / (2 * (1 - rho))), 1e-9)
    freedom = max(1.0, (len(calm) - 1) * TOLD * (1 - rho) / (1 + rho))
    return HistoryNoise(sd, rho, freedom)


def _level(calm: Floats, shortest: int, changes: Sequence[int]) -> Floats:
    """The points without these changes of level, and without the further one that explains most."""
    level = calm.copy()
    splits: list[tuple[float, int, int]] = []
    for number, stretch in enumerate(stretches := np.split(level, list(changes))):
        stretch[:] -= stretch.mean()
        left_counts = np.arange(shortest, len(stretch) - shortest + 1)
        if len(left_counts):
            gains = np.cumsum(stretch)[left_counts - 1] ** 2 / (
                left_counts * (1 - left_counts / len(stretch))
            )
            best = int(gains.argmax())
            splits.append((float(gains[best]), number, int(left_counts[best])))
    if splits:
        _gain, number, position = max(splits)
        for stretch in np.split(stretches[number], [position]):
            stretch[:] -= stretch.mean()
    return level


def _running_median(logs: Floats, size: int) -> Floats:
    """The median of `size` points around each; at the ends that of the first or last ones."""
    size = min(size, len(logs))
    windows = np.lib.stride_tricks.sliding_window_view(logs, size)
    medians: Floats = np.median(windows, axis=1)
    return np.pad(
        medians, (size // 2, len(logs) - len(medians) - size // 2), mode="edge"
    )


def spread(values: Floats) -> float:
    """The standard deviation: by the interdecile range first, then of the values within it.

    A tenth of the values on each side may be anything. The second step uses the values pulled in to
    WITHIN of the first one's standard deviations (one step of Huber's proposal 2), and loses little
    of the information: autocorrelation is a small difference of two spreads.
    """
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    rough = float(high - low) / DECILES_APART
    pulled_in = np.clip(values - middle, -WITHIN * rough, WITHIN * rough)
    return float(np.sqrt(np.mean(pulled_in**2))) / OF_NORMAL
