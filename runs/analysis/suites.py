"""What jobs do to all series of a suite: the machine's part, and not a commit's.

Series of a suite are measured by the same jobs. Each log value is its series' level plus what the
job did to all of them (median polish: Tukey, "Exploratory Data Analysis", 1977). Where most series
move with a job, that is taken out before a series is judged. A move that stays is not: it may be a
commit's, and each series tells it.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from runs.analysis import change_points
from runs.analysis.arrays import Floats, Truths
from runs.analysis.change_points import MINIMUM_SEGMENT

LEAST_SERIES = 5
"""What fewer series do together may well be a commit's."""

MOST = 2 / 3
"""At least this share of the series moves with the machine."""

LEAST_MOVE = 0.01
"""Smaller moves of a job need no agreement."""

INVERSE = 0.98
"""Series of a condition whose steps from point to point correlate so much are one."""

SWEEPS = 10


@dataclass(frozen=True)
class Suite:
    """What each job did to all series, as a log of speed, without moves that stay.

    `moves` are the places of these: most series moved there, by half of the move or more.
    """

    part: Floats
    moves: tuple[int, ...]


def of_jobs(logs: Floats, conditions: Sequence[Hashable]) -> Suite | None:
    """What the jobs did to all series of a suite.

    `logs` are of speed: a row a series, a column a job, NaN where not measured; `conditions` has
    the condition of each row. None for fewer than LEAST_SERIES series that say something of their
    own.
    """
    own = logs[_apart(logs, conditions)]
    if len(own) < LEAST_SERIES or own.shape[1] < 2 * MINIMUM_SEGMENT:
        return None
    part = _polished(own)
    # Where stretches between moves that stay begin and end.
    found = change_points.find(np.exp(part).tolist())
    bounds = [0, *(change.position for change in found), len(part)]
    level = _level(part, bounds)
    flicker = part - level
    flicker[~_agree(own - level, flicker)] = 0.0
    return Suite(flicker, tuple(_moves(own - flicker, level, bounds)))


def _apart(logs: Floats, conditions: Sequence[Hashable]) -> list[int]:
    """The rows that say something of their own: tps and latency of the same runs are one."""
    kept: list[int] = []
    steps = np.diff(logs, axis=1)
    for row, own in enumerate(steps):
        known = own[~np.isnan(own)]
        if len(known) < MINIMUM_SEGMENT or known.std() == 0:
            continue
        alike = [other for other in kept if conditions[other] == conditions[row]]
        if not any(_correlation(own, steps[other]) > INVERSE for other in alike):
            kept.append(row)
    return kept


def _correlation(one: Floats, other: Floats) -> float:
    both = ~np.isnan(one) & ~np.isnan(other)
    if both.sum() < MINIMUM_SEGMENT or not one[both].std() * other[both].std():
        return 0.0
    return float(np.corrcoef(one[both], other[both])[0, 1])


def _polished(own: Floats) -> Floats:
    """The columns' part by median polish; 0 where too few series were measured."""
    part = np.zeros(own.shape[1])
    enough = (~np.isnan(own)).sum(axis=0) >= LEAST_SERIES
    for _sweep in range(SWEEPS):
        levels = np.nanmedian(own - part, axis=1, keepdims=True)
        found = np.zeros(own.shape[1])
        found[enough] = np.nanmedian((own - levels)[:, enough], axis=0)
        if np.abs(found - part).max() < 1e-6:
            break
        part = found
    return part


def _level(part: Floats, bounds: Sequence[int]) -> Floats:
    """The level of each stretch; a few jobs on a slow host are none."""
    level = np.zeros(len(part))
    for begin, end in itertools.pairwise(bounds):
        level[begin:end] = np.median(part[begin:end])
    return level


def _moves(own: Floats, level: Floats, bounds: Sequence[int]) -> Iterator[int]:
    """The places of moves that most series made."""
    for begin, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        known = ~(np.isnan(own[:, begin:at]).all(axis=1) | np.isnan(own[:, at:end]).all(axis=1))
        before = np.nanmedian(own[known, begin:at], axis=1)
        after = np.nanmedian(own[known, at:end], axis=1)
        if known.any() and ((after - before) / (level[at] - level[begin]) >= 0.5).mean() >= MOST:
            yield at


def _agree(own: Floats, flicker: Floats) -> Truths:
    """Whether most series moved with each job, by half of its move or more."""
    rest = own - np.nanmedian(own - flicker, axis=1, keepdims=True)
    known = ~np.isnan(rest)
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = (rest / flicker >= 0.5) & known
    share = shared.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    agreed: Truths = (share >= MOST) | (np.abs(flicker) < LEAST_MOVE)
    return agreed
