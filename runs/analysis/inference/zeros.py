"""Values of which some are nothing: they have no logarithm, and are compared as they are.

What was nothing in all runs of one side and something in all runs of the other has changed, though
no ratio says by how much. Else Welch's test compares the means.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import scipy as sp

from runs.analysis.inference.verdicts import (
    Direction,
    Inference,
    of_table,
    rounds_missing,
    word,
)

LEAST = 1e-9


def judge_zeros(
    base: Sequence[float],
    head: Sequence[float],
    *,
    direction: Direction,
    effect: float,
    level: float,
    tables: float,
) -> Inference:
    """Judge values of at least 0 of both sides; `level` and `tables` as for counts."""
    means = statistics.fmean(base), statistics.fmean(head)
    ratio = means[1] / means[0] if means[0] else None
    known = Inference("same", ratio, base_value=means[0], head_value=means[1])
    if not any(means):
        return known
    if min(len(base), len(head)) < 2:
        return replace(known, verdict="too_few_runs", reasons=("single_run",))
    if not all(means):
        far = math.inf if means[1] else -math.inf
        is_proven = all(base) or all(head)
        found = word(far, far, direction=direction, effect=effect)
        return replace(known, verdict=found if is_proven else "undecided")
    difference, width, p_value = _welch(base, head, level)
    ends = (difference - width, difference + width)
    low, high = (max(1 + end / means[0], LEAST) for end in ends)
    verdict = word(math.log(low), math.log(high), direction=direction, effect=effect)
    missing = None
    if verdict == "undecided":
        runs = 2 / (1 / len(base) + 1 / len(head))
        missing = rounds_missing(difference / means[0], width / means[0], runs, effect)
    return replace(
        known,
        verdict=verdict,
        low=low,
        high=high,
        p_value=p_value,
        adjusted_p_value=of_table(p_value, tables),
        more_rounds=missing,
    )


def _welch(
    base: Sequence[float], head: Sequence[float], level: float
) -> tuple[float, float, float]:
    """(difference of the means, half the width of its interval, p-value)."""
    parts = [(statistics.variance(side) / len(side), len(side) - 1) for side in (base, head)]
    variance = sum(part for part, _freedom in parts)
    difference = statistics.fmean(head) - statistics.fmean(base)
    if not variance:
        return difference, 0.0, 0.0 if difference else 1.0
    freedom = variance**2 / sum(part**2 / own for part, own in parts)
    error = math.sqrt(variance)
    p_value = 2 * float(sp.special.stdtr(freedom, -abs(difference) / error))
    return difference, -float(sp.special.stdtrit(freedom, level / 2)) * error, p_value
