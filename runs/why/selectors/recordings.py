"""What runs of their own recorded on both sides, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.analysis.why.functions import Compared
from runs.analysis.why.waits import Slept

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Instructions:
    """Instructions of a transaction on both sides, and the functions that differ most: (a, b).

    Functions without a name are one, `0x`.
    """

    a: int
    b: int
    functions: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Call:
    """A system call of a and of b: its share of the time, calls per transaction, share that fails.

    The time is that in all system calls.
    """

    name: str
    a: Triple
    b: Triple


@dataclass(frozen=True)
class Stack:
    """Where sessions call for something, by function, the innermost first.

    `share` is that of all that were seen of the side, `is_of_b` which one.
    """

    is_of_b: bool
    call: str
    functions: str
    share: float


@dataclass(frozen=True)
class Recorded:
    """`instructions` are those with all pages in memory, `reading` those that read them.
    `stacks` are of semaphores, `sleeps` of where sessions left the processor.

    `profiles` are the newest profiled runs of both sides, None without `profile`; `missing` are
    notes of runs that should have recorded something, why they did not.
    """

    instructions: Instructions | None = None
    reading: Instructions | None = None
    waits: Sequence[Slept] = ()
    calls: Sequence[Call] = ()
    stacks: Sequence[Stack] = ()
    sleeps: Sequence[Stack] = ()
    profile: Compared | None = None
    profiles: tuple[int, int] | None = None
    missing: Sequence[Mapping[str, Any]] = field(default=())
