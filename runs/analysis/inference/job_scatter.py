"""Runs of different jobs compared: what a job does to all of its runs is part of the error.

A point is what one job measured of one commit under one condition. Points of an unchanged stretch
of a history differ by their runs and by their jobs; how much is learnt from the points before the
head, and enters the comparison of the head with one point (its parent) or with several (the last
points of a branch).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy as sp

from runs.analysis import change_points
from runs.analysis.inference import critical
from runs.analysis.inference.blocks import Fit
from runs.analysis.inference.variances import DISAGREES, Moderated, moderate
from runs.analysis.inference.verdicts import Inference, Rule, of_table

# With fewer points the spread of jobs is not known well enough to be useful.
LEAST_POINTS = 5
# So many points before the head say how jobs scatter, and so many of them are its baseline.
POINTS, BASELINE = 30, 10


@dataclass(frozen=True)
class Point:
    """The runs of a commit under a condition: how many, mean and variance of their logs.

    `rounding` is what the last decimal of their values adds to the variance of the mean.
    """

    n: int
    mean: float
    variance: float = 0.0
    rounding: float = 0.0


History = Mapping[int, Point]
"""The points of a condition by commit, the oldest first."""


@dataclass(frozen=True)
class JobScatter:
    """How points of one condition scatter: their `variance`, with `freedom` degrees.

    `within` is the variance of runs of a job, with its own degrees; `usual` the mean of 1 / n.
    """

    variance: float
    freedom: float
    within: float
    within_freedom: float
    usual: float

    def of(self, point: Point) -> float:
        """The variance of a point with its number of runs."""
        point_variance = self.variance + self.within * (1 / point.n - self.usual)
        return max(point_variance, self.within / point.n, self.variance / 4)

    def excess(self, point: Point) -> float:
        """What a point's variance has in addition, where its runs scatter more than others do."""
        if point.n < 2 or not self.within_freedom or point.variance <= self.within:
            return 0.0
        unlike = self.within <= 0 or (
            sp.special.fdtrc(point.n - 1, self.within_freedom, point.variance / self.within)
            < DISAGREES
        )
        return (point.variance - self.within) / point.n if unlike else 0.0


@dataclass(frozen=True)
class Jobs:
    """How the points of all conditions scatter, and how alike a job moves them (0 to 1)."""

    conditions: Mapping[str, JobScatter]
    alike: float
    freedom: float

    def level(self, rows: int, significance: float) -> float:
        """The two-sided level of each row at which as many rows together have `significance`."""
        if rows < 2:
            return significance
        return critical.level([[math.sqrt(self.alike)] * rows], self.freedom, significance)


def begins_of(points: Sequence[Point], ignored: Collection[int] = ()) -> list[int]:
    """Where stretches without a change begin; `ignored` are places of which people say no."""
    changes = change_points.find([[math.exp(point.mean)] * point.n for point in points])
    near = change_points.SAME_PLACE
    places = [change_point.position for change_point in changes]
    return [
        0,
        *(
            begin
            for begin in places
            if all(abs(begin - ignored_place) > near for ignored_place in ignored)
        ),
    ]


def learn(histories: Mapping[str, History], begins: Mapping[str, Sequence[int]]) -> Jobs | None:
    """How jobs scatter, from the points of each condition and the begins of its stretches.

    None where no condition has LEAST_POINTS points, less one for each change of its level.
    """
    residuals = {
        key: _residuals(history, begins[key]) for key, history in histories.items() if history
    }
    if not residuals:
        return None
    freedom = np.array([len(histories[key]) - len(begins[key]) for key in residuals], dtype=float)
    if freedom.max() < LEAST_POINTS - 1:
        return None
    squares = np.array(
        [
            sum(deviation**2 for deviation in deviations.values())
            for deviations in residuals.values()
        ]
    )
    variances = np.divide(squares, freedom, out=np.zeros(len(freedom)), where=freedom > 0)
    moderated = moderate(Fit(np.ones(len(freedom)), squares, variances, freedom), None)
    correlation = _alike(residuals, dict(zip(residuals, variances.tolist(), strict=True)))
    # Conditions that a job moves together say no more than one of them.
    common = float(freedom.sum() / (1 + (len(freedom) - 1) * correlation**2))
    conditions = {
        key: _scatter(histories[key], moderated, position, float(freedom[position]), common)
        for position, key in enumerate(residuals)
    }
    return Jobs(conditions, correlation, common)


