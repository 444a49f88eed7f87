"""The input of the kernel: cells with their runs, pairs to compare, and prior noise."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """The finished runs of one cell, for one metric.

    `logs` are the logarithms of the runs' values and `blocks` the round that each run belongs to:
    runs of one round were made together. Without `blocks` no round is assumed. If only a summary of
    a cell is known, `n`, `mean` and `variance` (of the logs) are given without `logs`; a `mean` of
    None is a value that is not positive, a `variance` of None an unknown spread.

    `campaign` is the cell's campaign: each campaign has its own model. `counted` has the counts of
    the runs if the metric is a number of events. `repeats_known` is false for a published value
    without a number of repeats: `n` is 1 then, as it has no spread.
    """

    n: int
    mean: float | None
    variance: float | None
    campaign: Hashable = None
    logs: tuple[float, ...] = ()
    blocks: tuple[Hashable, ...] = ()
    counted: tuple[float, ...] = ()
    repeats_known: bool = True


@dataclass(frozen=True)
class Noise:
    """The noise known from before: a variance of logs, and how many degrees of freedom it has."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Pair:
    """Head against base, as positions in a list of cells. None is a side that was not measured."""

    base: int | None
    head: int | None


def cell_of(
    values: Sequence[float], *, blocks: Sequence[Hashable] = (), campaign: Hashable = None
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
