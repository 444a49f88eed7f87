"""From a model and pairs of cells to answers.

Counts of events (failed transactions, retries, deadlocks) are compared as counts: given the events
of both sides together, those of the head are binomial (the exact test of two Poisson rates). If
runs of one cell differ by more than a Poisson distribution explains, events come in bursts, and as
many events as a burst has count as one.

Values of which some are nothing have no logarithm, and are compared as they are. What was nothing
in all runs of one side and something in all of the other has changed, though no ratio says by how
much. Else Welch's test compares the means.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy as sp

from runs.analysis.inference.cells import Cell, Pair
from runs.analysis.inference.model import Contrasts, Model
from runs.analysis.inference.verdicts import (
    MINIMUM_EFFECT,
    SIGNIFICANCE,
    Direction,
    Inference,
    Reason,
    Rule,
    adjust_for_table,
    rounds_missing,
    shown_by_more,
)


def judge_counts(
    cells: Sequence[Cell], pairs: Sequence[Pair], rule: Rule, tables: float
) -> list[Inference]:
    """Judge pairs of cells by their `counted`; `tables` turns a p-value into that of the table."""
    burst = _burst(cells)
    return [_judged(cells, pair, burst, rule, tables) for pair in pairs]


@dataclass(frozen=True)
class _Burst:
    """How many events count as one, at least 1, and with how many degrees of freedom that is known.

    These are infinite where events do not come in bursts.
    """

    size: float = 1.0
    freedom: float = math.inf

    def level(self, level: float) -> float:
        """The level of a known dispersion at which the interval holds though it is estimated.

        That of the F quantile with 1 and `freedom` degrees in place of the chi-squared one.
        """
        if math.isinf(self.freedom):
            return level
        limit = -float(sp.special.stdtrit(self.freedom, level / 2))
        return 2 * float(sp.special.ndtr(-limit))

    def p_value(self, p_value: float) -> float:
        """The same of a p-value."""
        if math.isinf(self.freedom):
            return p_value
        distance = float(sp.special.ndtri(max(p_value, 1e-300) / 2))
        return 2 * float(sp.special.stdtr(self.freedom, distance))


def _burst(cells: Sequence[Cell]) -> _Burst:
    """Pearson's dispersion, pooled over the cells."""
    squares = freedom = 0.0
    for cell in cells:
        mean = math.fsum(cell.counted) / len(cell.counted) if cell.counted else 0.0
        if mean > 0 and len(cell.counted) > 1:
            squares += math.fsum((count - mean) ** 2 for count in cell.counted) / mean
            freedom += len(cell.counted) - 1
    return _Burst(squares / freedom, freedom) if squares > freedom else _Burst()


def _judged(
    cells: Sequence[Cell], pair: Pair, burst: _Burst, rule: Rule, tables: float
) -> Inference:
    if pair.base is None or pair.head is None:
        return Inference("not_comparable", reasons=("not_measured",))
    base, head = cells[pair.base].counted, cells[pair.head].counted
    if not base or not head:
        return Inference("not_comparable", reasons=("not_measured",))
    of_base, of_head = math.fsum(base), math.fsum(head)
    means = (of_base / len(base), of_head / len(head))
    if of_base == of_head == 0:
        return Inference("same", base_value=0.0, head_value=0.0)
    ratio = means[1] / means[0] if means[0] > 0 else None
    if min(len(base), len(head)) < 2:
        are_repeats_known = all(
            cells[position].repeats_known for position in (pair.base, pair.head)
        )
        why: Reason = "single_run" if are_repeats_known else "repeats_unknown"
        return Inference(
            "too_few_runs",
            ratio,
            base_value=means[0],
            head_value=means[1],
            reasons=(why,),
        )
    low, high, p_value = _exact(
        of_base / burst.size,
        of_head / burst.size,
        len(base),
        len(head),
        burst.level(rule.level),
    )
    p_value = burst.p_value(p_value)
    verdict = rule.word(low, high)
    missing, shows = None, None
    if verdict == "undecided" and ratio:
        width = max(
            high if math.isfinite(high) else 0.0, -low if math.isfinite(low) else 0.0
        )
        runs = (len(base) + len(head)) / 2
        missing = rounds_missing(math.log(ratio), width, runs, rule.effect)
        shows = shown_by_more(width, runs)
    return Inference(
        verdict,
        ratio,
        math.exp(low),
        math.exp(high) if math.isfinite(high) else None,
        means[0],
        means[1],
        p_value,
        adjust_for_table(p_value, tables),
        more_rounds=missing,
        more_shows=shows,
    )


