"""What the repeats of one cell say about a metric, in a handful of numbers."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """The repeats of a cell, in the metric's own unit.

    `log_mean` and `log_variance` are those of the natural logarithms: the mean is null where a
    value is not positive, the sample variance (n - 1) also where n < 2. `n` is None where a
    publication does not print how many repeats its value stands for.
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

    Raises ValueError for no values at all, and for a value that is not a finite number: both
    are faults of the caller, who has nothing to store then.
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
    # Two passes: the one-pass formula loses its digits where the spread is small beside the mean,
    # which is what a quiet machine gives.
    return mean, math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
