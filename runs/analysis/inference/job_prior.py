"""How jobs scatter, from the first job on: a prior of public projects, and what jobs show here.

A job does something to all of its runs that is in none of their differences. How much is drawn from
a prior in two steps: the suite on its machine has a scatter `m`, a row of it the scatter `s`. What
is seen here weighs the two: differences of neighbouring jobs that measured unchanged code, of all
rows of the suite. The noise of a job has heavy tails (Student's t with three degrees of freedom),
until many jobs of a suite show that it has not.

The constants are those of public projects (docs/statistics.md, "A prior for jobs"). They change
only with the version of the rules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy as sp

from runs.analysis.arrays import Floats

# ln of the scatter: its mean over projects, and its standard deviations between suites and within.
MEAN = math.log(0.032)
BETWEEN_SUITES = 1.07
BETWEEN_ROWS = 0.64
# Degrees of freedom of a job's noise, heavy tails and light ones, and how likely each is.
FREEDOM = 3.0
FREEDOMS = np.array([FREEDOM, 12.0])
_OF_FREEDOM = np.log(np.array([0.9, 0.1]))
# Rows of a suite correlate: as many say no more than a few.
CORRELATION = 0.3
# A median of three jobs or more is not moved by a disturbed one, and scatters a little more.
MEDIAN_FROM, MEDIAN_COST = 3, 1.2
# With fewer differences nothing is known of how alike neighbours are; so many count as "not alike".
LEAST_FAR, DRAWN, MOST_ALIKE = 20, 15, 0.8
PROJECTS = 23
"""How many public projects the constants come from."""

_SUITES = np.log(np.geomspace(5e-4, 0.6, 40))
_STEPS = np.linspace(-2.5, 2.5, 11)
_OF_STEP = np.exp(-(_STEPS**2) / 2) / np.exp(-(_STEPS**2) / 2).sum()
# ln of the scatter of a row by suite (rows of the grid) and step from it (columns).
_LOGS = _SUITES[:, None] + BETWEEN_ROWS * _STEPS[None, :]
_VARIANCES = np.exp(2 * _LOGS)
# What makes densities of different freedom comparable.
_CONSTANTS = np.array(
    [
        math.lgamma((freedom + 1) / 2)
        - math.lgamma(freedom / 2)
        - math.log(freedom * math.pi) / 2
        for freedom in FREEDOMS
    ]
)[:, None, None]
_FREEDOM_OF = FREEDOMS[:, None, None]
_PRIOR = -(((_SUITES - MEAN) / BETWEEN_SUITES) ** 2) / 2


@dataclass(frozen=True)
class JobPoint:
    """The runs of a job under a condition: how many, mean and variance of their logs.

    `rounding` is what the last decimal of their values adds to the variance of the mean; `key`
    names the job and its commit.
    """

    n: int
    mean: float
    variance: float = 0.0
    rounding: float = 0.0
    key: Hashable = None


Stretch = Sequence[JobPoint]
"""Jobs of unchanged code, one after the other."""


@dataclass(frozen=True)
class RunScatter:
    """How runs of a job scatter in a row: their pooled `variance`, with its degrees of freedom.

    `usual` is the mean of 1 / n: the scatter of jobs is that of jobs with so many runs.
    """

    variance: float
    freedom: float
    usual: float

    @classmethod
    def of(cls, points: Sequence[JobPoint]) -> RunScatter:
        """Pooled over these jobs."""
        freedom = sum(point.n - 1 for point in points)
        squares = sum((point.n - 1) * point.variance for point in points)
        usual = sum(1 / point.n for point in points) / len(points) if points else 1.0
        return cls(squares / freedom if freedom else 0.0, float(freedom), usual)

    def compute_job_variance(self, n: int) -> Floats:
        """The variance of the mean of a job with n runs, at each place of the grid."""
        changed = _VARIANCES + self.variance * (1 / n - self.usual)
        return np.maximum(np.maximum(changed, self.variance / n), _VARIANCES / 4)


@dataclass(frozen=True)
class RowScatter:
    """The scatter of jobs in a row: `weights` of freedom and place in the grid, and of its runs."""

    weights: Floats
    runs: RunScatter
    likeness: float = 0.0

    def variances(self, base: Stretch, head: Stretch) -> Floats:
        """Of the middle of the head's jobs less that of the base's, at each place of the grid."""
        variance = np.full_like(_VARIANCES, sum(map(_last_decimals, (base, head))))
        for jobs in (base, head):
            cost = MEDIAN_COST if len(jobs) >= MEDIAN_FROM else 1.0
            for number in {job.n for job in jobs}:
                alike = sum(job.n == number for job in jobs)
                variance += (
                    self.runs.compute_job_variance(number)
                    * cost
                    * alike
                    / len(jobs) ** 2
                )
        # Neighbours that are alike differ by less than jobs scatter.
        return variance / (1 - self.likeness)

    def tail(self, difference: float, variances: Floats) -> float:
        """The probability of a difference at least so far below nothing, without a change."""
        scaled = difference / np.sqrt(variances)
        return float(
            (self.weights * np.stack([_tail(scaled), _light_tail(scaled)])).sum()
        )

    def half_width(self, level: float, variances: Floats) -> float:
        """Half of the interval of a two-sided level."""
        errors = np.sqrt(variances)
        # Places that weigh nothing are not asked.
        places = [weights > 1e-7 for weights in self.weights]
        heavy, light = (errors[place] for place in places)
        weights = [
            weights[place] for weights, place in zip(self.weights, places, strict=True)
        ]
        low, high = 1e-12, float(errors.max()) * 1e3
        for _ in range(50):
            middle = math.sqrt(low * high)
            outside = weights[0] @ _tail(-middle / heavy) + weights[1] @ _light_tail(
                -middle / light
            )
            if 2 * float(outside) > level:
                low = middle
            else:
                high = middle
        return high


def quantile(level: float) -> float:
    """The two-sided limit of Student's t with the freedom of a job's noise."""
    return -float(sp.special.stdtrit(FREEDOM, level / 2))


def middle_of(jobs: Stretch) -> float:
    """The middle of the logs of some jobs."""
    means = [job.mean for job in jobs]
    if len(means) < MEDIAN_FROM:
        return math.fsum(means) / len(means)
    return float(np.median(means))


def scatters(
    rows: Sequence[Sequence[Stretch]], sides: Sequence[float] = ()
) -> list[RowScatter]:
    """How the jobs of each row scatter; a row has stretches of jobs without a change between.

    `sides` are differences of a head's only job and a base's only job, one of each row: where
    nothing else is known they say how the other rows scatter.
    """
    runs = [
        RunScatter.of([job for stretch in stretches for job in stretch])
        for stretches in rows
    ]
    likely = np.array(
        [
            _likely(stretches, scatter)
            for stretches, scatter in zip(rows, runs, strict=True)
        ]
    ).reshape(len(rows), len(FREEDOMS), *_LOGS.shape)
    of_others = likely
    if len(sides):
        of_others = likely + np.array(
            [_log_density(side / math.sqrt(2)) for side in sides]
        )
    top = of_others.max(axis=(1, 2, 3), initial=-math.inf)
    of_suites = np.log(np.exp(of_others - top[:, None, None, None]) @ _OF_STEP + 1e-300)
    of_suites += top[:, None, None]
    share = 1 / (1 + max(len(rows) - 2, 0) * CORRELATION**2)
    total = of_suites.sum(axis=0)
    row_scatters = []
    for number, scatter in enumerate(runs):
        of_suite = _OF_FREEDOM[:, None] + _PRIOR + share * (total - of_suites[number])
        logs = of_suite[:, :, None] + likely[number] + np.log(_OF_STEP)
        weights = np.exp(logs - logs.max())
        row_scatters.append(
            RowScatter(weights / weights.sum(), scatter, _likeness(rows[number]))
        )
    return row_scatters


def _likeness(stretches: Sequence[Stretch]) -> float:
    """How much a job is like the one before it (0 to MOST_ALIKE), drawn towards 0.

    From differences of neighbours and of those next but one, as in the histories' noise.
    """
    near: list[float] = []
    far: list[float] = []
    for stretch in stretches:
        means = [job.mean for job in stretch]
        near += [abs(after - before) for before, after in itertools.pairwise(means)]
        far += [
            abs(after - before) for before, after in zip(means, means[2:], strict=False)
        ]
    if len(far) < LEAST_FAR or not np.median(near):
        return 0.0
    ratio = (np.median(far) / np.median(near)) ** 2
    likeness = float(ratio) - 1.0
    return min(max(likeness, 0.0), MOST_ALIKE) * len(far) / (len(far) + DRAWN)


def _likely(stretches: Sequence[Stretch], scatter: RunScatter) -> Floats:
    """The log likelihood of the differences of neighbours, by freedom and place of the grid."""
    total = np.zeros((len(FREEDOMS), *_LOGS.shape))
    for stretch in stretches:
        for before, after in itertools.pairwise(stretch):
            difference = (after.mean - before.mean) / math.sqrt(2)
            rounding = (before.rounding + after.rounding) / 2
            if before.n == after.n and not rounding:
                total += _usual_density(difference)
                continue
            variance = (
                scatter.compute_job_variance(before.n)
                + scatter.compute_job_variance(after.n)
            ) / 2 + rounding
            total += _log_density(difference, np.log(variance) / 2)
    return total


@lru_cache(maxsize=1024)
def _usual_density(difference: float) -> Floats:
    """Kept: the same differences are asked for again where a level might begin."""
    return _log_density(difference)


def _log_density(difference: float, logs: Floats = _LOGS) -> Floats:
    """That of Student's t with a log scale, by freedom and place of the grid."""
    squares = (difference * np.exp(-logs)) ** 2
    tails = -(_FREEDOM_OF + 1) / 2 * np.log1p(squares / _FREEDOM_OF)
    density: Floats = _CONSTANTS + tails - logs
    return density


def _tail(t: Floats) -> Floats:
    """The distribution function of Student's t with three degrees of freedom."""
    root = t / math.sqrt(FREEDOM)
    probability: Floats = 0.5 + (root / (1 + root**2) + np.arctan(root)) / math.pi
    return np.clip(probability, 0.0, 1.0)


def _light_tail(t: Floats) -> Floats:
    probability: Floats = sp.special.stdtr(FREEDOMS[1], t)
    return probability


def _last_decimals(jobs: Stretch) -> float:
    """What the last decimals add to the variance of the middle; all may be off by the same."""
    is_same = len({job.mean for job in jobs}) == 1
    return sum(job.rounding for job in jobs) / len(jobs) ** (1 if is_same else 2)
