"""Contrasts: products of cells' means with powers, such as a ratio of two ratios."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.inference.verdicts import MINIMUM_EFFECT
from runs.analysis.summary import Summary
from runs.analysis.trend import margin


@dataclass(frozen=True)
class Contrast:
    """A product of geometric means, and its interval; null where repeats are too few."""

    ratio: float
    low: float | None = None
    high: float | None = None

    @property
    def is_apart(self) -> bool:
        """Whether the interval excludes 1."""
        return (
            self.low is not None
            and self.high is not None
            and not self.low <= 1 <= self.high
        )

    @property
    def is_same(self) -> bool:
        """Whether the interval lies within the minimum effect, both ways: not apart is not same."""
        if self.low is None or self.high is None:
            return False
        return self.low >= 1 / (1 + MINIMUM_EFFECT) and self.high <= 1 + MINIMUM_EFFECT


def contrast(
    weighted: Iterable[tuple[float, Summary]], *, significance: float = SIGNIFICANCE
) -> Contrast | None:
    """The product of each mean to the power of its weight; None if a mean has no logarithm.

    The interval is that of the repeats alone, by Welch and Satterthwaite: what makes all repeats of
    one day differ from those of another is in the ratio and not in the interval.
    """
    logs: list[float] = []
    errors: list[tuple[float, float]] = []
    is_known = True
    for weight, summary in weighted:
        if summary.log_mean is None:
            return None
        logs.append(weight * summary.log_mean)
        if summary.log_variance is None or not summary.n or summary.n < 2:
            is_known = False
        else:
            errors.append((weight**2 * summary.log_variance / summary.n, summary.n - 1))
    if not logs:
        return None
    log = math.fsum(logs)
    if not is_known:
        return Contrast(math.exp(log))
    half = margin(errors, significance=significance)
    return Contrast(math.exp(log), math.exp(log - half), math.exp(log + half))
