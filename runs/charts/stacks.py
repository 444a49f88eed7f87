"""Folded stacks as a tree of functions, and the differences between two of them."""

import math
from collections import Counter
from dataclasses import dataclass, field

from runs.analysis.folded import stacks as folded_stacks

MOST_ROWS = 48
UNKNOWN = "[unknown]"
# Two shares that differ by less may differ by chance alone.
STANDARD_ERRORS = 3


@dataclass
class Frame:
    """A function on a stack, and those that it called. `samples` includes all that it called."""

    name: str
    samples: int = 0
    called: dict[str, "Frame"] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """A function's share of all samples in two profiles, in per cent.

    `doubt` is the standard error of their difference (points), as samples are random.
    """

    name: str
    before: float
    after: float
    doubt: float

    @property
    def points(self) -> float:
        """The difference in percentage points."""
        return self.after - self.before

    @property
    def is_sure(self) -> bool:
        """Whether chance does not explain it."""
        return abs(self.points) > STANDARD_ERRORS * self.doubt


def tree_of(folded: str) -> Frame:
    """All stacks as one tree from its root `all`. Lines that are not folded stacks are left out."""
    root = Frame("all")
    for names, samples in folded_stacks(folded):
        frame = root
        frame.samples += samples
        # What perf cannot name is one box, not a tower of them.
        pairs = zip(names, ["", *names], strict=False)
        named = [name for name, below in pairs if not name == below == UNKNOWN]
        for name in named[: MOST_ROWS - 1]:
            frame = frame.called.setdefault(name, Frame(name))
            frame.samples += samples
    return root


def own_samples(root: Frame) -> Counter[str]:
    """The samples in each function itself, wherever it was called from."""
    found: Counter[str] = Counter()
    waiting = [root]
    while waiting:
        frame = waiting.pop()
        below = sum(each.samples for each in frame.called.values())
        found[frame.name] += frame.samples - below
        waiting += frame.called.values()
    return +found


def changes(before: Frame, after: Frame) -> list[Change]:
    """Every function's own share in both, those that differ most first."""
    left, right = own_samples(before), own_samples(after)
    found = [
        change(name, left[name], before.samples, right[name], after.samples)
        for name in left.keys() | right.keys()
    ]
    return sorted(found, key=lambda each: (-abs(each.points), each.name))


def change(name: str, before: int, all_before: int, after: int, all_after: int) -> Change:
    """The change of one share: `before` of `all_before` samples to `after` of `all_after`."""
    left, right = before / max(all_before, 1), after / max(all_after, 1)
    variance = left * (1 - left) / max(all_before, 1) + right * (1 - right) / max(all_after, 1)
    return Change(name, 100 * left, 100 * right, 100 * math.sqrt(variance))
