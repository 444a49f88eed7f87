"""Summarises the repeats of one cell for a metric in a handful of numbers.

No repeat is left out: dropping runs because one does not like them makes benchmarks dishonest. The
median in charts does not move for one of them, and the interval of a comparison widens as it
should.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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
