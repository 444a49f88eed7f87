"""A point compared with the last points of its history, using the spread of these points.

A point is the mean of the logs of a commit's runs. What changes from job to job and moves the runs
of a job together is part of the spread of points, but not of that of runs. So the interval is that
of a further point (a prediction interval: the next one is in it in 95 of 100 cases).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from runs.analysis.inference.verdicts import (
    SIGNIFICANCE,
    Direction,
    Inference,
    rounds_missing,
    word,
)

# With fewer points the spread is not known well enough to be useful.
LEAST_POINTS = 5


@dataclass(frozen=True)
class Point:
    """The runs of a commit: how many, the mean of their logs, and their variance if known."""

    n: int
    mean: float
    variance: float | None = None


def judge_against(
    points: Sequence[Point], head: Point, *, direction: Direction, effect: float, level: float
) -> Inference:
    """Head compared with the points before it; `level` is that of the row, `effect` as for judge().

    Raises ValueError for fewer than two points.
    """
    middle = statistics.fmean(point.mean for point in points)
    spread = statistics.variance(point.mean for point in points)
    freedom = len(points) - 1
    error = math.sqrt(spread / len(points) + _of_head(points, head, spread))
    difference = head.mean - middle
    width = -float(stdtrit(freedom, level / 2)) * error
    low, high = difference - width, difference + width
    distance = abs(difference) / error if error else (math.inf if difference else 0.0)
    p_value = 2 * float(stdtr(freedom, -distance))
    tables = math.log1p(-SIGNIFICANCE) / math.log1p(-level)
    verdict = word(low, high, direction=direction, effect=effect)
    is_open = verdict == "undecided"
    return Inference(
        verdict=verdict,
        ratio=math.exp(difference),
        low=math.exp(low),
        high=math.exp(high),
        base_value=math.exp(middle),
        head_value=math.exp(head.mean),
        p_value=p_value,
        adjusted_p_value=-math.expm1(tables * math.log1p(-min(p_value, 1 - 1e-16))),
        log_error=error,
        freedom=float(freedom),
        more_rounds=rounds_missing(difference, width, head.n, effect) if is_open else None,
    )


def _of_head(points: Sequence[Point], head: Point, spread: float) -> float:
    """The variance of the head as a point: that of the others, with its own number of runs."""
    known = [(point.n - 1, point.variance) for point in points if point.variance is not None]
    freedom = sum(each for each, _variance in known)
    if not freedom:
        return spread
    of_run = sum(each * variance for each, variance in known) / freedom
    usual = statistics.fmean(1 / point.n for point in points)
    return max(spread + of_run * (1 / head.n - usual), of_run / head.n, spread / 4)
