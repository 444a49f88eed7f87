"""Stalls: seconds in which a load ends no transaction, or its generator prints nothing.

Both make the result doubtful.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from runs.execution.bench import Bench
from runs.tools.pgbench import ProgressPoint
from runs.wording import gettext_noop as _

# Fewer may be an accident of where an interval ends.
SHORTEST_SECONDS = 2.0
# If transactions are rare, a second without one means nothing: this many should have come.
MISSED_TRANSACTIONS = 20
# A line of a busy generator comes late by less than half an interval.
MOST_INTERVALS = 2.5


@dataclass(frozen=True)
class Stall:
    """No transaction for `seconds`, starting at `begun`; both in seconds of the load."""

    begun: float
    seconds: float


def longest(points: Sequence[ProgressPoint]) -> Stall | None:
    """The longest stall in a progress at regular intervals; None if there is none.

    The first interval includes connecting and does not count.
    """
    known_points = [point for point in points[1:] if point.tps is not None]
    usual = (
        sum(point.tps or 0.0 for point in known_points) / len(known_points)
        if known_points
        else 0.0
    )
    stall: Stall | None = None
    begun: float | None = None
    for before, point in pairwise(points):
        if point.tps != 0:
            begun = None
            continue
        begun = before.seconds if begun is None else begun
        if stall is None or point.seconds - begun > stall.seconds:
            stall = Stall(begun, point.seconds - begun)
    if stall is None or stall.seconds < SHORTEST_SECONDS:
        return None
    return stall if stall.seconds * usual >= MISSED_TRANSACTIONS else None


def longest_hole(points: Sequence[ProgressPoint]) -> Stall | None:
    """The longest time between two lines of one generator; None if all came in their turn.

    A generator that is stopped, as with its machine, ends no transaction, and prints no line that
    says so. Two intervals may pass where a line is late.
    """
    gaps = [
        (later.seconds - before.seconds, before) for before, later in pairwise(points)
    ]
    if not gaps:
        return None
    interval = median_low(gap for gap, _before in gaps)
    gap, before = max(gaps, key=lambda gap_and_point: gap_and_point[0])
    return Stall(before.seconds, gap) if gap > MOST_INTERVALS * interval else None


def note_holes(bench: Bench, points: Sequence[ProgressPoint]) -> None:
    """Make the result doubtful if the generator stood still."""
    if hole := longest_hole(points):
        bench.note(
            "generator_stalled",
            _(
                "The load generator printed nothing for %(seconds)s s, from second %(begun)s on: "
                "it stood still, or its machine did."
            ),
            seconds=f"{hole.seconds:.0f}",
            begun=f"{hole.begun:.0f}",
        )


def note_stalls(bench: Bench, points: Sequence[ProgressPoint]) -> None:
    """Make the result doubtful if the load stood still."""
    if stall := longest(points):
        bench.note(
            "load_stalled",
            _(
                "No transaction ended for %(seconds)s s, from second %(begun)s on: the server, "
                "its disk or the network stood still. Look at the series of that time."
            ),
            seconds=f"{stall.seconds:.0f}",
            begun=f"{stall.begun:.0f}",
        )
