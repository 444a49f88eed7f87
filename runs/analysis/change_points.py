"""Finds where the level of a history changes for good: revisions, nights, uploads in order.

The method and simulations of it are in docs/statistics.md. In short: take logs of the medians of
the points; remove spikes; search seeded intervals for the split with the greatest t-statistic,
whose error accounts for autocorrelation; keep the narrowest significant ones; then settle each
place between its neighbours, and require an effect of at least 3 % between the medians. A change
that is not known yet counts as noise, so search again with the noise around those that were found.
What was found gets its likeliest place, and those that are likely as well.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from runs.analysis.arrays import Floats, Places
from runs.analysis.inference.verdicts import MINIMUM_EFFECT
from runs.analysis.noise import HistoryNoise, estimate, replace_spikes

SIGNIFICANCE = 0.001
MINIMUM_SEGMENT = 3
MINIMUM_SEGMENT_OF_SINGLE_RUNS = 6
"""In a thousand single runs, three disturbed ones in a row must be expected."""

WINDOW = 300
"""Points to analyse when one is added: a change shows within a dozen points, or not at all."""

HUBER = 1.5
"""Standard deviations from its level beyond which a point says no more about a place."""

LIKELY = 7.35
"""Twice the log-likelihood that places in the 95 % interval may lack: (1 - exp(-x/2))² = 0.95."""

SAME_PLACE = 10
"""Two changes at most this many points apart, in the same direction, are the same one."""


@dataclass(frozen=True)
class ChangePoint:
    """The level changes at `position`, the index of the first point of the new level.

    `before` and `after` are the medians of the points on both sides, up to the next changes;
    `ratio` is after / before. `p_value` is corrected for trying every place (Bonferroni). The true
    place is from `earliest` to `latest` in about 95 of 100 cases.
    """

    position: int
    before: float
    after: float
    ratio: float
    p_value: float
    earliest: int = 0
    latest: int = 0

    def is_same(self, position: int, ratio: float) -> bool:
        """Whether it is the change known there: near, and in the same direction."""
        return abs(self.position - position) <= SAME_PLACE and (self.ratio > 1) == (
            ratio > 1
        )


def find(
    points: Sequence[float | Sequence[float]], *, moves: Collection[int] = ()
) -> tuple[ChangePoint, ...]:
    """The change points of a history, in its order.

    `moves` are places at which others that were measured with it changed: a change that may lie at
    one of them is placed there.

    A point is a value or the values of its repeats, of which the median counts; medians of three
    runs make an alarm far rarer than single runs do. Segments have at least MINIMUM_SEGMENT points
    (MINIMUM_SEGMENT_OF_SINGLE_RUNS if points have fewer than three runs), and neighbours differ by
    at least MINIMUM_EFFECT. 1,000 points take a few ms; when a point is added, the last WINDOW
    points are enough (see `unreported`). Raises ValueError for a value that is not positive, or a
    point without a value.
    """
    history = _History.of(points)
    if len(history.logs) < 2 * history.shortest:
        return ()
    changes: tuple[ChangePoint, ...] = ()
    # What stands out of the history's noise.
    while len(
        significant := _pruned(history, _refined(history, _candidates(history)))
    ) > len(changes):
        changes, history = significant, history.reestimate_noise(significant)
    return _align_with_others(history, changes, moves) if moves else changes


def unreported(
    steps: Iterable[ChangePoint], prior: Iterable[tuple[int, float]]
) -> tuple[ChangePoint, ...]:
    """Those that are not known yet, so that each change is reported once.

    `prior` are (position, ratio) of reported changes, including those that a person has dismissed,
    in the same numbering as `steps`: add the window's start to the positions of a window. As points
    arrive, a place moves by a few of them.
    """
    reported = tuple(prior)
    return tuple(
        change
        for change in steps
        if not any(
            change.is_same(*position_and_ratio) for position_and_ratio in reported
        )
    )


@dataclass(frozen=True)
class _History:
    """Logs of the points, the same without spikes, their noise, and the shortest segment."""

    logs: Floats
    calm: Floats
    sums: Floats
    noise: HistoryNoise
    shortest: int

    @classmethod
    def of(cls, points: Sequence[float | Sequence[float]]) -> _History:
        """Prepare the points. Raises ValueError as find() does."""
        repeats = [
            list(point) if isinstance(point, Sequence) else [point] for point in points
        ]
        if not all(repeats) or not all(
            0 < value < math.inf for runs in repeats for value in runs
        ):
            raise ValueError("A point has a positive value, or several.")
        logs = np.log(
            np.array([statistics.median(runs) for runs in repeats], dtype=float)
        )
        shortest = MINIMUM_SEGMENT_OF_SINGLE_RUNS
        if repeats and statistics.median_low(map(len, repeats)) >= 3:
            shortest = MINIMUM_SEGMENT
        calm = replace_spikes(logs, shortest)
        sums = np.concatenate(([0.0], np.cumsum(calm)))
        return cls(logs, calm, sums, estimate(calm, shortest), shortest)

    def reestimate_noise(self, changes: Iterable[ChangePoint]) -> _History:
        """The same, with the noise that is left between these changes."""
        places = [change.position for change in changes]
        return replace(self, noise=estimate(self.calm, self.shortest, places))


class _Candidate(NamedTuple):
    """A split of an interval, in the order in which they are chosen."""

    length: int
    negative_score: float
    start: int
    position: int


def _candidates(history: _History) -> list[int]:
    """Places of significant changes: from the narrowest intervals, none within another's."""
    threshold = history.noise.threshold(SIGNIFICANCE / len(history.logs))
    significant: list[_Candidate] = []
    for starts, length in _seeded_intervals(len(history.logs), 2 * history.shortest):
        places, scores = _best_splits(history, starts, length)
        significant += [
            _Candidate(length, -float(scores[hit]), int(starts[hit]), int(places[hit]))
            for hit in np.flatnonzero(scores > threshold)
        ]
    chosen: list[int] = []
    for candidate in sorted(significant):
        end = candidate.start + candidate.length
        if not any(candidate.start < position < end for position in chosen):
            chosen.append(candidate.position)
    return sorted(chosen)


