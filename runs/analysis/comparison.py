"""Two cells side by side: a ratio, its interval, and a verdict in one word.

The formulas, and why they are these, are in docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from runs.analysis import hodges_lehmann, mann_whitney
from runs.analysis.conditions import Difference, Differing, Judgement, Unknown
from runs.analysis.hodges_lehmann import HodgesLehmann
from runs.analysis.summary import Summary

Direction = Literal["higher", "lower", "neutral"]
Verdict = Literal["faster", "slower", "different", "no_evidence", "too_few_runs", "not_comparable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

Reason = Literal[Difference, "not_positive", "not_measured", "single_run", "spread_unknown"]

COMPARABLE = Judgement()
SIGNIFICANCE = 0.05
MINIMUM_EFFECT = 0.03


@dataclass(frozen=True)
class Comparison:
    """Head against base.

    `ratio` is that of the geometric means, head / base; `low` and `high` are its 95 % interval.
    `p_value` is Welch's, `adjusted_p_value` Holm's over the table (None outside of one). The
    interval, its `log_error` (the standard error of ln ratio) with its degrees of `freedom`, and
    the p-values are None where a side has fewer than two runs or tells no spread; everything is
    None where the two are not comparable.

    `mann_whitney_p` and `hodges_lehmann` are there where the values themselves were given: a
    second opinion by ranks, which the verdict does not use.

    `different` stands in place of faster and slower for a metric of which neither end is better.
    `reasons` say why a verdict is `not_comparable` or `too_few_runs`; `despite` says what differs
    between the sides, or is not known of them, although they were compared. `differing` are the
    facts behind both.
    """

    verdict: Verdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    adjusted_p_value: float | None = None
    log_error: float | None = None
    freedom: float | None = None
    mann_whitney_p: float | None = None
    hodges_lehmann: HodgesLehmann | None = None
    reasons: tuple[Reason, ...] = ()
    despite: tuple[Difference | Unknown, ...] = ()
    differing: tuple[Differing, ...] = ()


@dataclass(frozen=True)
class _Welch:
    """Welch's test on logs: standard error and degrees of freedom of the difference."""

    difference: float
    error: float
    freedom: float


def compare(
    base: Summary | None,
    head: Summary | None,
    *,
    direction: Direction,
    minimum_effect: float = MINIMUM_EFFECT,
    values: tuple[Sequence[float], Sequence[float]] | None = None,
    judgement: Judgement = COMPARABLE,
) -> Comparison:
    """Compare the repeats of two cells; None is a cell that was not measured.

    A verdict needs both: an interval that excludes 1, and an effect of at least
    `minimum_effect` (0.03 is 3 %), counted alike in both directions: ratio >= 1.03 or <= 1/1.03.

    `values` are those behind the summaries of (base, head), for the second opinion by ranks.
    `judgement` says whether the conditions of the two let them be compared. Raises ValueError
    where `values` are not as many as the summaries count.
    """
    reasons = (*judgement.reasons, *_without_ratio(base, head))
    if reasons or base is None or head is None or base.log_mean is None or head.log_mean is None:
        return Comparison(
            "not_comparable",
            reasons=reasons,
            despite=judgement.despite,
            differing=judgement.differing,
        )
    comparison = _by_welch(base, head, head.log_mean - base.log_mean, direction, minimum_effect)
    comparison = replace(comparison, despite=judgement.despite, differing=judgement.differing)
    if values is None:
        return comparison
    if (len(values[0]), len(values[1])) != (base.n, head.n):
        raise ValueError("The values are not those that were summarised.")
    return replace(
        comparison,
        mann_whitney_p=mann_whitney.p_value(*values),
        hodges_lehmann=hodges_lehmann.estimate(*values),
    )


def _without_ratio(base: Summary | None, head: Summary | None) -> tuple[Reason, ...]:
    if base is None or head is None:
        return ("not_measured",)
    return ("not_positive",) if base.log_mean is None or head.log_mean is None else ()


def _by_welch(
    base: Summary, head: Summary, difference: float, direction: Direction, minimum_effect: float
) -> Comparison:
    if base.log_variance is None or head.log_variance is None:
        return Comparison(
            "too_few_runs", ratio=math.exp(difference), reasons=_without_interval(base, head)
        )
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
        log_error=welch.error,
        freedom=welch.freedom,
    )


def _without_interval(base: Summary, head: Summary) -> tuple[Reason, ...]:
    """A published median of three runs is not a single run: its spread was just not printed."""
    unspread = [side.n for side in (base, head) if side.log_variance is None]
    codes: list[Reason] = []
    if min(unspread) < 2:
        codes.append("single_run")
    if max(unspread) >= 2:
        codes.append("spread_unknown")
    return tuple(codes)


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
