"""Dips: a few values far below their surroundings. See docs/statistics.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from runs.analysis.arrays import Floats
from runs.analysis.noise import spread

MINIMUM_DEPTH = 0.2
DIP = 6.0
"""Standard deviations below the running median that make a dip, if that is at least a fifth."""

BASELINE_BLOCK = 60
BASELINE_BLOCKS = 5


@dataclass(frozen=True)
class Dip:
    """Values far below their surroundings for `length_s`; a `depth` of 1.0 is down to nothing."""

    start_s: float
    length_s: float
    depth: float


def dips(times: Floats, points: Floats) -> tuple[Dip, ...]:
    """Runs of points far below the running median; a single point in between does not end one.

    What starts with the first point is not a dip but the start.
    """
    baseline = _baseline(points)
    depth = np.zeros_like(points)
    np.divide(baseline - points, baseline, out=depth, where=baseline > 0)
    is_low = np.flatnonzero(depth > max(MINIMUM_DEPTH, DIP * spread(depth)))
    if len(is_low) == 0:
        return ()
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    return tuple(
        Dip(
            start_s=float(times[group[0]]),
            length_s=float(times[group[-1]] - times[group[0]]) + step,
            depth=float(depth[group[0] : group[-1] + 1].max()),
        )
        for group in np.split(is_low, np.flatnonzero(np.diff(is_low) > 2) + 1)
        if group[0] > 0
    )


def _baseline(points: Floats) -> Floats:
    """A running median, in steps: medians of blocks, the median of five of these, interpolated.

    With a value each second it spans 2.5 minutes to both sides, so that a dip of up to 2 minutes
    does not pull it down. A short series has smaller blocks, down to a single one.
    """
    size = min(BASELINE_BLOCK, math.ceil(len(points) / BASELINE_BLOCKS))
    full = len(points) // size * size
    medians = np.median(points[:full].reshape(-1, size), axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(
        medians, min(BASELINE_BLOCKS, len(medians))
    )
    smooth = np.median(windows, axis=1)
    before = (len(medians) - len(smooth)) // 2
    smooth = np.pad(smooth, (before, len(medians) - len(smooth) - before), mode="edge")
    centres = np.arange(len(smooth)) * size + (size - 1) / 2
    line: Floats = np.interp(np.arange(len(points)), centres, smooth)
    return line
