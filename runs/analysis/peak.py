"""Where a metric is best over the levels of a factor, and which levels are as good."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.analysis.comparison import MINIMUM_EFFECT, Direction, compare
from runs.analysis.summary import Summary


@dataclass(frozen=True)
class Peak:
    """The level with the best median.

    `plateau` are the levels next to it that are not worse beyond the noise, the peak's own among
    them, in ascending order. `is_at_edge`: the plateau reaches the lowest or highest level
    measured on, so that something better may lie beyond.
    """

    level: float
    median: float
    plateau: tuple[float, ...]
    is_at_edge: bool


def find(
    points: Sequence[tuple[float, Summary]],
    *,
    direction: Direction = "higher",
    minimum_effect: float = MINIMUM_EFFECT,
) -> Peak | None:
    """Find the peak of (level, summary) points; None for no points.

    A neighbour belongs to the plateau while a comparison with the peak gives no evidence of a
    difference; where no spread is known, while its median is within `minimum_effect`. Of equal
    medians the lowest level is the peak: nobody pays for more clients than needed.
    Raises ValueError for the direction `neutral`, which has no best end.
    """
    if direction == "neutral":
        raise ValueError("A metric without a better end has no peak.")
    ordered = sorted(points, key=lambda point: point[0])
    if not ordered:
        return None
    sign = 1 if direction == "higher" else -1
    best = max(range(len(ordered)), key=lambda place: sign * ordered[place][1].median)
    first = last = best
    while first > 0 and _is_alike(ordered[best][1], ordered[first - 1][1], minimum_effect):
        first -= 1
    while last + 1 < len(ordered) and _is_alike(
        ordered[best][1], ordered[last + 1][1], minimum_effect
    ):
        last += 1
    level, summary = ordered[best]
    plateau = tuple(level for level, _ in ordered[first : last + 1])
    return Peak(level, summary.median, plateau, first == 0 or last == len(ordered) - 1)


def _is_alike(peak: Summary, neighbour: Summary, minimum_effect: float) -> bool:
    comparison = compare(peak, neighbour, direction="neutral", minimum_effect=minimum_effect)
    if comparison.verdict == "too_few_runs" and comparison.ratio is not None:
        return 1 / (1 + minimum_effect) < comparison.ratio < 1 + minimum_effect
    return comparison.verdict == "no_evidence"
