"""What a plan shows, in the order of weight: where the time is, what was estimated wrong, what
spilled, what did not come; and of two plans what differs and costs the difference.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from runs.query_plans import parallel
from runs.query_plans.comparing import Difference, Pair, compare
from runs.query_plans.node import Node, Plan

# A part of the time below this is not worth a sentence of its own; nor is a smaller error of rows.
NOTABLE_SHARE, NOTABLE_MISESTIMATE = 0.1, 10.0
# A join that throws away more pairs than this, and ten times what it keeps.
MANY_REMOVED = 10_000.0
_DISK = re.compile(r"Disk: (\d++)kB|\A(\d++)kB")
_BATCHES = re.compile(r"(?:Batches: )?(\d++)")


class Part(StrEnum):
    """What time is spent on besides nodes."""

    NODE = "node"
    JIT = "jit"
    TRIGGERS = "triggers"
    PLANNING = "planning"


@dataclass(frozen=True)
class Spent:
    """Milliseconds of a part, and its share of planning and execution together."""

    part: Part
    ms: float
    share: float
    node: Node | None = None


@dataclass(frozen=True)
class Misestimated:
    """A node whose rows are at least ten times off."""

    node: Node
    factor: float


@dataclass(frozen=True)
class Spilled:
    """A node that wrote to disk: kilobytes, or 0 where only batches are printed."""

    node: Node
    kilobytes: int


@dataclass(frozen=True)
class Missing:
    """A Gather for which fewer workers came than were planned."""

    node: Node
    planned: int
    launched: int


@dataclass(frozen=True)
class Removed:
    """A join that threw so many pairs away by its filter."""

    node: Node
    rows: float


Finding = Spent | Misestimated | Spilled | Missing | Removed


@dataclass(frozen=True)
class Compared:
    """Two plans: milliseconds of both, and of the slower one the node that costs the difference.

    `instead` is what the faster one has in its place, if that is told apart.
    """

    left_ms: float
    right_ms: float
    node: Node | None
    instead: Node | None
    misestimated: Misestimated | None

    @property
    def is_right_slower(self) -> bool:
        """Which one is slower."""
        return self.right_ms > self.left_ms

    @property
    def factor(self) -> float:
        """The slower time by the faster one."""
        low, high = sorted((self.left_ms, self.right_ms))
        return high / low if low else float("inf")


def findings(plan: Plan) -> list[Finding]:
    """What is worth a sentence, the heaviest first."""
    return [
        *_spent(plan),
        *_missing(plan),
        *_misestimated(plan),
        *_spilled(plan),
        *_removed(plan),
    ]


def parts(plan: Plan) -> list[Spent]:
    """JIT, triggers and planning, as far as they are printed."""
    whole_ms = plan.whole_ms
    times = (
        (Part.PLANNING, plan.planning_ms),
        (Part.JIT, plan.jit_ms),
        (Part.TRIGGERS, plan.triggers_ms),
    )
    return [
        Spent(part, ms, min(1.0, ms / whole_ms))
        for part, ms in times
        if ms and whole_ms
    ]


def compared(left: Plan, right: Plan) -> Compared | None:
    """What differs and costs the difference; None for plans without times."""
    if not left.total_ms or not right.total_ms:
        return None
    is_right_slower = right.total_ms > left.total_ms
    pairs = compare(left, right)
    differing: list[tuple[Node, Node | None]] = []
    for pair in pairs:
        slower = pair.right if is_right_slower else pair.left
        other = pair.left if is_right_slower else pair.right
        if slower is not None and pair.differences:
            differing.append((slower, other))
    node, other = max(
        differing, key=lambda nodes: _gain(nodes[0], nodes[1]), default=(None, None)
    )
    only_faster = Difference.ONLY_LEFT if is_right_slower else Difference.ONLY_RIGHT
    if node is not None and other is None:
        other = _replacement(node, pairs, only_faster)
    wrong = None
    if node is not None:
        estimates = [Misestimated(n, n.misestimate or 1.0) for _depth, n in node.walk()]
        worst = max(estimates, key=lambda estimate: estimate.factor)
        wrong = worst if worst.factor >= NOTABLE_MISESTIMATE else None
    return Compared(left.total_ms, right.total_ms, node, other, wrong)


def _gain(slower: Node, other: Node | None) -> float:
    return (slower.own_ms or 0.0) - (
        (other.own_ms or 0.0) if other is not None else 0.0
    )


def _replacement(
    node: Node, pairs: Sequence[Pair], only_faster: Difference
) -> Node | None:
    """The join, scan or other node of the same family that only the faster plan has."""
    family = _family(node)
    for pair in pairs:
        other = pair.left or pair.right
        if (
            only_faster in pair.differences
            and other is not None
            and _family(other) == family
        ):
            return other
    return None


def _family(node: Node) -> str:
    for word in ("Join", "Scan", "Aggregate", "Sort"):
        if word in node.kind:
            return word
    return "Join" if node.kind.startswith("Nested Loop") else node.kind


def _spent(plan: Plan) -> Iterator[Spent]:
    whole_ms = plan.whole_ms
    if not whole_ms:
        return
    of_nodes = [
        Spent(Part.NODE, node.own_ms, min(1.0, node.own_ms / whole_ms), node)
        for node in plan.nodes()
        if node.own_ms
    ]
    spent = sorted([*parts(plan), *of_nodes], key=lambda part: part.ms, reverse=True)
    if not spent:
        return
    first, *others = spent
    yield first
    # Of the rest what is no node of the plan, which nobody looks for there.
    yield from (
        part
        for part in others
        if part.part != Part.NODE and part.share >= NOTABLE_SHARE
    )


def _misestimated(plan: Plan) -> Iterator[Misestimated]:
    """The lowest node whose rows are off: those above follow from it."""
    stopped = set(_stopped_by_a_limit(plan.root))
    wrong = [
        Misestimated(node, node.misestimate)
        for node in plan.nodes()
        if (node.misestimate or 1.0) >= NOTABLE_MISESTIMATE
        and node.misestimate
        and not any(
            (child.misestimate or 1.0) >= NOTABLE_MISESTIMATE for child in node.children
        )
        and id(node) not in stopped
    ]
    yield from sorted(wrong, key=lambda found: found.factor, reverse=True)[:1]


def _stopped_by_a_limit(node: Node, *, is_below: bool = False) -> Iterator[int]:
    """The `id` of each node that gave fewer rows than estimated, as nobody asked for more."""
    if is_below and (node.rows or 0.0) < (node.estimated_rows or 0.0):
        yield id(node)
    for child in node.children:
        yield from _stopped_by_a_limit(child, is_below=is_below or node.kind == "Limit")


def _spilled(plan: Plan) -> Iterator[Spilled]:
    for node in plan.nodes():
        kilobytes = 0
        for name in ("Sort Method", "Disk Usage", "Storage"):
            text = node.detail(name)
            disk = (
                _DISK.search(text)
                if "external" in text or "Disk" in name + text
                else None
            )
            kilobytes += int(disk[1] or disk[2]) if disk else 0
        batches = _BATCHES.search(node.detail("Batches") or "")
        in_buckets = re.search(r"Batches: (\d+)", node.detail("Buckets"))
        count = max(
            (int(number[1]) for number in (batches, in_buckets) if number), default=1
        )
        if kilobytes or count > 1:
            yield Spilled(node, kilobytes)


def _missing(plan: Plan) -> Iterator[Missing]:
    for node in plan.nodes():
        workers = parallel.workers_of(node)
        if workers is not None and workers.launched < workers.planned:
            yield Missing(node, workers.planned, workers.launched)


def _removed(plan: Plan) -> Iterator[Removed]:
    for node in plan.nodes():
        text = node.detail("Rows Removed by Join Filter")
        if not re.fullmatch(r"\d{1,18}(?:\.\d{1,3})?", text):
            continue
        rows = float(text) * (node.loops or 1)
        if rows >= MANY_REMOVED and rows >= 10 * (node.rows or 0.0) * (node.loops or 1):
            yield Removed(node, rows)
