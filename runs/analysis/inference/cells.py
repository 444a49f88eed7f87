"""The input of the kernel: cells with their runs, pairs to compare, and prior noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.analysis.inference import rounding

# Of cells in slices whose runs alone have no spread.
LEAST_ROUNDS = 4


@dataclass(frozen=True)
class Cell:
    """The finished runs of one cell, for one metric.

    `logs` are the logarithms of the runs' values, `jobs` who made them and `blocks` the round that
    each belongs to: runs of one round were made together. Where a block is None, or there are none,
    no round is assumed. If only a summary of
    a cell is known, `n`, `mean` and `variance` (of the logs) are given without `logs`; a `mean` of
    None is a value that is not positive, a `variance` of None an unknown spread.

    `campaign` is the cell's campaign: each campaign has its own model. `counted` has the values of
    the runs where they are numbers of events, or one has no logarithm. `unit` is that of the last
    decimal of the values, 0 where they are exact. `repeats_known` is false for a published value
    without a number of repeats: `n` is 1 then, as it has no spread. Of runs that were measured in
    turn `slices` are the logarithms of their parts, and `rounds` the round of each that counts:
    within the campaign these are compared, elsewhere the runs. `turns_on` are the servers on which
    they were measured in turn.
    """

    n: int
    mean: float | None
    variance: float | None
    campaign: Hashable = None
    logs: tuple[float, ...] = ()
    blocks: tuple[Hashable, ...] = ()
    counted: tuple[float, ...] = ()
    repeats_known: bool = True
    jobs: tuple[str, ...] = ()
    unit: float = 0.0
    slices: tuple[float, ...] = ()
    rounds: tuple[Hashable, ...] = ()
    turns_on: frozenset[Hashable] = frozenset()

    @property
    def measured(self) -> tuple[float, ...]:
        """What is fitted with its rounds."""
        return self.slices or self.logs

    @property
    def measured_in(self) -> tuple[Hashable, ...]:
        """The round of each."""
        return self.rounds or self.blocks

    @property
    def count(self) -> int:
        """How many of them there should be."""
        return len(self.slices) or self.n

    def shares_rounds(self, cell: Cell) -> bool:
        """Whether both have slices of enough of the same rounds to be compared."""
        return len(set(self.rounds) & set(cell.rounds)) >= LEAST_ROUNDS

    def needs_rounds(self, cell: Cell) -> bool:
        """Whether the two can be compared by the slices of common rounds only.

        Those on a machine that drifts, whose runs were to take turns.
        """
        is_other = cell is not self and cell.campaign == self.campaign
        return is_other and bool(self.turns_on & cell.turns_on)

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the runs, as far as they are known."""
        return self.counted or tuple(math.exp(log) for log in self.logs)

    @property
    def rounding(self) -> float:
        """What rounding adds to the variance of the mean."""
        if not self.unit or not self.logs:
            return 0.0
        return rounding.rounding(self.values, self.unit)

    def select_jobs(self, jobs: Collection[str]) -> Cell:
        """The runs of these jobs alone."""
        return self.select_runs(
            [position for position, job in enumerate(self.jobs) if job in jobs]
        )

    def select_runs(self, positions: Sequence[int]) -> Cell:
        """The runs at these places alone; the order of runs stays."""
        logs = [self.logs[position] for position in positions] if self.logs else []
        return Cell(
            len(positions),
            statistics.fmean(logs) if logs else None,
            statistics.variance(logs) if len(logs) > 1 else None,
            self.campaign,
            tuple(logs),
            tuple(self.blocks[position] for position in positions if self.blocks),
            tuple(self.counted[position] for position in positions if self.counted),
            jobs=tuple(self.jobs[position] for position in positions if self.jobs),
            unit=self.unit,
        )


@dataclass(frozen=True)
class CellValue:
    """What the model says of a cell in the metric's unit, and the runs behind it.

    The interval is that of this one value, 95 %; whether two values differ is said by the interval
    of their ratio alone. There is none where no spread is known. `is_of_slices`: it is that of the
    slices in the rounds that count, where the `runs` are of all their slices.
    """

    value: float
    low: float | None = None
    high: float | None = None
    runs: tuple[float, ...] = ()
    is_of_slices: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "runs": list(self.runs),
            "is_of_slices": self.is_of_slices,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> CellValue:
        """From what `to_json` gave, or more."""
        return cls(
            kept["value"],
            kept["low"],
            kept["high"],
            tuple(kept["runs"]),
            kept.get("is_of_slices", False),
        )


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
