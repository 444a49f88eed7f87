"""Runs in slices: which rounds count, and what their slices say of each run.

A round has one slice of each run that was measured in turn. It is the unit of inference: what
disturbs the machine for longer disturbs all slices of a round. A round in which somebody came or
went is left out for all runs, by who used the processors, before anybody looks at its figures.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import scipy as sp

# Slices of one number belong to one round only if they begin so soon after each other (s).
MOST_APART = 30.0
# In percent of all processors: how far a slice may lie from the median of its run.
DISTURBED = 25.0
# Fewer say nothing of how they scatter.
LEAST_ROUNDS = 4
# Of more rounds several that follow each other count as one.
MOST_ROUNDS = 300


@dataclass(frozen=True)
class SlicedRun:
    """A run of a cell on a server. `at` are the moments of its slices, `foreign` what others took.

    `figures` are the values of its slices by metric. All are in the order of the rounds; a value is
    None where it is not known.
    """

    cell: int
    server: Hashable
    repeat: int
    at: Sequence[float | None]
    foreign: Sequence[float | None] = ()
    figures: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class SlicedCell:
    """The logs of a cell's slices, and the round of each."""

    logs: tuple[float, ...]
    rounds: tuple[Hashable, ...]

    @classmethod
    def of(cls, entries: Sequence[tuple[Hashable, float]]) -> "SlicedCell":
        """Of rounds with their logs."""
        rounds, logs = zip(*entries, strict=True)
        return cls(logs, rounds)

    @property
    def round_logs(self) -> dict[Hashable, float]:
        """The log of each round."""
        return dict(zip(self.rounds, self.logs, strict=True))


Round = tuple[Hashable, ...]
AnyRound = TypeVar("AnyRound", bound=Hashable)


def rounds_of(runs: Sequence[SlicedRun]) -> dict[Round, list[tuple[SlicedRun, int]]]:
    """The rounds of several runs, in order: each with its runs, and the place of their slices."""
    by_number: dict[Round, list[tuple[float, SlicedRun, int]]] = defaultdict(list)
    for run in runs:
        for place, moment in enumerate(run.at):
            if moment is not None:
                by_number[run.server, run.repeat, place].append((moment, run, place))
    rounds: dict[Round, list[tuple[SlicedRun, int]]] = {}
    for number, slices in by_number.items():
        slices.sort(key=lambda entry: entry[0])
        groups = [slices[:1]]
        for before, after in pairwise(slices):
            if after[0] - before[0] > MOST_APART:
                groups.append([])
            groups[-1].append(after)
        for ordinal, group in enumerate(groups):
            if len({run.cell for _moment, run, _place in group}) > 1:
                rounds[*number, ordinal] = [
                    (run, place) for _moment, run, place in group
                ]
    return rounds


def undisturbed(
    rounds: Mapping[Round, list[tuple[SlicedRun, int]]],
) -> dict[Round, list[tuple[SlicedRun, int]]]:
    """The rounds without those in which others took more, or less, than usual from a slice.

    All of them where most are: then the machine is simply not quiet.
    """
    usual: dict[int, float] = {}
    disturbed = []
    for name, slices in rounds.items():
        for run, _place in slices:
            foreign_shares = [share for share in run.foreign if share is not None]
            usual.setdefault(
                id(run), statistics.median(foreign_shares) if foreign_shares else 0.0
            )
        shares = ((_share(run, place), usual[id(run)]) for run, place in slices)
        if any(
            share is not None and abs(share - middle) > DISTURBED
            for share, middle in shares
        ):
            disturbed.append(name)
    return {name: rounds[name] for name in counting(rounds, disturbed)}


def counting(
    rounds: Collection[AnyRound], disturbed: Collection[AnyRound], least: int = 0
) -> list[AnyRound]:
    """The rounds that count: those that nobody disturbed.

    All of them where most are disturbed, or fewer than `least` are not.
    """
    calm = [name for name in rounds if name not in set(disturbed)]
    if 2 * len(calm) < len(rounds) or len(calm) < least:
        return list(rounds)
    return calm


def _share(run: SlicedRun, place: int) -> float | None:
    return run.foreign[place] if place < len(run.foreign) else None


def cells_of(runs: Sequence[SlicedRun], metric: str) -> dict[int, SlicedCell]:
    """By cell the logs of its slices in the rounds that count; without cells that have none."""
    rounds = undisturbed(rounds_of(runs))
    together = math.ceil(len(rounds) / MOST_ROUNDS) or 1
    logs: dict[tuple[int, Hashable], list[float]] = defaultdict(list)
    for position, (name, slices) in enumerate(rounds.items()):
        block: Round = (*name[:2], position // together) if together > 1 else name
        values = [
            run.figures[metric][place] for run, place in slices if metric in run.figures
        ]
        if len(values) < len(slices) or any(
            value is None or value <= 0 for value in values
        ):
            continue
        for (run, _place), value in zip(slices, values, strict=True):
            logs[run.cell, block].append(math.log(value or 0.0))
    cells: dict[int, list[tuple[Hashable, float]]] = defaultdict(list)
    for (cell, rounds_name), logs_there in logs.items():
        cells[cell].append((rounds_name, statistics.fmean(logs_there)))
    return {cell: SlicedCell.of(entries) for cell, entries in cells.items()}


def half_width(cells: Mapping[int, SlicedCell], significance: float) -> float | None:
    """Half the interval of the difference of two cells (logs), by what is left of their rounds.

    None for fewer than LEAST_ROUNDS, or a single cell.
    """
    values = {cell: of_cell.round_logs for cell, of_cell in cells.items()}
    rounds = (
        set.intersection(*(set(of_cell) for of_cell in values.values()))
        if values
        else set()
    )
    number = len(values)
    if number < 2 or len(rounds) < LEAST_ROUNDS:
        return None
    middles = {
        name: statistics.fmean(of_cell[name] for of_cell in values.values())
        for name in rounds
    }
    variances = [
        statistics.variance([of_cell[name] - middles[name] for name in rounds])
        for of_cell in values.values()
    ]
    # A residual has lost its share of the round's mean.
    variance = statistics.fmean(variances) * number / (number - 1)
    freedom = (len(rounds) - 1) * (number - 1)
    quantile = -float(sp.special.stdtrit(freedom, significance / 2))
    return quantile * math.sqrt(2 * variance / len(rounds))
