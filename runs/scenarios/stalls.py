"""Seconds in which nothing was committed although the load was on."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runs.execution.bench import Bench
from runs.tools.pgbench import ProgressPoint

# Fewer may be an accident of where one interval ends.
SHORTEST_SECONDS = 2.0
# Where transactions are rare, seconds without one are nothing to tell: so many should have come.
MISSED_TRANSACTIONS = 20


@dataclass(frozen=True)
class Stall:
    """No transaction from `begun` on for `seconds`; both in seconds of the load."""

    begun: float
    seconds: float


def longest(points: Sequence[ProgressPoint]) -> Stall | None:
    """The longest stall in a progress at regular intervals; None where there is none to tell.

    The first interval holds the making of connections and does not count.
    """
    known = [point for point in points[1:] if point.tps is not None]
    usual = sum(point.tps or 0.0 for point in known) / len(known) if known else 0.0
    found: Stall | None = None
    begun: float | None = None
    for before, point in pairwise(points):
        if point.tps != 0:
            begun = None
            continue
        begun = before.seconds if begun is None else begun
        if found is None or point.seconds - begun > found.seconds:
            found = Stall(begun, point.seconds - begun)
    if found is None or found.seconds < SHORTEST_SECONDS:
        return None
    return found if found.seconds * usual >= MISSED_TRANSACTIONS else None


def note(bench: Bench, points: Sequence[ProgressPoint]) -> None:
    """Put the result in doubt if the load stood still."""
    if stall := longest(points):
        bench.note(
            "load_stalled",
            f"No transaction ended for {stall.seconds:.0f} s, from second {stall.begun:.0f} on: "
            "the server, its disk or the network stood still. Look at the series of that time.",
        )
