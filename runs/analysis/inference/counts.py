"""Counts of events (failed transactions, retries, deadlocks), compared as counts.

Given the events of both sides together, those of the head are binomial (the exact test of two
Poisson rates). If runs of one cell differ by more than a Poisson distribution explains, events come
in bursts, and as many events as a burst has count as one.
"""

import math
from collections.abc import Sequence

import numpy as np

from runs.analysis.inference.cells import Cell, Pair
from runs.analysis.inference.verdicts import Direction, Inference, Reason, rounds_missing, word


def judge_counts(
    cells: Sequence[Cell],
    pairs: Sequence[Pair],
    *,
    direction: Direction,
    effect: float,
    level: float,
    tables: float,
) -> list[Inference]:
    """Judge pairs of cells by their `counted`; `level` is that of each row.

    `tables` turns a row's p-value into that of the table, as the kernel does.
    """
    burst = _burst(cells)
    return [_judged(cells, pair, burst, direction, effect, level, tables) for pair in pairs]


def _burst(cells: Sequence[Cell]) -> float:
    """How many events count as one, at least 1: Pearson's dispersion, pooled over the cells."""
    squares = freedom = 0.0
    for cell in cells:
        mean = math.fsum(cell.counted) / len(cell.counted) if cell.counted else 0.0
        if mean > 0 and len(cell.counted) > 1:
            squares += math.fsum((each - mean) ** 2 for each in cell.counted) / mean
            freedom += len(cell.counted) - 1
    return max(1.0, squares / freedom) if freedom else 1.0


def _judged(
    cells: Sequence[Cell],
    pair: Pair,
    burst: float,
    direction: Direction,
    effect: float,
    level: float,
    tables: float,
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
        known = all(cells[place].repeats_known for place in (pair.base, pair.head))
        why: Reason = "single_run" if known else "repeats_unknown"
        return Inference(
            "too_few_runs", ratio, base_value=means[0], head_value=means[1], reasons=(why,)
        )
    low, high, p_value = _exact(of_base / burst, of_head / burst, len(base), len(head), level)
    verdict = word(low, high, direction=direction, effect=effect)
    missing = None
    if verdict == "undecided" and ratio:
        width = max(high if math.isfinite(high) else 0.0, -low if math.isfinite(low) else 0.0)
        missing = rounds_missing(math.log(ratio), width, (len(base) + len(head)) / 2, effect)
    return Inference(
        verdict,
        ratio,
        math.exp(low),
        math.exp(high) if math.isfinite(high) else None,
        means[0],
        means[1],
        p_value,
        _of_table(p_value, tables),
        more_rounds=missing,
    )


def _exact(
    base: float, head: float, of_base: int, of_head: int, level: float
) -> tuple[float, float, float]:
    """(low, high) of the log ratio of the rates, and the two-sided p-value of no difference."""
    from scipy.special import betainc, betaincinv  # noqa: PLC0415 (slow to import)

    exposure = math.log(of_base / of_head)
    low, high = -math.inf, math.inf
    if head > 0:
        low = _logit(float(betaincinv(head, base + 1, level / 2))) + exposure
    if base > 0:
        high = _logit(float(betaincinv(head + 1, base, 1 - level / 2))) + exposure
    share = of_head / (of_base + of_head)
    upper = float(betainc(head, base + 1, share)) if head > 0 else 1.0
    lower = 1 - float(betainc(head + 1, base, share)) if base > 0 else 1.0
    return low, high, min(1.0, 2 * min(upper, lower))


def _logit(share: float) -> float:
    if share <= 0:
        return -math.inf
    return math.inf if share >= 1 else math.log(share) - math.log1p(-share)


def _of_table(p_value: float, tables: float) -> float:
    return float(-np.expm1(tables * np.log1p(-min(p_value, 1 - 1e-16))))