def _residuals(history: History, begins: Sequence[int]) -> dict[int, float]:
    """Each point less the mean of its stretch."""
    names, means = list(history), [point.mean for point in history.values()]
    residual_of: dict[int, float] = {}
    for begin, end in zip(begins, [*begins[1:], len(means)], strict=True):
        middle = statistics.fmean(means[begin:end])
        residual_of |= {names[number]: means[number] - middle for number in range(begin, end)}
    return residual_of


def _alike(residuals: Mapping[str, Mapping[int, float]], variances: Mapping[str, float]) -> float:
    """The correlation of conditions over commits: the mean of products over that of squares."""
    commits: dict[int, list[float]] = {}
    for key, residuals_of_condition in residuals.items():
        if variances[key] > 0:
            for commit, residual in residuals_of_condition.items():
                commits.setdefault(commit, []).append(residual / math.sqrt(variances[key]))
    products = squares = 0.0
    for deviations in commits.values():
        if len(deviations) > 1:
            of_commit = sum(deviation**2 for deviation in deviations)
            products += (sum(deviations) ** 2 - of_commit) / (len(deviations) - 1)
            squares += of_commit
    return min(max(products / squares, 0.0), 1.0) if squares else 0.0


def _scatter(
    history: History, moderated: Moderated, position: int, own_freedom: float, common: float
) -> JobScatter:
    points = list(history.values())
    within_freedom = sum(point.n - 1 for point in points)
    within = sum((point.n - 1) * point.variance for point in points)
    return JobScatter(
        variance=float(moderated.variances[position]),
        freedom=max(
            min(float(moderated.prior[position]) + own_freedom, max(own_freedom, common)), 1.0
        ),
        within=within / within_freedom if within_freedom else 0.0,
        within_freedom=float(within_freedom),
        usual=statistics.fmean(1 / point.n for point in points),
    )


def judge_jobs(
    base: Sequence[Point], head: Point, scatter: JobScatter | None, rule: Rule
) -> Inference:
    """Head compared with points of other jobs.

    Undecided for `jobs_unknown` where nothing is known of how jobs scatter.
    """
    middle = statistics.fmean(point.mean for point in base)
    difference = head.mean - middle
    unknown = Inference(
        "undecided",
        math.exp(difference),
        base_value=math.exp(middle),
        head_value=math.exp(head.mean),
        reasons=("jobs_unknown",),
    )
    if scatter is None:
        return unknown
    error, freedom = _error(base, head, scatter)
    width = -float(sp.special.stdtrit(freedom, rule.level / 2)) * error
    low, high = difference - width, difference + width
    if error:
        distance = abs(difference) / error
    elif difference:
        distance = math.inf
    else:
        distance = 0.0
    p_value = 2 * float(sp.special.stdtr(freedom, -distance))
    verdict = rule.word(low, high)
    return replace(
        unknown,
        verdict=verdict,
        low=math.exp(low),
        high=math.exp(high),
        p_value=p_value,
        adjusted_p_value=of_table(p_value, rule.tables),
        log_error=error,
        freedom=freedom,
        # Further runs of the same jobs would hardly help.
        reasons=("two_jobs",) if verdict == "undecided" else (),
        error_table="jobs",
    )


def _error(base: Sequence[Point], head: Point, scatter: JobScatter) -> tuple[float, float]:
    """(standard error of head less base, degrees of freedom)."""
    usual = scatter.of(head) + sum(map(scatter.of, base)) / len(base) ** 2
    variance_parts = [(usual, scatter.freedom), (scatter.excess(head), max(head.n - 1.0, 1.0))]
    variance_parts += [
        (scatter.excess(point) / len(base) ** 2, max(point.n - 1.0, 1.0)) for point in base
    ]
    # What all points are rounded to may be off by the same.
    is_same = len({point.mean for point in base}) == 1
    of_base = sum(point.rounding for point in base) / len(base) ** (1 if is_same else 2)
    variance_parts.append((head.rounding + of_base, scatter.freedom))
    variance = sum(variance for variance, _freedom in variance_parts)
    inverse = sum(variance**2 / freedom for variance, freedom in variance_parts)
    return math.sqrt(variance), variance**2 / inverse if inverse else scatter.freedom
