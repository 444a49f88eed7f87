"""Which functions take more of a transaction's processor time, by profiles of both sides."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from runs.analysis.folded import stacks
from runs.analysis.why.parts import Estimate, two_means
from runs.analysis.why.waits import QUANTILE

# The process that perf saw, first on each folded stack.
OF_SERVER = frozenset({"postgres", "postmaster"})
# Many functions are compared at once: of 95 % intervals some would exclude 0 by chance.
SURE = 1.5
MOST_FUNCTIONS = 15
LEAST_SEEN = 0.01
UNNAMED = "["


@dataclass(frozen=True)
class Function:
    """Seconds of processor time per transaction in a function itself, on both sides."""

    name: str
    a: float
    b: float
    difference: Estimate


@dataclass(frozen=True)
class Compared:
    """What two profiles say. `samples` are those of the server's processes, of a and b.

    `functions` surely differ. `enough` samples a side would show a difference of 1 % of the
    processor time in the most used function. `unnamed` is the greatest share of samples in files
    without symbols, by file.
    """

    samples: tuple[int, int]
    functions: Sequence[Function]
    enough: int
    unnamed: Mapping[str, float]


def samples_of(folded: str) -> Counter[str]:
    """The samples of the server's processes by the function that was on the processor."""
    samples_by_function: Counter[str] = Counter()
    for frames, samples in stacks(folded):
        if frames[0] in OF_SERVER:
            samples_by_function[frames[-1]] += samples
    return samples_by_function


# The kernel's functions are marked, and its entry for a system call is named by the architecture.
OF_KERNEL = "_[k]"
_CALL = re.compile(r"\A(?:__[a-z0-9]+_)?sys_(\w+)_\[k\]\Z")
PREEMPTED = "preempted"
MOST_FRAMES = 4


def sleeps_of(folded: str) -> Counter[tuple[str, str]]:
    """Where sessions left the processor: (system call, functions, the innermost first).

    Who left it within no system call was preempted.
    """
    sleeps_by_call: Counter[tuple[str, str]] = Counter()
    for (command, *frames), samples in stacks(folded):
        if command not in OF_SERVER:
            continue
        calls = [
            call_match[1] for frame in frames if (call_match := _CALL.search(frame))
        ]
        own_frames = [frame for frame in frames if not frame.endswith(OF_KERNEL)][
            -MOST_FRAMES:
        ]
        key = (calls[0], " < ".join(reversed(own_frames))) if calls else (PREEMPTED, "")
        sleeps_by_call[key] += samples
    return sleeps_by_call


@dataclass(frozen=True)
class _Side:
    """The samples of each run with their number, those of all together, and the seconds."""

    runs: Sequence[tuple[Counter[str], int]]
    every: Counter[str]
    number: int
    seconds: float


def _side(runs: Sequence[Counter[str]], seconds: float) -> _Side:
    every = sum(runs, Counter())
    numbered = [(run, number) for run in runs if (number := run.total())]
    return _Side(numbered, every, every.total(), seconds)


def compare(
    a: Sequence[Counter[str]], b: Sequence[Counter[str]], seconds: tuple[float, float]
) -> Compared | None:
    """The functions that surely differ, the greatest difference first; None without samples.

    `a` and `b` are the samples of each run, `seconds` the server's processor time per transaction.
    """
    sides = _side(a, seconds[0]), _side(b, seconds[1])
    if not all(side.number for side in sides):
        return None
    names = sides[0].every.keys() | sides[1].every.keys()
    functions = [_function(name, sides) for name in names]
    sure = sorted(
        filter(_is_sure, functions),
        key=lambda function: -abs(function.difference.value),
    )
    most = max(count / side.number for side in sides for count in side.every.values())
    return Compared(
        (sides[0].number, sides[1].number),
        sure[:MOST_FUNCTIONS],
        round(2 * most * (1 - most) * (SURE * QUANTILE / LEAST_SEEN) ** 2),
        {
            name: max(side.every[name] / side.number for side in sides)
            for name in sorted(names)
            if name.startswith(UNNAMED)
        },
    )


def _function(name: str, sides: Sequence[_Side]) -> Function:
    """Its difference over runs where each side has several, else as samples of one scatter."""
    values, variance = [], 0.0
    for side in sides:
        values.append([side.seconds * run[name] / number for run, number in side.runs])
        # One sample more, so that a function that was never seen has an error, too.
        share = (side.every[name] + 1) / (side.number + 1)
        variance += share * (1 - share) / side.number * side.seconds**2
    of_a, of_b = (sum(of_side) / len(of_side) for of_side in values)
    if min(map(len, values)) > 1:
        return Function(name, of_a, of_b, two_means(*values))
    return Function(
        name, of_a, of_b, Estimate.within(of_b - of_a, QUANTILE * sqrt(variance))
    )


def _is_sure(function: Function) -> bool:
    value, high = function.difference.value, function.difference.high
    return high is not None and abs(value) > SURE * (high - value)