def _seeded_intervals(total: int, shortest: int) -> Iterable[tuple[Places, int]]:
    """(starts, length) layer by layer: lengths shrink by the root of 2, neighbours overlap by half.

    S. Kovács, P. Bühlmann, H. Li, A. Munk, "Seeded binary segmentation", Biometrika 110, 2023.
    """
    length, shrunk = total, float(total)
    while length >= shortest:
        count = 2 * math.ceil(total / length) - 1
        yield np.unique(np.linspace(0, total - length, count).astype(np.int64)), length
        shrunk /= math.sqrt(2)
        length = math.floor(shrunk)


def _best_splits(
    history: _History, starts: Places, length: int
) -> tuple[Places, Floats]:
    """(place, t-statistic) of the best split of each interval."""
    left_counts = np.arange(history.shortest, length - history.shortest + 1)
    right = length - left_counts
    begin, end = history.sums[starts][:, None], history.sums[starts + length][:, None]
    middle = history.sums[starts[:, None] + left_counts]
    differences = np.abs((end - middle) / right - (middle - begin) / left_counts)
    scores = differences / history.noise.errors(left_counts, right)
    best = scores.argmax(axis=1)
    return starts + left_counts[best], scores[np.arange(len(starts)), best]


def _refined(history: _History, places: Sequence[int]) -> list[int]:
    """Each place where both its sides fit best, with its neighbours fixed.

    The interval that showed a change is narrow, so it determines the place less well than all
    points up to the next changes do.
    """
    bounds = [0, *places, len(history.logs)]
    for index in range(1, len(bounds) - 1):
        start, end = bounds[index - 1], bounds[index + 1]
        if end - start >= 2 * history.shortest:
            splits, _ = _best_splits(history, np.array([start]), end - start)
            bounds[index] = int(splits[0])
    return bounds[1:-1]


def _pruned(history: _History, places: list[int]) -> tuple[ChangePoint, ...]:
    """Remove the weakest change until all are significant and large enough, then place them.

    What is placed has other sides than before: it is computed, tested and pruned again.
    """
    remaining = places
    while (weakest := _weakest(_changes(history, remaining))) is not None:
        remaining = _refined(
            history, [position for position in remaining if position != weakest]
        )
    placed = _placed_in_order(history, remaining)
    while (weakest := _weakest(placed, history.shortest)) is not None:
        remaining = [change.position for change in placed if change.position != weakest]
        placed = _placed_in_order(history, remaining)
    return tuple(placed)


