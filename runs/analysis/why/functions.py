"""Which functions take more of a transaction's processor time, by profiles of both sides."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

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
    found: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _blank, number = line.rpartition(" ")
        if stack.partition(";")[0] in OF_SERVER and number.isascii() and number.isdigit():
            found[stack.rpartition(";")[2]] += int(number)
    return found


# The kernel's functions are marked, and its entry for a system call is named by the architecture.
OF_KERNEL = "_[k]"
_CALL = re.compile(r"\A(?:__[a-z0-9]+_)?sys_(\w+)_\[k\]\Z")
PREEMPTED = "preempted"
MOST_FRAMES = 4


def sleeps_of(folded: str) -> Counter[tuple[str, str]]:
    """Where sessions left the processor: (system call, functions, the innermost first).

    Who left it within no system call was preempted.
    """
    found: Counter[tuple[str, str]] = Counter()
    for line in folded.splitlines():
        stack, _blank, number = line.rpartition(" ")
        command, *frames = stack.split(";")
        if command not in OF_SERVER or not (number.isascii() and number.isdigit()):
            continue
        calls = [each[1] for frame in frames if (each := _CALL.search(frame))]
        own = [frame for frame in frames if not frame.endswith(OF_KERNEL)][-MOST_FRAMES:]
        key = (calls[0], " < ".join(reversed(own))) if calls else (PREEMPTED, "")
        found[key] += int(number)
    return found


def compare(
    a: Sequence[Counter[str]], b: Sequence[Counter[str]], seconds: tuple[float, float]
) -> Compared | None:
    """The functions that surely differ, the greatest difference first; None without samples.

    `a` and `b` are the samples of each run, `seconds` the server's processor time per transaction.
    """
    all_a, all_b = sum(a, Counter()), sum(b, Counter())
    n_a, n_b = all_a.total(), all_b.total()
    if not (n_a and n_b):
        return None
    names = all_a.keys() | all_b.keys()
    found = [_function(name, a, b, seconds) for name in names]
    sure = sorted(filter(_is_sure, found), key=lambda each: -abs(each.difference.value))
    most = max(count / n for of, n in ((all_a, n_a), (all_b, n_b)) for count in of.values())
    return Compared(
        (n_a, n_b),
        sure[:MOST_FUNCTIONS],
        round(2 * most * (1 - most) * (SURE * QUANTILE / LEAST_SEEN) ** 2),
        {
            name: max(all_a[name] / n_a, all_b[name] / n_b)
            for name in sorted(names)
            if name.startswith(UNNAMED)
        },
    )


def _function(
    name: str, a: Sequence[Counter[str]], b: Sequence[Counter[str]], seconds: tuple[float, float]
) -> Function:
    """Its difference over runs where each side has several, else as samples of one scatter."""
    sides, variance = [], 0.0
    for runs, whole in zip((a, b), seconds, strict=True):
        sides.append([whole * each[name] / each.total() for each in runs if each.total()])
        n = sum(each.total() for each in runs)
        # One sample more, so that a function that was never seen has an error, too.
        share = (sum(each[name] for each in runs) + 1) / (n + 1)
        variance += share * (1 - share) / n * whole**2
    of_a, of_b = (sum(each) / len(each) for each in sides)
    if min(map(len, sides)) > 1:
        return Function(name, of_a, of_b, two_means(*sides))
    value, width = of_b - of_a, QUANTILE * sqrt(variance)
    return Function(name, of_a, of_b, Estimate(value, value - width, value + width))


def _is_sure(each: Function) -> bool:
    value, high = each.difference.value, each.difference.high
    return high is not None and abs(value) > SURE * (high - value)
