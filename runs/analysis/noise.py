"""A server's noise floor, and which effects its repeats can detect.

The formulas are in docs/statistics.md; power is for two sides with equally many repeats.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

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
    known = [
        ((cell.n or 1) - 1, cell.log_variance)
        for cell in summaries
        if cell.log_variance is not None
    ]
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
    from scipy.special import nctdtr, stdtrit  # noqa: PLC0415 (slow to import)

    freedom = float(min(2 * (repeats - 1) * rows, MOST_FREEDOM))
    level = -math.expm1(math.log1p(-SIGNIFICANCE) / rows)
    threshold = -float(stdtrit(freedom, level / 2))
    shown = difference / (log_sd * math.sqrt(2 / repeats))
    if shown - threshold > CERTAIN:
        return 1.0
    return 1 - float(nctdtr(freedom, shown, threshold))


def minimum_detectable_effect(
    log_sd: float, repeats: int, *, rows: int = 1, wanted_power: float = POWER
) -> float:
    """The smallest effect (0.04 is 4 %) that is found with the wanted power in one of the rows.

    "3 repeats on this server can show 4 %." It is at least the minimum effect, since anything
    smaller is called the same. Raises ValueError below two repeats.
    """
    lowest, highest = 0.0, 0.01
    while power(log_sd, repeats, highest, rows=rows) < wanted_power:
        highest *= 2
    for _ in range(40):  # halvings: 1e-12 of the start is far finer than anybody reads
        middle = (lowest + highest) / 2
        if power(log_sd, repeats, middle, rows=rows) < wanted_power:
            lowest = middle
        else:
            highest = middle
    return max(highest, MINIMUM_EFFECT)


def half_width(summary: Summary) -> float | None:
    """Half the 95 % interval of the cell's geometric mean, as a ratio - 1; None if unknown."""
    if summary.log_variance is None or summary.n is None or summary.n < 2:
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to import)

    quantile = float(stdtrit(summary.n - 1, 1 - SIGNIFICANCE / 2))
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
