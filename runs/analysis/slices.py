"""Runs in slices: which rounds count, and what their slices say of each run.

A round has one slice of each run that was measured in turn. It is the unit of inference: what
disturbs the machine for longer disturbs all slices of a round. A round in which somebody came or
went is left out for all runs, by who used the processors, before anybody looks at its figures.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import scipy as sp

# Slices of one number belong to one round only if they begin so soon after each other, beside what
# the slices of a run are apart (s).
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


# The server, the repeat, and which of its rounds.
Round = tuple[Hashable, ...]


@dataclass(frozen=True)
class SlicedCell:
    """The logs of a cell's slices, and the round of each."""

    logs: tuple[float, ...]
    rounds: tuple[Round, ...]

    @classmethod
    def of(cls, entries: Sequence[tuple[Round, float]]) -> "SlicedCell":
        """Of rounds with their logs."""
        rounds, logs = zip(*entries, strict=True)
        return cls(logs, rounds)

    def round_logs(self, server: Hashable) -> dict[Round, float]:
        """The log of each round on a server."""
        return {
            name: log
            for name, log in zip(self.rounds, self.logs, strict=True)
            if name[0] == server
        }


AnyRound = TypeVar("AnyRound", bound=Hashable)


def rounds_of(runs: Sequence[SlicedRun]) -> dict[Round, list[tuple[SlicedRun, int]]]:
    """The rounds of several runs, in order: each with its runs, and the place of their slices."""
    by_number: dict[Round, list[_Begun]] = defaultdict(list)
    for run in runs:
        for begun in _begun_slices(run):
            by_number[run.server, run.repeat, begun.place].append(begun)
    rounds: dict[Round, list[tuple[SlicedRun, int]]] = {}
    for number, slices in by_number.items():
        groups: list[list[_Begun]] = []
        for begun in sorted(slices, key=lambda one_slice: one_slice.at):
            if groups and all(begun.is_in_turn_with(other) for other in groups[-1]):
                groups[-1].append(begun)
            else:
                groups.append([begun])
        for ordinal, group in enumerate(groups):
            if len({begun.run.cell for begun in group}) > 1:
                rounds[*number, ordinal] = [(begun.run, begun.place) for begun in group]
    return rounds


@dataclass(frozen=True)
class _Begun:
    """A slice of a run: when it began, when those before and after it did, and its place.

    `apart` is how far apart the run's slices usually are.
    """

    run: SlicedRun
    place: int
    at: float
    before: float | None
    after: float | None
    apart: float

    def is_in_turn_with(self, other: "_Begun") -> bool:
        """Whether they belong to one round: neither run was a round ahead, or had to wait."""
        if abs(self.at - other.at) > MOST_APART + max(self.apart, other.apart):
            return False
        return self._is_between(other) and other._is_between(self)

    def _is_between(self, other: "_Begun") -> bool:
        """Whether it began between the other's slices of the rounds before and after."""
        is_too_early = other.before is not None and self.at < other.before
        is_too_late = other.after is not None and self.at > other.after
        return not (is_too_early or is_too_late)


def _begun_slices(run: SlicedRun) -> Iterator[_Begun]:
    moments = [moment for moment in run.at if moment is not None]
    gaps = [after - before for before, after in pairwise(moments)]
    apart = max(statistics.median(gaps), 0.0) if gaps else 0.0
    for place, moment in enumerate(run.at):
        if moment is not None:
            before = run.at[place - 1] if place else None
            after = run.at[place + 1] if place + 1 < len(run.at) else None
            yield _Begun(run, place, moment, before, after, apart)


def undisturbed(
    rounds: Mapping[Round, list[tuple[SlicedRun, int]]],
) -> dict[Round, list[tuple[SlicedRun, int]]]:
    """The rounds without those in which others took more, or less, than usual from a slice.

    All of them where most are: then the machine is simply not quiet.
    """
    runs = {id(run): run for slices in rounds.values() for run, _place in slices}
    usual = {key: _usual_share(run) for key, run in runs.items()}
    disturbed = []
    for name, slices in rounds.items():
        shares = ((_share(run, place), usual[id(run)]) for run, place in slices)
        if any(
            share is not None and abs(share - middle) > DISTURBED
            for share, middle in shares
        ):
            disturbed.append(name)
    return {name: rounds[name] for name in counting(rounds, disturbed)}


def _usual_share(run: SlicedRun) -> float:
    known_shares = [share for share in run.foreign if share is not None]
    return statistics.median(known_shares) if known_shares else 0.0


def counting(
    rounds: Collection[AnyRound], disturbed: Collection[AnyRound], least: int = 0
) -> list[AnyRound]:
    """The rounds that count: those that nobody disturbed.

    All of them where most are disturbed, or fewer than `least` are not.
    """
    left_out = set(disturbed)
    calm = [name for name in rounds if name not in left_out]
    if 2 * len(calm) < len(rounds) or len(calm) < least:
        return list(rounds)
    return calm


def _share(run: SlicedRun, place: int) -> float | None:
    return run.foreign[place] if place < len(run.foreign) else None


def cells_of(runs: Sequence[SlicedRun], metric: str) -> dict[int, SlicedCell]:
    """By cell the logs of its slices in the rounds that count; without cells that have none."""
    rounds = undisturbed(rounds_of(runs))
    together = math.ceil(len(rounds) / MOST_ROUNDS) or 1
    logs: dict[tuple[int, Round], list[float]] = defaultdict(list)
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
    cells: dict[int, list[tuple[Round, float]]] = defaultdict(list)
    for (cell, rounds_name), logs_there in logs.items():
        cells[cell].append((rounds_name, statistics.fmean(logs_there)))
    return {cell: SlicedCell.of(entries) for cell, entries in cells.items()}


def half_width(cells: Mapping[int, SlicedCell], significance: float) -> float | None:
    """Half the interval of the difference of two cells (logs), by what is left of their rounds.

    The widest of those on several servers. None for fewer than LEAST_ROUNDS, or a single cell.
    """
    servers = {name[0] for of_cell in cells.values() for name in of_cell.rounds}
    widths = [_half_width_on(server, cells, significance) for server in servers]
    return max((width for width in widths if width is not None), default=None)


def _half_width_on(
    server: Hashable, cells: Mapping[int, SlicedCell], significance: float
) -> float | None:
    logs = {cell: of_cell.round_logs(server) for cell, of_cell in cells.items()}
    values = {cell: of_server for cell, of_server in logs.items() if of_server}
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
