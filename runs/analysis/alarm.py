"""The expected range of a history's next run, and an alarm for a run outside of it.

An alarm based on one run must either miss small changes or raise false alarms. This one misses: it
reports a collapse on the day it happens, and leaves 5 % to change_points.find(), three points
later.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runs.analysis import change_points
from runs.analysis.history_noise import spread
from runs.analysis.inference.verdicts import MINIMUM_EFFECT

SIGNIFICANCE = 0.001
MINIMUM_RUNS = 10
RECENT = 50
"""Number of earlier runs used, after the last change of level."""


@dataclass(frozen=True)
class ExpectedRange:
    """Where the next run is expected, in the metric's unit: around the `median` of recent runs."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Alarm:
    """A run outside of the expected range; `ratio` is that to the median of the recent runs."""

    value: float
    ratio: float
    expected: ExpectedRange


def expected_range(
    history: Sequence[float | Sequence[float]], *, minimum_effect: float = MINIMUM_EFFECT
) -> ExpectedRange | None:
    """The range of the next single run; None if fewer than MINIMUM_RUNS recent ones are known.

    On logs, the widest of three: the prediction interval by Student's t with a robust standard
    deviation (p = 0.001), the farthest of the recent runs, and the minimum effect. Because of the
    second, kinds of spikes that the history already has are no news. Raises ValueError as
    change_points.find().
    """
    changes = change_points.find(history, minimum_effect=minimum_effect)
    level = history[changes[-1].position :] if changes else history
    runs = [run for point in level for run in (point if isinstance(point, Sequence) else (point,))][
        -RECENT:
    ]
    if len(runs) < MINIMUM_RUNS:
        return None
    logs = np.log(np.array(runs, dtype=float))
    median = float(np.median(logs))
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to import)

    quantile = float(stdtrit(len(logs) - 1, 1 - SIGNIFICANCE / 2))
    predicted = quantile * spread(logs) * math.sqrt(1 + 1 / len(logs))
    farthest = float(np.abs(logs - median).max())
    bound = max(predicted, farthest, math.log1p(minimum_effect))
    return ExpectedRange(math.exp(median), math.exp(median - bound), math.exp(median + bound))


def single_run_alarm(
    history: Sequence[float | Sequence[float]],
    value: float,
    *,
    minimum_effect: float = MINIMUM_EFFECT,
) -> Alarm | None:
    """An alarm for one new run after the history; None if it is as expected or unknown."""
    expected = expected_range(history, minimum_effect=minimum_effect)
    if expected is None or expected.low <= value <= expected.high:
        return None
    return Alarm(value, value / expected.median, expected)
