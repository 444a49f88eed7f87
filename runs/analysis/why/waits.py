"""What blocked sessions sleep for: the time that is blocked, split by wait events.

Only samples of sleeping sessions count: one that was woken keeps its event until it runs again, and
then waits for a processor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from runs.analysis.why.parts import Estimate

# What the server waits for of its client is the client's time, or the wire.
OF_CLIENT = "Client"
NO_EVENT = "none"
MOST_EVENTS = 8
# Of a normal distribution, for 95 %.
QUANTILE = 1.96


@dataclass(frozen=True)
class Sampled:
    """Samples of all sessions of a run by (type, event): asleep, and `total` of any state."""

    asleep: dict[tuple[str, str], int]
    total: int


@dataclass(frozen=True)
class Slept:
    """Seconds per transaction that sessions slept for an event, on both sides; `b` less `a`.

    `type` and `event` are PostgreSQL's; `none` where it names none.
    """

    type: str
    event: str
    a: float
    b: float
    difference: Estimate


def sampled(rows: Sequence[Sequence[str]]) -> Sampled:
    """Of the rows (type, event, asleep, runnable) that a run keeps. Raises ValueError."""
    asleep: dict[tuple[str, str], int] = {}
    total = 0
    for row in rows:
        kind, event = row[:2]
        slept, ran = map(int, row[2:])
        asleep[kind, event] = slept
        total += slept + ran
    return Sampled(asleep, total)


def split(
    a: Sampled, b: Sampled, seconds: tuple[float, float], clients: tuple[int, int]
) -> list[Slept]:
    """By event, the greatest difference first. `seconds` of a transaction are those of a and b.

    The interval is that of two shares, as if all `clients` were one: those who wait for one lock
    sleep at the same time.
    """
    sleeps = []
    for kind, event in a.asleep.keys() | b.asleep.keys():
        if kind == OF_CLIENT or not (a.total and b.total):
            continue
        sides = [
            (
                sampled.asleep.get((kind, event), 0) / sampled.total,
                sampled.total / sessions,
                seconds_of_side,
            )
            for sampled, seconds_of_side, sessions in zip(
                (a, b), seconds, clients, strict=True
            )
        ]
        of_a, of_b = (
            share * seconds_of_side for share, _moments, seconds_of_side in sides
        )
        error = sqrt(
            sum(
                share * (1 - share) / n * seconds_of_side**2
                for share, n, seconds_of_side in sides
            )
        )
        if of_a or of_b:
            difference = Estimate.within(of_b - of_a, QUANTILE * error)
            sleeps.append(Slept(kind, event, of_a, of_b, difference))
    return sorted(sleeps, key=lambda slept: -abs(slept.difference.value))[:MOST_EVENTS]
