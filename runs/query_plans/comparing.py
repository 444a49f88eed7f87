"""Two plans side by side: which nodes correspond, and how they differ.

Nodes correspond in printed order, by what they do and with what: the longest common
sequence of both (difflib). Parallel or partial variants of a node correspond to the plain one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from runs.query_plans.node import Node, Plan

# Smaller differences, or smaller parts of their plan, mean nothing.
NOTABLE_RATIO = 2.0
NOTABLE_SHARE = 0.01
_STAGES = ("Parallel ", "Partial ", "Finalize ")


class Difference(StrEnum):
    """How two corresponding nodes differ."""

    ONLY_LEFT = "only_left"
    ONLY_RIGHT = "only_right"
    EXECUTED_LEFT = "executed_left"
    EXECUTED_RIGHT = "executed_right"
    KIND = "kind"
    LOOPS = "loops"
    ROWS = "rows"
    FASTER = "faster"
    SLOWER = "slower"


@dataclass(frozen=True)
class Pair:
    """A line of the comparison: the corresponding nodes, with their depths, and differences."""

    left: Node | None
    right: Node | None
    depth_left: int
    depth_right: int
    differences: tuple[Difference, ...]


def compare(left_plan: Plan, right: Plan) -> list[Pair]:
    """Every node of both, in printed order."""
    lefts, rights = list(left_plan.root.walk()), list(right.root.walk())
    matcher = SequenceMatcher(
        None, list(_keys(left_plan.root)), list(_keys(right.root)), autojunk=False
    )
    pairs: list[Pair] = []
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        here, right_nodes = lefts[begin:end], rights[other_begin:other_end]
        if tag == "equal":
            pairs += [
                Pair(
                    a,
                    b,
                    depth,
                    other_depth,
                    tuple(_differences(a, b, left_plan, right)),
                )
                for (depth, a), (other_depth, b) in zip(here, right_nodes, strict=True)
            ]
        else:
            only_left, only_right = (Difference.ONLY_LEFT,), (Difference.ONLY_RIGHT,)
            pairs += [Pair(node, None, depth, depth, only_left) for depth, node in here]
            pairs += [
                Pair(None, node, depth, depth, only_right)
                for depth, node in right_nodes
            ]
    return pairs


@dataclass(frozen=True)
class SubPlan:
    """A sub-plan of both, and how often each executed it: 0 is never, None is not printed."""

    role: str
    left_loops: int | None
    right_loops: int | None

    @property
    def is_other_branch(self) -> bool:
        """Whether one of the two executed it and the other did not."""
        return (self.left_loops == 0) != (self.right_loops == 0)


def subplans(left_plan: Plan, right: Plan) -> list[SubPlan]:
    """The sub-plans that both have, by name, in printed order."""
    right_subplans = {
        node.role: node for node in right.nodes() if node.role.startswith("SubPlan")
    }
    return [
        SubPlan(node.role, node.loops, right_subplans[node.role].loops)
        for node in left_plan.nodes()
        if node.role in right_subplans
    ]


def _keys(node: Node, below: str = "") -> Iterator[tuple[str, str, str]]:
    """What a node does, with what, and in which part of the plan."""
    part_of_plan = node.role or below
    kind = node.kind
    for stage in _STAGES:
        kind = kind.removeprefix(stage)
    yield kind, node.on, part_of_plan
    for child in node.children:
        yield from _keys(child, part_of_plan)


def _differences(
    a: Node, b: Node, left_plan: Plan, right: Plan
) -> Iterator[Difference]:
    if a.kind != b.kind or a.index != b.index:
        yield Difference.KIND
    if a.loops is None or b.loops is None:
        return
    if a.is_never_executed != b.is_never_executed:
        yield (
            Difference.EXECUTED_RIGHT
            if a.is_never_executed
            else Difference.EXECUTED_LEFT
        )
        return
    if a.loops != b.loops:
        yield Difference.LOOPS
    if a.rows != b.rows:
        yield Difference.ROWS
    yield from _time_differences(a, b, left_plan, right)


def _time_differences(
    a: Node, b: Node, left_plan: Plan, right: Plan
) -> Iterator[Difference]:
    before, after = a.whole_ms, b.whole_ms
    if before is None or after is None:
        return
    is_notable = max(_share(before, left_plan), _share(after, right)) >= NOTABLE_SHARE
    if is_notable and after * NOTABLE_RATIO < before:
        yield Difference.FASTER
    elif is_notable and before * NOTABLE_RATIO < after:
        yield Difference.SLOWER


def _share(ms: float, plan: Plan) -> float:
    return ms / plan.total_ms if plan.total_ms else 1.0
