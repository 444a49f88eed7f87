"""Hodges and Lehmann's estimate of the ratio: the median of all pairs, head / base.

It belongs to Mann and Whitney's test as the difference of means belongs to Student's. The formulas
are in docs/statistics.md.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from runs.analysis.mann_whitney import EXACT_UP_TO, arrangements

SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class HodgesLehmann:
    """The ratio head / base by pairs. `low` and `high` are None where no 95 % interval exists.

    None exists where the most lopsided of all arrangements is not rare enough: with three runs
    against three (or four) every interval covers less than 95 %.
    """

    ratio: float
    low: float | None = None
    high: float | None = None


def estimate(base: Sequence[float], head: Sequence[float]) -> HodgesLehmann | None:
    """Estimate the ratio from the repeats of two cells; None where a value is not positive.

    The interval is the one of L. E. Moses (M. Hollander, D. A. Wolfe, "Nonparametric Statistical
    Methods", section 4.3), on logs: it covers at least 95 %. Raises ValueError for an empty side.
    """
    if not base or not head:
        raise ValueError("No values to compare.")
    if min(*base, *head) <= 0:
        return None
    differences = sorted(math.log(after) - math.log(before) for before in base for after in head)
    ratio = math.exp(statistics.median(differences))
    cut = _cut(len(base), len(head))
    if cut == 0:
        return HodgesLehmann(ratio)
    return HodgesLehmann(ratio, math.exp(differences[cut - 1]), math.exp(differences[-cut]))


def _cut(base: int, head: int) -> int:
    """The place of the interval's ends, counted from both ends of the sorted differences; 0: none.

    The greatest C with P(U <= C - 1) <= 2.5 %, U being Mann and Whitney's count without ties.
    """
    if base + head > EXACT_UP_TO:
        spread = math.sqrt(base * head * (base + head + 1) / 12)
        quantile = statistics.NormalDist().inv_cdf(1 - SIGNIFICANCE / 2)
        return max(0, math.floor(base * head / 2 - quantile * spread))
    ways = arrangements(tuple(range(2, 2 * (base + head) + 1, 2)), base)
    lowest = base * (base + 1)  # the doubled rank sum at U = 0; each step of U adds two
    allowed = SIGNIFICANCE / 2 * math.comb(base + head, base)
    cut, tail = 0, ways[lowest]
    while tail <= allowed:
        cut += 1
        tail += ways[lowest + 2 * cut]
    return cut
