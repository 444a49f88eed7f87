"""What two designs of a campaign would show on a machine: whole runs, or slices in turn.

Half the 95 % interval of the ratio of two conditions, from how runs and pairs of slices scattered
there before.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy as sp

from runs.analysis.inference.verdicts import SIGNIFICANCE
from runs.analysis.noise import spread

# Fewer say nothing of how a machine scatters.
LEAST_FREEDOM, LEAST_PAIRS = 4, 20
# Where nothing was recorded: six runs of 6 s a side, and 36 slices of 1 s, on a shared machine of
# two processors (docs/statistics.md). Standard deviations of logs.
USUAL_OF_RUNS, USUAL_OF_PAIRS = 0.29, 0.29
# Slices are chosen where they show that much more.
GAIN = 0.8


@dataclass(frozen=True)
class Expected:
    """Half widths of `repeats` whole runs and of `rounds` slices, as shares (0.45 is ±45 %).

    `seconds` are the recorded ones that say so; 0: nothing was recorded, and these are figures of
    another machine. Unless `knows_runs`, the figure of whole runs is that of another machine.
    """

    repeats: int
    rounds: int
    runs: float
    slices: float
    seconds: int
    knows_runs: bool = True

    @property
    def prefers_slices(self) -> bool:
        """Whether slices would show clearly more."""
        return self.slices < GAIN * self.runs


def expected(
    cells: Iterable[Sequence[float]],
    pairs: Sequence[float],
    *,
    repeats: int,
    rounds: int,
) -> Expected:
    """From the logs of whole runs by cell, and the differences of slices that followed each other.

    `repeats` are those of whole runs, `rounds` those of slices in all repeats.
    """
    several = [logs for logs in cells if len(logs) > 1]
    freedom = sum(len(logs) - 1 for logs in several)
    is_known = len(pairs) >= LEAST_PAIRS
    knows_runs = is_known and freedom >= LEAST_FREEDOM
    of_runs, of_pairs = USUAL_OF_RUNS, USUAL_OF_PAIRS
    if is_known:
        of_pairs = spread(np.array(pairs))
    if knows_runs:
        squares = sum((len(logs) - 1) * statistics.variance(logs) for logs in several)
        of_runs = math.sqrt(squares / freedom)
    return Expected(
        repeats,
        rounds,
        _half_width(of_runs * math.sqrt(2 / max(repeats, 2)), 2 * max(repeats, 2) - 2),
        _half_width(of_pairs / math.sqrt(max(rounds, 2)), max(rounds, 2) - 1),
        len(pairs) if is_known else 0,
        knows_runs,
    )


def _half_width(error: float, freedom: int) -> float:
    return math.expm1(-float(sp.special.stdtrit(freedom, SIGNIFICANCE / 2)) * error)
