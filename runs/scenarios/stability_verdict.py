"""Whether throughput is stable over a long run: its trend, its deepest dip, its variation."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# A dip is that of an interval, not of a single second: a minute, or a twentieth of a short run.
LONGEST_INTERVAL_S = 60
INTERVALS_AT_LEAST = 20


@dataclass(frozen=True)
class Verdict:
    """In percent: `trend` compares the last tenth of the run with its second tenth.

    `dip` compares the lowest interval, which starts at `dip_at_s`, with the median; `variation` is
    the standard deviation of the intervals relative to their mean. Intervals are of `interval_s`
    seconds.
    """

    trend: float
    dip: float
    dip_at_s: int
    variation: float
    interval_s: int


def judge(tps: Sequence[float | None]) -> Verdict | None:
    """The verdict for one value per second; None if there are too few."""
    interval = max(1, min(LONGEST_INTERVAL_S, len(tps) // INTERVALS_AT_LEAST))
    means = _means(tps, interval)
    if len(means) < INTERVALS_AT_LEAST // 2:
        return None
    tenth = max(1, len(means) // 10)
    early, late = _mean(means[tenth : 2 * tenth]), _mean(means[-tenth:])
    middle, whole = statistics.median(means), _mean(means)
    if not early or not middle or not whole:
        return None
    lowest = min(range(len(means)), key=means.__getitem__)
    return Verdict(
        trend=100 * late / early,
        dip=100 * means[lowest] / middle,
        dip_at_s=lowest * interval,
        variation=100 * statistics.pstdev(means) / whole,
        interval_s=interval,
    )


def _means(tps: Sequence[float | None], interval: int) -> list[float]:
    """For complete intervals; a second without a figure counts as one without a transaction."""
    whole = len(tps) // interval * interval
    filled = [value or 0.0 for value in tps[:whole]]
    return [_mean(filled[at : at + interval]) for at in range(0, whole, interval)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
