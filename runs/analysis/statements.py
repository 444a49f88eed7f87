"""Many statements on two versions: which are slower, with a false discovery rate.

Each statement has one log ratio a round (both versions measured it in that round). Its mean is
judged by a moderated t-test (Smyth 2004, "Linear Models and Empirical Bayes Methods"): with few
rounds a statement's own variance is not known well, so it is drawn to that of all statements.

What slows a whole run, such as another program, slows all of its statements: of MANY statements
the median of a round is taken from each, unless it is proven that the versions differ in it
(`typical`).

Statements are called different by Benjamini and Hochberg (1995): of those that are called, no more
than RATE are expected to be none. Their intervals hold at that rate, too (Benjamini and Yekutieli
2005, "False Discovery Rate-Adjusted Multiple Confidence Intervals"). A statement that is not called
is *the same* where its 95 % interval lies within MARGIN, else undecided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy as sp

RATE = 0.05
# A smaller change is none: two builds of one release differ by as much.
MARGIN = 0.10
LEAST_ROUNDS = 3
# Of so many the median is hardly moved by those that differ.
MANY = 20

Word = Literal["faster", "slower", "same", "undecided"]


@dataclass(frozen=True)
class Judged:
    """Head by base: below 1 is faster. `p_value` is of the statement alone."""

    word: Word
    ratio: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Typical:
    """The typical statement: its log ratio in each round, and the ratio with its 95 % interval."""

    rounds: tuple[float, ...]
    ratio: float
    low: float
    high: float

    @property
    def is_proven(self) -> bool:
        """Whether the versions differ in it."""
        return self.low > 1 or self.high < 1


def typical(ratios: Mapping[int, Sequence[float]]) -> Typical | None:
    """The median of the statements of each round; None for fewer than MANY, or too few rounds."""
    number = max((len(values) for values in ratios.values()), default=0)
    whole_rows = [values for values in ratios.values() if len(values) == number]
    if number < LEAST_ROUNDS or len(whole_rows) < MANY:
        return None
    medians = np.median(np.array(whole_rows), axis=0)
    mean = float(np.mean(medians))
    error = float(np.std(medians, ddof=1)) / math.sqrt(number)
    width = float(sp.stats.t.isf(RATE / 2, number - 1)) * error
    rounds = tuple(float(value) for value in medians)
    return Typical(
        rounds, math.exp(mean), math.exp(mean - width), math.exp(mean + width)
    )


@dataclass(frozen=True)
class _Row:
    key: int
    mean: float
    variance: float
    rounds: int


def judge(ratios: Mapping[int, Sequence[float]]) -> dict[int, Judged]:
    """The answer of each statement, by its number, from its log ratios by round.

    A statement of fewer than LEAST_ROUNDS has none.
    """
    common = typical(ratios)
    rows = []
    for key, values in ratios.items():
        if len(values) < LEAST_ROUNDS:
            continue
        logs = np.array(values)
        if (
            common is not None
            and not common.is_proven
            and len(values) == len(common.rounds)
        ):
            logs = logs - np.array(common.rounds)
        rows.append(
            _Row(key, float(np.mean(logs)), float(np.var(logs, ddof=1)), len(values))
        )
    if not rows:
        return {}
    prior = _prior(rows)
    tested = {row.key: _tested(row, prior) for row in rows}
    called = _called({key: test.p_value for key, test in tested.items()})
    level_of_called = RATE * len(called) / len(rows)
    return {
        row.key: _judged(row, tested[row.key], row.key in called, level_of_called)
        for row in rows
    }


@dataclass(frozen=True)
class _Prior:
    """What is known of a variance beforehand: as much as `freedom` further rounds would say."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class _Test:
    error: float
    freedom: float
    p_value: float


def _prior(rows: Sequence[_Row]) -> _Prior:
    """By the moments of the logs of the variances (Smyth 2004, section 6.2)."""
    rows_with_variance = [row for row in rows if row.variance > 0]
    if len(rows_with_variance) < 3:
        return _Prior(0.0, 0.0)
    freedoms = np.array([row.rounds - 1 for row in rows_with_variance], dtype=float)
    logs = np.log([row.variance for row in rows_with_variance])
    shifted = logs - sp.special.digamma(freedoms / 2) + np.log(freedoms / 2)
    mean = float(np.mean(shifted))
    spread = float(
        np.var(shifted, ddof=1) - np.mean(sp.special.polygamma(1, freedoms / 2))
    )
    if spread <= 0:
        # The statements scatter alike: all that is known of one is known of each.
        return _Prior(math.exp(mean), math.inf)
    freedom = 2 * _inverse_trigamma(spread)
    return _Prior(
        math.exp(mean + sp.special.digamma(freedom / 2) - math.log(freedom / 2)),
        float(freedom),
    )


def _inverse_trigamma(value: float) -> float:
    """By Newton's method, as in Smyth's appendix."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    guess = 0.5 + 1 / value
    for _step in range(50):
        trigamma = float(sp.special.polygamma(1, guess))
        change = (
            trigamma * (1 - trigamma / value) / float(sp.special.polygamma(2, guess))
        )
        guess += change
        if -change / guess < 1e-8:
            break
    return guess


def _tested(row: _Row, prior: _Prior) -> _Test:
    own_freedom = row.rounds - 1
    if math.isinf(prior.freedom):
        variance, freedom = prior.variance, 1e6
    else:
        freedom = own_freedom + prior.freedom
        variance = (
            own_freedom * row.variance + prior.freedom * prior.variance
        ) / freedom
    error = math.sqrt(max(variance, 1e-12) / row.rounds)
    p_value = float(2 * sp.stats.t.sf(abs(row.mean) / error, freedom))
    return _Test(error, freedom, p_value)


def _called(p_values: Mapping[int, float]) -> set[int]:
    """The statements that are called at RATE."""
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    number = 0
    for place, (_key, p_value) in enumerate(ordered, start=1):
        if p_value <= RATE * place / len(ordered):
            number = place
    return {key for key, _p_value in ordered[:number]}


def _judged(row: _Row, test: _Test, is_called: bool, level_of_called: float) -> Judged:
    level = level_of_called if is_called else RATE
    width = float(sp.stats.t.isf(level / 2, test.freedom)) * test.error
    low, high = row.mean - width, row.mean + width
    word = _word(low, high, is_called=is_called)
    return Judged(word, math.exp(row.mean), math.exp(low), math.exp(high), test.p_value)


def _word(low: float, high: float, *, is_called: bool) -> Word:
    margin = math.log1p(MARGIN)
    if -margin <= low and high <= margin:
        return "same"
    if not is_called:
        return "undecided"
    return "slower" if low > 0 else "faster"


@dataclass(frozen=True)
class Whole:
    """The load as a whole, head by base, with its 95 % interval; None with too few rounds."""

    word: Word
    ratio: float
    low: float
    high: float


def whole(ratios: Sequence[float]) -> Whole | None:
    """The load at its weights, from its log ratios by round: Student's t."""
    if len(ratios) < LEAST_ROUNDS:
        return None
    mean = float(np.mean(ratios))
    error = float(np.std(ratios, ddof=1)) / math.sqrt(len(ratios))
    width = float(sp.stats.t.isf(RATE / 2, len(ratios) - 1)) * error
    low, high = mean - width, mean + width
    word: Word = "slower" if low > 0 else "faster"
    if low <= 0 <= high:
        # Of one figure also a small difference is one: its size stands beside it.
        word = _word(low, high, is_called=False)
    return Whole(word, math.exp(mean), math.exp(low), math.exp(high))