def _exact(
    base: float, head: float, of_base: int, of_head: int, level: float
) -> tuple[float, float, float]:
    """(low, high) of the log ratio of the rates, and the two-sided p-value of no difference."""
    exposure = math.log(of_base / of_head)
    low, high = -math.inf, math.inf
    if head > 0:
        low = _logit(float(sp.special.betaincinv(head, base + 1, level / 2))) + exposure
    if base > 0:
        high = (
            _logit(float(sp.special.betaincinv(head + 1, base, 1 - level / 2)))
            + exposure
        )
    share = of_head / (of_base + of_head)
    upper = float(sp.special.betainc(head, base + 1, share)) if head > 0 else 1.0
    lower = 1 - float(sp.special.betainc(head + 1, base, share)) if base > 0 else 1.0
    return low, high, min(1.0, 2 * min(upper, lower))


def _logit(share: float) -> float:
    if share <= 0:
        return -math.inf
    return math.inf if share >= 1 else math.log(share) - math.log1p(-share)


# The least ratio of values of which some are nothing.
LEAST = 1e-9


def judge_zeros(base: Sequence[float], head: Sequence[float], rule: Rule) -> Inference:
    """Judge values of at least 0 of both sides."""
    means = statistics.fmean(base), statistics.fmean(head)
    ratio = means[1] / means[0] if means[0] else None
    inference = Inference("same", ratio, base_value=means[0], head_value=means[1])
    if not any(means):
        return inference
    if min(len(base), len(head)) < 2:
        return replace(inference, verdict="too_few_runs", reasons=("single_run",))
    if not all(means):
        far = math.inf if means[1] else -math.inf
        is_proven = all(base) or all(head)
        return replace(
            inference, verdict=rule.word(far, far) if is_proven else "undecided"
        )
    difference, width, p_value = _welch(base, head, rule.level)
    ends = (difference - width, difference + width)
    low, high = (max(1 + end / means[0], LEAST) for end in ends)
    verdict = rule.word(math.log(low), math.log(high))
    missing, shows = None, None
    if verdict == "undecided":
        runs = 2 / (1 / len(base) + 1 / len(head))
        missing = rounds_missing(
            difference / means[0], width / means[0], runs, rule.effect
        )
        shows = shown_by_more(width / means[0], runs)
    return replace(
        inference,
        verdict=verdict,
        low=low,
        high=high,
        p_value=p_value,
        adjusted_p_value=adjust_for_table(p_value, rule.tables),
        more_rounds=missing,
        more_shows=shows,
    )


def _welch(
    base: Sequence[float], head: Sequence[float], level: float
) -> tuple[float, float, float]:
    """(difference of the means, half the width of its interval, p-value)."""
    variance_parts = [
        (statistics.variance(side) / len(side), len(side) - 1) for side in (base, head)
    ]
    variance = sum(variance for variance, _freedom in variance_parts)
    difference = statistics.fmean(head) - statistics.fmean(base)
    if not variance:
        return difference, 0.0, 0.0 if difference else 1.0
    freedom = variance**2 / sum(
        variance**2 / part_freedom for variance, part_freedom in variance_parts
    )
    error = math.sqrt(variance)
    p_value = 2 * float(sp.special.stdtr(freedom, -abs(difference) / error))
    return difference, -float(sp.special.stdtrit(freedom, level / 2)) * error, p_value


# Beyond e to this power a ratio is useless, and not a float.
LARGEST_LOG = 300.0


def judge(
    model: Model,
    pairs: Sequence[Pair],
    *,
    direction: Direction,
    effect: float = MINIMUM_EFFECT,
    family: Sequence[Pair] | None = None,
    significance: float = SIGNIFICANCE,
    other_metrics: int = 1,
    as_counts: bool = False,
) -> list[Inference]:
    """Answer for each pair, in their order.

    All rows hold together with 1 - `significance`: those requested, and those of `family` (the
    table that the campaign itself shows), whichever is stricter, so that a pair has the same answer
    in a smaller table. `other_metrics` is the number of further metrics that share a family.
    `effect` is the minimum effect (0.03 is 3 %), the same in both directions.
    """
    significance /= max(other_metrics, 1)
    if as_counts:
        level = significance / max(len(family or pairs), len(pairs), 1)
        tables = math.log1p(-significance) / math.log1p(-level)
        rule = Rule(direction, effect, level)
        return judge_counts(model.cells, pairs, rule, tables * max(other_metrics, 1))
    model = model.adapt_to_table(family or pairs)
    level = model.level(pairs, significance)
    if family and family != pairs:
        level = min(level, model.level(family, significance))
    rule = Rule(direction, effect, level)
    of_zeros = replace(
        rule, level=min(level, significance / max(len(family or pairs), 1))
    )
    without = [_compare_without_logs(model, pair, of_zeros) for pair in pairs]
    tested = [pair for pair, inference in zip(pairs, without) if inference is None]
    inferences: Iterator[Inference] = iter(())
    if tested:
        contrasts = model.contrasts(tested)
        inferences = iter(judged(model, tested, contrasts, rule))
        if model.is_unlike:
            inferences = (
                replace(inference, error_table="unlike") for inference in inferences
            )
    return [
        next(inferences) if inference is None else inference for inference in without
    ]


