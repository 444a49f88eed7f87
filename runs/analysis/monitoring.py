"""News in a history after points were added: new steps, an alarm, and old news settled.

The expected range of a history's next run, and an alarm for runs of two jobs outside of it.

A single job outside is mostly a disturbed one, so a second one must agree. The alarm reports a
collapse with the second job, and leaves 5 % to change_points.find(), a few points later.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy as sp

from runs.analysis import change_points
from runs.analysis.change_points import SAME_PLACE, ChangePoint
from runs.analysis.inference.verdicts import MINIMUM_EFFECT
from runs.analysis.noise import spread

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
    """A point outside of the expected range, as a second job has confirmed.

    `ratio` is that to the median of the recent runs, `position` the point's.
    """

    value: float
    ratio: float
    expected: ExpectedRange
    position: int = 0


def expected_range(history: Sequence[float | Sequence[float]]) -> ExpectedRange | None:
    """The range of the next single run; None if fewer than MINIMUM_RUNS recent ones are known.

    On logs, the widest of three: the prediction interval by Student's t with a robust standard
    deviation (p = 0.001), the farthest of the recent runs, and the minimum effect. Because of the
    second, kinds of spikes that the history already has are no news. Raises ValueError as
    change_points.find().
    """
    changes = change_points.find(history)
    level = history[changes[-1].position :] if changes else history
    runs = [
        run
        for point in level
        for run in (point if isinstance(point, Sequence) else (point,))
    ][-RECENT:]
    if len(runs) < MINIMUM_RUNS:
        return None
    logs = np.log(np.array(runs, dtype=float))
    median = float(np.median(logs))

    quantile = float(sp.special.stdtrit(len(logs) - 1, 1 - SIGNIFICANCE / 2))
    predicted = quantile * spread(logs) * math.sqrt(1 + 1 / len(logs))
    farthest = float(np.abs(logs - median).max())
    bound = max(predicted, farthest, math.log1p(MINIMUM_EFFECT))
    return ExpectedRange(
        math.exp(median), math.exp(median - bound), math.exp(median + bound)
    )


Values = Sequence[float]

RULES = 4
"""The version of the rules, stored with each change. Version 1 placed a step where it was found
first, and knew no interval of places; 2 had figures from before a step was placed; 3 counted every
step but one as noise."""


@dataclass(frozen=True)
class Known:
    """Something that was reported before. `position` counts in the history being analysed.

    `settled` says whether a person, or later runs, have decided; `refuted` how, and `by_person`
    who: what later points refuted, further ones may show again.
    """

    id: int
    kind: Literal["step", "alarm"]
    position: int
    ratio: float
    settled: bool = False
    refuted: bool = False
    by_person: bool = False


@dataclass(frozen=True)
class News:
    """What to report: `steps`, and an `alarm` for the last point. The rest updates known news.

    `moved` has steps that nobody decided on with what is known of them now, and `reopened` those of
    them that had been refuted; `confirmed` open alarms; `refuted` open alarms and steps.
    """

    steps: tuple[ChangePoint, ...] = ()
    alarm: Alarm | None = None
    moved: tuple[tuple[int, ChangePoint], ...] = ()
    confirmed: tuple[int, ...] = ()
    refuted: tuple[int, ...] = ()
    reopened: tuple[int, ...] = ()


def news(
    history: Sequence[Values],
    known_changes: Sequence[Known],
    *,
    last_is_new: bool = True,
    jobs: Sequence[Values] = (),
    moves: Collection[int] = (),
) -> News:
    """Analyse a history whose points have the positive values of their repeats.

    A step is reported once, though its place moves by a few points as others come. The alarm is for
    the end only, if the last point is new: nobody needs one for imported points. `jobs` has the
    values of each job that measured the last point, `moves` the places at which the series moved
    that were measured with it.
    """
    change_points_found = change_points.find(history, moves=moves)
    steps = [change for change in known_changes if change.kind == "step"]
    alarms = [
        change
        for change in known_changes
        if change.kind == "alarm" and not change.settled
    ]
    confirmed = [alarm for alarm in alarms if _match(change_points_found, alarm)]
    places = _matched(change_points_found, steps)
    # A refuted one is free for what is found near its place.
    free = [step for step in steps if step.refuted and not step.by_person]
    fixed = [step for step in steps if step not in free]
    decided = [(change.position, change.ratio) for change in fixed if change.settled]
    lost = [
        change
        for change in fixed
        if not change.settled
        and change.id not in places
        and _is_inside(history, change)
    ]
    return News(
        steps=tuple(
            change_point
            for change_point in change_points.unreported(change_points_found, decided)
            if change_point not in places.values()
        ),
        alarm=_alarm(history, known_changes, change_points_found, jobs)
        if last_is_new
        else None,
        moved=tuple(
            (step.id, places[step.id])
            for step in steps
            if step.id in places and (step in free or not step.settled)
        ),
        confirmed=tuple(change.id for change in confirmed),
        refuted=tuple(
            alarm.id
            for alarm in alarms
            if alarm not in confirmed and _is_refuted(history, alarm)
        )
        + tuple(change.id for change in lost),
        reopened=tuple(change.id for change in free if change.id in places),
    )


class _Match(NamedTuple):
    """A known step that may be a change, in the order in which they are settled."""

    is_refuted: bool
    distance: int
    step: int
    change: int


def _matched(
    changes: Sequence[ChangePoint], steps: Sequence[Known]
) -> dict[int, ChangePoint]:
    """The change that each known step is, no change being two of them: the nearest pairs first.

    Steps that were refuted come last.
    """
    pairs = sorted(
        _Match(step.refuted, abs(change.position - step.position), step.id, number)
        for step in steps
        for number, change in enumerate(changes)
        if change.is_same(step.position, step.ratio)
    )
    matched: dict[int, int] = {}
    for pair in pairs:
        if pair.step not in matched and pair.change not in matched.values():
            matched[pair.step] = pair.change
    return {key: changes[number] for key, number in matched.items()}


def _is_inside(history: Sequence[Values], step: Known) -> bool:
    """Whether the analysed points can show the step: near the start of a window they cannot."""
    return len(history) <= change_points.WINDOW or step.position >= 2 * SAME_PLACE


def again(
    history: Sequence[Values],
    known_changes: Iterable[Known],
    *,
    moves: Collection[int] = (),
) -> dict[int, ChangePoint | None]:
    """What these rules say of steps that were reported before; None where they find none."""
    changes = change_points.find(history, moves=moves)
    return {
        change.id: _match(changes, change)
        for change in known_changes
        if change.kind == "step"
    }


def _match(changes: Iterable[ChangePoint], known_change: Known) -> ChangePoint | None:
    """The nearest change that may be the known one."""
    near = [
        change_point
        for change_point in changes
        if change_point.is_same(known_change.position, known_change.ratio)
    ]
    return min(
        near,
        key=lambda change_point: abs(change_point.position - known_change.position),
        default=None,
    )


def _alarm(
    history: Sequence[Values],
    known_changes: Iterable[Known],
    changes: Sequence[ChangePoint],
    jobs: Sequence[Values],
) -> Alarm | None:
    """An alarm where two jobs agree: most of the last point's, or the last two points."""
    last_position = len(history) - 1
    if any(last_position - step.position <= SAME_PLACE for step in changes):
        return None  # A change at the very end is a step already.
    for position, two_jobs in (
        (last_position, jobs),
        (last_position - 1, history[-2:]),
    ):
        expected = expected_range(history[: max(position, 0)])
        if expected is None or not _agree(two_jobs, expected):
            continue
        value = statistics.median(history[position])
        raised = Alarm(value, value / expected.median, expected, position)
        if not _was_told(raised, known_changes):
            return raised
    return None


def _agree(jobs: Sequence[Values], expected: ExpectedRange) -> bool:
    """Whether two jobs, and more than half of all, are outside on the same side."""
    medians = [statistics.median(values) for values in jobs]
    outside = max(
        sum(value < expected.low for value in medians),
        sum(value > expected.high for value in medians),
    )
    return outside >= 2 and 2 * outside > len(medians)


def _was_told(raised: Alarm, known_changes: Iterable[Known]) -> bool:
    return any(
        change.position == raised.position
        if change.refuted
        else abs(raised.position - change.position) <= SAME_PLACE
        and (change.ratio > 1) == (raised.ratio > 1)
        for change in known_changes
    )


def _is_refuted(history: Sequence[Values], alarm: Known) -> bool:
    """Whether further runs, of the same point or later ones, are as expected before it."""
    expected = expected_range(history[: alarm.position])
    if expected is None:
        return False
    same = history[alarm.position]
    later = [value for point in history[alarm.position + 1 :] for value in point]
    return (len(same) > 1 and _is_within(same, expected)) or (
        bool(later) and _is_within(later, expected)
    )


def _is_within(values: Values, expected: ExpectedRange) -> bool:
    return expected.low <= statistics.median(values) <= expected.high
