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


def judge_suite(logs: Floats, conditions: Sequence[Hashable]) -> Suite | None:
    """What the jobs did to all series of a suite.

    `logs` are of speed: a row a series, a column a job, NaN where not measured; `conditions` has
    the condition of each row. None for fewer than LEAST_SERIES series that say something of their
    own.
    """
    series_logs = logs[_apart(logs, conditions)]
    if len(series_logs) < LEAST_SERIES or series_logs.shape[1] < 2 * MINIMUM_SEGMENT:
        return None
    common = _polished(series_logs)
    # Where stretches between moves that stay begin and end.
    changes = change_points.find(np.exp(common).tolist())
    bounds = [0, *(change.position for change in changes), len(common)]
    level = _level(common, bounds)
    flicker = common - level
    flicker[~_agree(series_logs - level, flicker)] = 0.0
    return Suite(flicker, tuple(_moves(series_logs - flicker, level, bounds)))


def _apart(logs: Floats, conditions: Sequence[Hashable]) -> list[int]:
    """The rows that say something of their own: tps and latency of the same runs are one."""
    kept_rows: list[int] = []
    steps = np.diff(logs, axis=1)
    for row, series_steps in enumerate(steps):
        known_steps = series_steps[~np.isnan(series_steps)]
        if len(known_steps) < MINIMUM_SEGMENT or known_steps.std() == 0:
            continue
        same_condition = [
            row_number
            for row_number in kept_rows
            if conditions[row_number] == conditions[row]
        ]
        if not any(
            _correlation(series_steps, steps[same_row]) > INVERSE
            for same_row in same_condition
        ):
            kept_rows.append(row)
    return kept_rows


def _correlation(left_steps: Floats, right_steps: Floats) -> float:
    in_both = ~np.isnan(left_steps) & ~np.isnan(right_steps)
    if (
        in_both.sum() < MINIMUM_SEGMENT
        or not left_steps[in_both].std() * right_steps[in_both].std()
    ):
        return 0.0
    return float(np.corrcoef(left_steps[in_both], right_steps[in_both])[0, 1])


def _polished(series_logs: Floats) -> Floats:
    """The columns' part by median polish; 0 where too few series were measured."""
    common = np.zeros(series_logs.shape[1])
    enough = (~np.isnan(series_logs)).sum(axis=0) >= LEAST_SERIES
    for _sweep in range(SWEEPS):
        levels = np.nanmedian(series_logs - common, axis=1, keepdims=True)
        move_of_columns = np.zeros(series_logs.shape[1])
        move_of_columns[enough] = np.nanmedian(
            (series_logs - levels)[:, enough], axis=0
        )
        if np.abs(move_of_columns - common).max() < 1e-6:
            break
        common = move_of_columns
    return common


def _level(common: Floats, bounds: Sequence[int]) -> Floats:
    """The level of each stretch; a few jobs on a slow host are none."""
    level = np.zeros(len(common))
    for begin, end in itertools.pairwise(bounds):
        level[begin:end] = np.median(common[begin:end])
    return level


def _moves(series_logs: Floats, level: Floats, bounds: Sequence[int]) -> Iterator[int]:
    """The places of moves that most series made."""
    for begin, middle, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        is_known = ~(
            np.isnan(series_logs[:, begin:middle]).all(axis=1)
            | np.isnan(series_logs[:, middle:end]).all(axis=1)
        )
        before = np.nanmedian(series_logs[is_known, begin:middle], axis=1)
        after = np.nanmedian(series_logs[is_known, middle:end], axis=1)
        if (
            is_known.any()
            and ((after - before) / (level[middle] - level[begin]) >= 0.5).mean()
            >= MOST
        ):
            yield middle


def _agree(series_logs: Floats, flicker: Floats) -> Truths:
    """Whether most series moved with each job, by half of its move or more."""
    residual = series_logs - np.nanmedian(series_logs - flicker, axis=1, keepdims=True)
    has_value = ~np.isnan(residual)
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = (residual / flicker >= 0.5) & has_value
    share = shared.sum(axis=0) / np.maximum(has_value.sum(axis=0), 1)
    agreed: Truths = (share >= MOST) | (np.abs(flicker) < LEAST_MOVE)
    return agreed
