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
        named_rows = [name for name, below in pairs if not name == below == UNKNOWN]
        for name in named_rows[: MOST_ROWS - 1]:
            frame = frame.called.setdefault(name, Frame(name))
            frame.samples += samples
    return root


def own_samples(root: Frame) -> Counter[str]:
    """The samples in each function itself, wherever it was called from."""
    samples: Counter[str] = Counter()
    waiting = [root]
    while waiting:
        frame = waiting.pop()
        below = sum(frame.samples for frame in frame.called.values())
        samples[frame.name] += frame.samples - below
        waiting += frame.called.values()
    return +samples


def changes(before: Frame, after: Frame) -> list[Change]:
    """Every function's own share in both, those that differ most first."""
    before_samples, right = own_samples(before), own_samples(after)
    all_changes = [
        change(name, before_samples[name], before.samples, right[name], after.samples)
        for name in before_samples.keys() | right.keys()
    ]
    return sorted(all_changes, key=lambda change: (-abs(change.points), change.name))


def change(
    name: str, before: int, all_before: int, after: int, all_after: int
) -> Change:
    """The change of one share: `before` of `all_before` samples to `after` of `all_after`."""
    before_share, right = before / max(all_before, 1), after / max(all_after, 1)
    variance = before_share * (1 - before_share) / max(all_before, 1) + right * (
        1 - right
    ) / max(all_after, 1)
    return Change(name, 100 * before_share, 100 * right, 100 * math.sqrt(variance))
