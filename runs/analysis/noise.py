"""A server's noise floor, and what its repeats can show.

The formulas are in docs/statistics.md; power is that of two sides with equally many repeats.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from runs.analysis.comparison import MINIMUM_EFFECT, SIGNIFICANCE
from runs.analysis.summary import Summary

POWER = 0.8
MOST_REPEATS = 1000
QUANTILES = 80


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

    Between cells nothing is compared, so that they may be of any scenario; those of the same
    metric on the same server belong together. None where no cell has two runs.
    """
    known = [(cell.n - 1, cell.log_variance) for cell in summaries if cell.log_variance is not None]
    freedom = sum(runs for runs, _ in known)
    if freedom == 0:
        return None
    squares = math.fsum(runs * variance for runs, variance in known)
    from scipy.special import chdtri  # noqa: PLC0415 (slow to import)

    # chdtri takes the probability of the upper tail.
    low, high = chdtri(freedom, SIGNIFICANCE / 2), chdtri(freedom, 1 - SIGNIFICANCE / 2)
    return NoiseFloor(
        log_sd=math.sqrt(squares / freedom),
        low=math.sqrt(squares / float(low)),
        high=math.sqrt(squares / float(high)),
        freedom=freedom,
        cells=len(known),
    )


def power(
    log_sd: float, repeats: int, effect: float, *, minimum_effect: float = MINIMUM_EFFECT
) -> float:
    """The chance that `repeats` each side give the right verdict for a true effect.

    `effect` 0.05 is 5 %. It is the mean, over the spreads that the two sides can show by chance, of
    the chance that the measured difference passes both of a verdict's thresholds: Welch's t and
    the minimum effect. (With many repeats and no minimum this is the noncentral t distribution;
    with few, Welch's test finds less than that promises.) Raises ValueError below two repeats.
    """
    if repeats < 2:
        raise ValueError("A test needs two repeats on each side.")
    difference, minimum = math.log1p(effect), math.log1p(minimum_effect)
    error = log_sd * math.sqrt(2 / repeats)
    if error == 0:
        return 1.0 if difference >= minimum and difference > 0 else 0.0
    from scipy.special import ndtr  # noqa: PLC0415 (slow to import)

    threshold = np.maximum(_welch_thresholds(repeats) * error, minimum)
    return float(np.mean(ndtr((difference - threshold) / error)))


@lru_cache(maxsize=64)
def _welch_thresholds(repeats: int) -> NDArray[np.float64]:
    """The differences that reach p = 0.05, in true standard errors, for a grid of spreads seen.

    Each side's variance is that of chi square; the grid has the middles of QUANTILES equally
    likely slices of both.
    """
    from scipy.special import chdtri, stdtrit  # noqa: PLC0415 (slow to import)

    freedom = repeats - 1
    slices = (np.arange(QUANTILES) + 0.5) / QUANTILES
    variances = chdtri(freedom, slices) / freedom
    one, other = variances[:, None], variances[None, :]
    welch = freedom * (one + other) ** 2 / (one**2 + other**2)
    thresholds: NDArray[np.float64] = stdtrit(welch, 1 - SIGNIFICANCE / 2) * np.sqrt(
        (one + other) / 2
    )
    return thresholds


def minimum_detectable_effect(
    log_sd: float,
    repeats: int,
    *,
    wanted_power: float = POWER,
    minimum_effect: float = MINIMUM_EFFECT,
) -> float:
    """The smallest effect (0.04 is 4 %) that is found with the wanted power.

    "3 repeats on this server can show 4 %." Raises ValueError below two repeats.
    """
    lowest, highest = 0.0, 0.01
    while power(log_sd, repeats, highest, minimum_effect=minimum_effect) < wanted_power:
        highest *= 2
    for _ in range(40):  # halvings: 1e-12 of the start is far finer than anybody reads
        middle = (lowest + highest) / 2
        if power(log_sd, repeats, middle, minimum_effect=minimum_effect) < wanted_power:
            lowest = middle
        else:
            highest = middle
    return highest


def repeats_needed(
    log_sd: float,
    effect: float,
    *,
    wanted_power: float = POWER,
    minimum_effect: float = MINIMUM_EFFECT,
) -> int | None:
    """The fewest repeats each side that find the effect with the wanted power.

    None where even MOST_REPEATS do not: an effect of just the minimum is called by half of all
    comparisons, however many repeats there are.
    """

    def is_enough(repeats: int) -> bool:
        return power(log_sd, repeats, effect, minimum_effect=minimum_effect) >= wanted_power

    if not is_enough(MOST_REPEATS):
        return None
    too_few, enough = 1, MOST_REPEATS
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if is_enough(middle) else (middle, enough)
    return enough


def half_width(summary: Summary) -> float | None:
    """Half the 95 % interval of the cell's geometric mean, as a ratio - 1; None if unknown."""
    if summary.log_variance is None or summary.n < 2:
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to import)

    quantile = float(stdtrit(summary.n - 1, 1 - SIGNIFICANCE / 2))
    return math.expm1(quantile * math.sqrt(summary.log_variance / summary.n))


def needs_more(summary: Summary, wanted_half_width: float) -> bool:
    """Whether a cell needs another repeat: its interval is wider than wanted (0.02 is ±2 %).

    A cell without a spread needs one more; one with a value that is not positive does not, since
    its logarithms stay unknown whatever comes.
    """
    if summary.log_mean is None:
        return False
    width = half_width(summary)
    return width is None or width > wanted_half_width