def _align_with_others(
    history: _History, changes: Sequence[ChangePoint], moves: Collection[int]
) -> tuple[ChangePoint, ...]:
    """Each at the nearest of these places that is as likely as its own."""
    places = [
        min(
            (
                position
                for position in moves
                if change_point.earliest <= position <= change_point.latest
            ),
            key=lambda position: abs(position - change_point.position),
            default=change_point.position,
        )
        for change_point in changes
    ]
    if len(set(places)) < len(places):
        return tuple(changes)
    return tuple(
        replace(change, earliest=change_point.earliest, latest=change_point.latest)
        for change, change_point in zip(_changes(history, places), changes, strict=True)
    )


def _weakest(changes: Sequence[ChangePoint], shortest: int = 0) -> int | None:
    """The place of the smallest change that does not count: too small, by chance, or too near.

    Between two changes there are `shortest` points, as an excursion is none.
    """
    near = {
        place_between
        for first, second in itertools.pairwise(change.position for change in changes)
        if second - first < shortest
        for place_between in (first, second)
    }
    weak = [
        (abs(math.log(change.ratio)), change.position)
        for change in changes
        if change.p_value >= SIGNIFICANCE
        or abs(math.log(change.ratio)) < math.log1p(MINIMUM_EFFECT)
        or change.position in near
    ]
    return min(weak)[1] if weak else None


def _changes(history: _History, places: Sequence[int]) -> list[ChangePoint]:
    """The changes at these places, each with the figures of its own two sides."""
    bounds = [0, *places, len(history.logs)]
    return [
        _change(history, *around)
        for around in zip(bounds, bounds[1:], bounds[2:], strict=False)
    ]


def _change(history: _History, start: int, position: int, end: int) -> ChangePoint:
    before = float(np.median(history.logs[start:position]))
    after = float(np.median(history.logs[position:end]))
    difference = float(
        history.calm[position:end].mean() - history.calm[start:position].mean()
    )
    error = float(
        history.noise.errors(np.array([position - start]), np.array([end - position]))[
            0
        ]
    )
    p_value = min(1.0, len(history.logs) * history.noise.p_value(difference / error))
    return ChangePoint(
        position, math.exp(before), math.exp(after), math.exp(after - before), p_value
    )


def _placed_in_order(history: _History, places: Sequence[int]) -> list[ChangePoint]:
    """Each at its likeliest place, which is after that of the one before: no two have the same."""
    placed: list[ChangePoint] = []
    for position, end in zip(places, [*places, len(history.logs)][1:], strict=True):
        start = placed[-1].position if placed else 0
        placed.append(
            _placed(history, _change(history, start, position, end), start, end)
        )
    figures = _changes(history, [change.position for change in placed])
    return [
        replace(change, earliest=change_point.earliest, latest=change_point.latest)
        for change, change_point in zip(figures, placed, strict=True)
    ]


def _placed(
    history: _History, change: ChangePoint, start: int, end: int
) -> ChangePoint:
    """The change at its likeliest place between its neighbours, with the interval of places.

    The place may be nearer to the end than the shortest segment (a step of single runs is found
    when fewer than six follow it), and the points count as they were measured, beyond HUBER by
    their direction alone.
    """
    logs, position = history.logs[start:end], change.position - start
    for _ in range(5):
        gains = _gains(logs, position, history.noise.sd)
        # What is said for the new level from each place on: the first point is before every one.
        support = np.cumsum(gains[::-1])[::-1][1:]
        likeliest = 1 + int(support.argmax())
        if likeliest == position:
            break
        position = likeliest
    rho = history.noise.autocorrelation
    variance = history.noise.sd**2 * (1 + rho) / (1 - rho)
    likely = 1 + np.flatnonzero(2 * (support.max() - support) <= LIKELY * variance)
    return replace(
        change,
        position=start + position,
        earliest=start + int(likely[0]),
        latest=start + int(likely[-1]),
    )


def _gains(logs: Floats, position: int, sd: float) -> Floats:
    """How much less each point is off the level after the place than off the one before it."""
    return _loss(logs - np.median(logs[:position]), sd) - _loss(
        logs - np.median(logs[position:]), sd
    )


def _loss(off: Floats, sd: float) -> Floats:
    """Half the square, and linear beyond HUBER standard deviations (P. J. Huber, 1964)."""
    size, bound = np.abs(off), HUBER * sd
    loss: Floats = np.where(size <= bound, size**2 / 2, bound * (size - bound / 2))
    return loss
