"""Two cells side by side: a ratio, its interval, and a verdict in one word.

The formulas, and why they are these, are in docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from runs.analysis.summary import Summary

Direction = Literal["higher", "lower", "neutral"]
Verdict = Literal["faster", "slower", "different", "no_evidence", "too_few_runs", "not_comparable"]

SIGNIFICANCE = 0.05
MINIMUM_EFFECT = 0.03


@dataclass(frozen=True)
class Comparison:
    """Head against base.

    `ratio` is that of the geometric means, head / base; `low` and `high` are its 95 % interval.
    `p_value` is Welch's, `adjusted_p_value` Holm's over the table (None outside of one). The
    interval and the p-values are None where a side has fewer than two runs; everything is None
    where a value was not positive, as it has no logarithm then.

    `different` stands in place of faster and slower for a metric of which neither end is better.
    """

    verdict: Verdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    adjusted_p_value: float | None = None


@dataclass(frozen=True)
class _Welch:
    """Welch's test on logs: standard error and degrees of freedom of the difference."""

    difference: float
    error: float
    freedom: float


def compare(
    base: Summary,
    head: Summary,
    *,
    direction: Direction,
    minimum_effect: float = MINIMUM_EFFECT,
) -> Comparison:
    """Compare the repeats of two cells.

    A verdict needs both: an interval that excludes 1, and an effect of at least
    `minimum_effect` (0.03 is 3 %), counted alike in both directions: ratio >= 1.03 or <= 1/1.03.
    """
    if base.log_mean is None or head.log_mean is None:
        return Comparison(verdict="not_comparable")
    difference = head.log_mean - base.log_mean
    if base.log_variance is None or head.log_variance is None:
        return Comparison(verdict="too_few_runs", ratio=math.exp(difference))
    welch = _welch(
        difference, (base.log_variance / base.n, base.n), (head.log_variance / head.n, head.n)
    )
    margin, p_value = _margin(welch), _p_value(welch)
    is_proven = p_value < SIGNIFICANCE and abs(difference) >= math.log1p(minimum_effect)
    return Comparison(
        verdict=_better_or_worse(difference, direction) if is_proven else "no_evidence",
        ratio=math.exp(difference),
        low=math.exp(difference - margin),
        high=math.exp(difference + margin),
        p_value=p_value,
    )


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The rows of one table, with Holm's p-values; a verdict that they do not carry is withdrawn.

    Of twenty comparisons of the same thing with itself, one is "significant" by chance; a table
    must not call that one different.
    """
    adjusted = holm([comparison.p_value for comparison in comparisons])
    return [
        _with_adjusted(comparison, p_value)
        for comparison, p_value in zip(comparisons, adjusted, strict=True)
    ]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, in the order given. A None is no test, and stays None."""
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p_value, index) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p_value))
        adjusted[index] = largest
    return adjusted


def _with_adjusted(comparison: Comparison, p_value: float | None) -> Comparison:
    is_withdrawn = (
        comparison.verdict in ("faster", "slower", "different")
        and p_value is not None
        and p_value >= SIGNIFICANCE
    )
    return replace(
        comparison,
        adjusted_p_value=p_value,
        verdict="no_evidence" if is_withdrawn else comparison.verdict,
    )


def _better_or_worse(difference: float, direction: Direction) -> Verdict:
    if direction == "neutral":
        return "different"
    return "faster" if (difference > 0) == (direction == "higher") else "slower"


def _welch(difference: float, base: tuple[float, int], head: tuple[float, int]) -> _Welch:
    """Combine (variance of the mean, n) of both sides by Welch and Satterthwaite."""
    total = base[0] + head[0]
    if total == 0:
        return _Welch(difference, 0.0, math.inf)
    # Shares of the total instead of squares of variances: those underflow for a quiet machine.
    freedom = 1 / sum((part / total) ** 2 / (n - 1) for part, n in (base, head))
    return _Welch(difference, math.sqrt(total), freedom)


def _margin(welch: _Welch) -> float:
    """Half the width of the 95 % interval, on logs."""
    if welch.error == 0:
        return 0.0
    from scipy.special import stdtrit  # noqa: PLC0415 (a third of a second, for pages that compare)

    return float(stdtrit(welch.freedom, 1 - SIGNIFICANCE / 2)) * welch.error


def _p_value(welch: _Welch) -> float:
    """The two-sided p-value of no difference. No spread at all leaves nothing to doubt."""
    if welch.error == 0:
        return 1.0 if welch.difference == 0 else 0.0
    from scipy.special import stdtr  # noqa: PLC0415 (as above)

    return float(2 * stdtr(welch.freedom, -abs(welch.difference) / welch.error))
