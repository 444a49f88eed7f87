"""Summarises the repeats of one cell for a metric in a handful of numbers.

Outlying repeats. They are flagged for a person to look at, never left out.

The median in charts does not move for one of them, and the interval of a comparison widens as it
should; dropping runs because one does not like them makes benchmarks dishonest.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

ROBUST_FROM = 5
"""From five repeats on, the other four show the spread without the fifth."""

LIMITS = (
    (5, 13.0),
    (6, 7.8),
    (7, 8.3),
    (8, 6.5),
    (9, 6.8),
    (10, 5.8),
    (12, 5.4),
    (15, 5.2),
    (20, 4.7),
    (30, 4.4),
    (50, 4.2),
    (100, 4.1),
)
"""(repeats, modified z-score) that the farthest of as many normal repeats exceeds in 2 % of cells.

Simulated, 200,000 cells each. The 3.5 that B. Iglewicz and D. Hoaglin recommend ("How to Detect and
Handle Outliers", 1993) would flag one in five cells of five: so few say little about their MAD.
"""

SMALLEST_RATIO = 1.03
"""A repeat closer to the median than this is never flagged: the MAD of five can be nearly 0."""

FEW_RATIO = 1.2
FEW_GAP = 0.8
"""Of three or four, one that is off by a fifth and by four times the spread of the rest.

Either alone would flag common cases: a fifth, a noisy cell; the gap, a third of the cells of 3.
"""


@dataclass(frozen=True)
class Outlier:
    """The repeat at `index`: `ratio` to the median of its cell, `score` of the rule that flags it.

    The score is the modified z-score from ROBUST_FROM repeats on; below it is Dixon's r10, the
    share of the range that lies between the repeat and its nearest neighbour.
    """

    index: int
    value: float
    ratio: float
    score: float


def flag(values: Sequence[float]) -> tuple[Outlier, ...]:
    """The outliers among the repeats of a cell, in the order of the repeats.

    None are found below three repeats, or if a value is not positive (it has no logarithm, and is
    conspicuous by itself).
    """
    if len(values) < 3 or min(values) <= 0:
        return ()
    logs = [math.log(value) for value in values]
    median = statistics.median(logs)
    scores = _modified_z(logs, median) if len(logs) >= ROBUST_FROM else _gaps(logs)
    limit, ratio = FEW_GAP, FEW_RATIO
    if len(logs) >= ROBUST_FROM:
        limit, ratio = _limit(len(logs)), SMALLEST_RATIO
    return tuple(
        Outlier(index, values[index], math.exp(log - median), score)
        for index, (log, score) in enumerate(zip(logs, scores, strict=True))
        if score > limit and abs(log - median) > math.log(ratio)
    )


def _limit(repeats: int) -> float:
    return next(limit for least, limit in reversed(LIMITS) if repeats >= least)


def _modified_z(logs: Sequence[float], median: float) -> list[float]:
    """0.6745 (x - median) / MAD, without its sign."""
    distances = [abs(log - median) for log in logs]
    mad = statistics.median(distances)
    if mad == 0:
        return [math.inf if distance > 0 else 0.0 for distance in distances]
    return [0.6745 * distance / mad for distance in distances]


def _gaps(logs: Sequence[float]) -> list[float]:
    """Dixon's r10 of the lowest and the highest; 0 for the others."""
    order = sorted(range(len(logs)), key=logs.__getitem__)
    scores = [0.0] * len(logs)
    extent = logs[order[-1]] - logs[order[0]]
    if extent > 0:
        scores[order[0]] = (logs[order[1]] - logs[order[0]]) / extent
        scores[order[-1]] = (logs[order[-1]] - logs[order[-2]]) / extent
    return scores


@dataclass(frozen=True)
class Summary:
    """The repeats of a cell, in the metric's own unit.

    `log_mean` and `log_variance` are those of the natural logarithms: the mean is null if a value
    is not positive, the sample variance (n - 1) also if n < 2. `n` is None if a publication does
    not print how many repeats its value is based on.
    """

    n: int | None
    median: float
    minimum: float
    maximum: float
    mean: float
    log_mean: float | None = None
    log_variance: float | None = None

    @property
    def is_spread(self) -> bool:
        """Whether `flag` may find an outlier: by their range, it cannot in most cells."""
        ratio = SMALLEST_RATIO if (self.n or 0) >= ROBUST_FROM else FEW_RATIO
        return (
            (self.n or 0) >= 3
            and self.minimum > 0
            and self.maximum / self.minimum > ratio
        )


def summarise(values: Sequence[float]) -> Summary:
    """Summarise the values of a metric over the repeats of a cell.

    Raises ValueError for no values at all, and for a value that is not a finite number: both are
    errors of the caller, who then has nothing to store.
    """
    if not values:
        raise ValueError("No values to summarise.")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("A value is not a finite number.")
    log_mean, log_variance = _moments_of_logs(values)
    return Summary(
        n=len(values),
        median=statistics.median(values),
        minimum=min(values),
        maximum=max(values),
        mean=statistics.fmean(values),
        log_mean=log_mean,
        log_variance=log_variance,
    )


def _moments_of_logs(values: Sequence[float]) -> tuple[float | None, float | None]:
    if min(values) <= 0:
        return None, None
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return mean, None
    # Two passes: the one-pass formula loses its digits if the spread is small compared with the
    # mean, as on a quiet machine.
    return mean, math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
