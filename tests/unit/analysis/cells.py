"""Cells of the judgement from plain values."""

import math
from collections.abc import Hashable, Sequence

from runs.analysis.inference import Cell


def cell_of(
    values: Sequence[float],
    *,
    blocks: Sequence[Hashable] = (),
    campaign: Hashable = None,
) -> Cell:
    """A cell from its runs' values, which may be counts."""
    if min(values) <= 0:
        return Cell(len(values), None, None, campaign, counted=tuple(values))
    logs = tuple(math.log(value) for value in values)
    mean = math.fsum(logs) / len(logs)
    variance = None
    if len(logs) > 1:
        variance = math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    return Cell(len(logs), mean, variance, campaign, logs, tuple(blocks), tuple(values))