def _compare_without_logs(model: Model, pair: Pair, rule: Rule) -> Inference | None:
    """The answer for a pair that has no logs; None for the others."""
    if pair.base is None or pair.head is None:
        return Inference("not_comparable", reasons=("not_measured",))
    base, head = model.cells[pair.base], model.cells[pair.head]
    if base.mean is not None and head.mean is not None:
        return None
    values = base.values, head.values
    if not all(values) or min(map(min, values)) < 0:
        return Inference("not_comparable", reasons=("not_positive",))
    return judge_zeros(*values, rule)


def judged(
    model: Model, pairs: Sequence[Pair], contrasts: Contrasts, rule: Rule
) -> list[Inference]:
    """The answers of contrasts, one a pair."""
    freedom = np.maximum(contrasts.freedom, 0.5)
    widths = -sp.special.stdtrit(freedom, rule.level / 2) * contrasts.errors
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(
            contrasts.errors > 0,
            np.abs(contrasts.differences) / contrasts.errors,
            np.inf,
        )
    distances[(contrasts.errors == 0) & (contrasts.differences == 0)] = 0.0
    p_values = 2 * sp.special.stdtr(freedom, -distances)
    adjusted = -np.expm1(rule.tables * np.log1p(-np.minimum(p_values, 1 - 1e-16)))
    figures = (
        contrasts.differences,
        contrasts.bases,
        contrasts.heads,
        widths,
        p_values,
        adjusted,
        contrasts.errors,
        contrasts.freedom,
    )
    return [
        _answer(model, pair, rule, _Figures(*row))
        for pair, *row in zip(pairs, *(column.tolist() for column in figures))
    ]


class _Figures(NamedTuple):
    """What is computed of one pair: logs, but for the probabilities and the freedom."""

    difference: float
    base: float
    head: float
    width: float
    p_value: float
    adjusted: float
    error: float
    freedom: float


def _answer(model: Model, pair: Pair, rule: Rule, figures: _Figures) -> Inference:
    ratio = _exp(figures.difference)
    values = (_exp(figures.base), _exp(figures.head))
    if not model.is_tested(pair):
        reasons = _explain_missing_interval(model, pair)
        return Inference(
            "too_few_runs",
            ratio,
            base_value=values[0],
            head_value=values[1],
            reasons=reasons,
        )
    low, high = figures.difference - figures.width, figures.difference + figures.width
    verdict = rule.word(low, high)
    missing, shows = None, None
    if verdict == "undecided":
        runs = _runs(model, pair)
        missing = rounds_missing(figures.difference, figures.width, runs, rule.effect)
        shows = shown_by_more(figures.width, runs)
    return Inference(
        verdict=verdict,
        ratio=ratio,
        low=_exp(low),
        high=_exp(high),
        base_value=values[0],
        head_value=values[1],
        p_value=figures.p_value,
        adjusted_p_value=figures.adjusted,
        log_error=figures.error,
        freedom=figures.freedom,
        more_rounds=missing,
        more_shows=shows,
    )


def _runs(model: Model, pair: Pair) -> float:
    """Runs per side, as their harmonic mean."""
    return 2 / sum(1 / side.n for side in _sides(model, pair))


def _sides(model: Model, pair: Pair) -> list[Cell]:
    return [model.cells[cells] for cells in (pair.base, pair.head) if cells is not None]


def _explain_missing_interval(model: Model, pair: Pair) -> tuple[Reason, ...]:
    """A published median of three runs is not a single run: its spread was just not printed."""
    sides = _sides(model, pair)
    if len(sides) == 2 and sides[0].needs_rounds(sides[1]):
        return ("no_shared_rounds",)
    unspread = [
        side.n for side in sides if side.variance is None and side.repeats_known
    ]
    codes: list[Reason] = []
    if any(n < 2 for n in unspread):
        codes.append("single_run")
    if not all(side.repeats_known for side in sides):
        codes.append("repeats_unknown")
    if any(n >= 2 for n in unspread):
        codes.append("spread_unknown")
    return tuple(codes)


def _exp(log: float) -> float:
    return math.exp(min(max(log, -LARGEST_LOG), LARGEST_LOG))
