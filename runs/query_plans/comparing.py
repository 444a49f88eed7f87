"""Two plans side by side: which nodes correspond, and how they differ.

Nodes correspond in printed order, by what they do and with what: the longest common
sequence of both (difflib). Parallel or partial variants of a node correspond to the plain one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Self

GATHERS = ("Gather", "Gather Merge")


@dataclass(frozen=True)
class Node:
    """One node of a plan.

    `kind` is what it does ("Seq Scan", "Hash Left Join"), `on` its objects ("store_sales",
    "customer c"), `index` the index used, `role` its role below its parent if that has a name
    ("SubPlan 1", "CTE year_total"). Costs are in the planner's unit. Times are milliseconds and
    rows are counts per loop, as EXPLAIN prints them; `loops` of 0 is a node never executed. All of
    these are None if not printed. `details` are the further lines, in order.
    """

    kind: str
    on: str = ""
    index: str = ""
    role: str = ""
    startup_cost: float | None = None
    total_cost: float | None = None
    estimated_rows: float | None = None
    startup_ms: float | None = None
    total_ms: float | None = None
    rows: float | None = None
    loops: int | None = None
    details: tuple[tuple[str, str], ...] = ()
    children: tuple[Self, ...] = ()

    @property
    def is_never_executed(self) -> bool:
        """Whether the executor never reached it."""
        return self.loops == 0

    @property
    def is_gather(self) -> bool:
        """Whether it collects the rows of parallel workers."""
        return self.kind in GATHERS

    @property
    def name(self) -> str:
        """The node as the text format of EXPLAIN names it, without figures."""
        using = f" using {self.index}" if self.index else ""
        return f"{self.kind}{using}{f' on {self.on}' if self.on else ''}"

    @property
    def whole_ms(self) -> float | None:
        """The time of all loops, including its children.

        Below a Gather, the loops of several processes run at the same time: there it is more than
        the elapsed time.
        """
        if self.total_ms is None or self.loops is None:
            return None
        return self.total_ms * self.loops

    @property
    def own_ms(self) -> float | None:
        """The time of all loops without that of its children; never below 0."""
        whole = self.whole_ms
        if whole is None:
            return None
        below = sum(child.whole_ms or 0.0 for child in self.children if not child.is_init)
        return max(0.0, whole - below)

    @property
    def is_init(self) -> bool:
        """Whether it is a CTE or an InitPlan: its time counts where it is read, not here."""
        return self.role.startswith(("CTE ", "InitPlan"))

    @property
    def misestimate(self) -> float | None:
        """By which factor more or fewer rows came than were estimated: 1 or more."""
        if not self.loops or self.rows is None or self.estimated_rows is None:
            return None
        actual, estimated = max(self.rows, 1.0), max(self.estimated_rows, 1.0)
        return max(actual / estimated, estimated / actual)

    def detail(self, name: str) -> str:
        """The text of a further line; empty where there is none."""
        return next((value for key, value in self.details if key == name), "")

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Self]]:
        """(depth, node) of this node and all below it, in printed order."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True)
class Plan:
    """A complete plan; times in milliseconds, None if not printed.

    `footer` are the further lines at its end (planning, triggers, JIT), as printed.
    """

    root: Node
    planning_ms: float | None = None
    execution_ms: float | None = None
    footer: tuple[str, ...] = field(default=())

    def nodes(self) -> list[Node]:
        """All nodes in the order of printing."""
        return [node for _depth, node in self.root.walk()]

    @property
    def total_ms(self) -> float | None:
        """How long the query took: as printed at the end, else by its first node."""
        return self.execution_ms if self.execution_ms is not None else self.root.whole_ms


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


def compare(left: Plan, right: Plan) -> list[Pair]:
    """Every node of both, in printed order."""
    lefts, rights = list(left.root.walk()), list(right.root.walk())
    matcher = SequenceMatcher(None, list(_keys(left.root)), list(_keys(right.root)), autojunk=False)
    pairs: list[Pair] = []
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(lefts[begin:end], rights[other_begin:other_end], strict=True):
                pairs.append(_pair(one, other, left, right))
            continue
        pairs += [
            Pair(node, None, depth, depth, (Difference.ONLY_LEFT,))
            for depth, node in lefts[begin:end]
        ]
        pairs += [
            Pair(None, node, depth, depth, (Difference.ONLY_RIGHT,))
            for depth, node in rights[other_begin:other_end]
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


def subplans(left: Plan, right: Plan) -> list[SubPlan]:
    """The sub-plans that both have, by name, in printed order."""
    others = {node.role: node for node in right.nodes() if node.role.startswith("SubPlan")}
    return [
        SubPlan(node.role, node.loops, others[node.role].loops)
        for node in left.nodes()
        if node.role in others
    ]


def _keys(node: Node, below: str = "") -> Iterator[tuple[str, str, str]]:
    """What a node does, with what, and in which part of the plan."""
    part = node.role or below
    kind = node.kind
    for stage in _STAGES:
        kind = kind.removeprefix(stage)
    yield kind, node.on, part
    for child in node.children:
        yield from _keys(child, part)


def _pair(one: tuple[int, Node], other: tuple[int, Node], left: Plan, right: Plan) -> Pair:
    (depth, a), (other_depth, b) = one, other
    return Pair(a, b, depth, other_depth, tuple(_differences(a, b, left, right)))


def _differences(a: Node, b: Node, left: Plan, right: Plan) -> Iterator[Difference]:
    if a.kind != b.kind or a.index != b.index:
        yield Difference.KIND
    if a.loops is None or b.loops is None:
        return
    if a.is_never_executed != b.is_never_executed:
        yield Difference.EXECUTED_RIGHT if a.is_never_executed else Difference.EXECUTED_LEFT
        return
    if a.loops != b.loops:
        yield Difference.LOOPS
    if a.rows != b.rows:
        yield Difference.ROWS
    yield from _by_time(a, b, left, right)


def _by_time(a: Node, b: Node, left: Plan, right: Plan) -> Iterator[Difference]:
    before, after = a.whole_ms, b.whole_ms
    if before is None or after is None:
        return
    is_notable = max(_share(before, left), _share(after, right)) >= NOTABLE_SHARE
    if is_notable and after * NOTABLE_RATIO < before:
        yield Difference.FASTER
    elif is_notable and before * NOTABLE_RATIO < after:
        yield Difference.SLOWER


def _share(ms: float, plan: Plan) -> float:
    return ms / plan.total_ms if plan.total_ms else 1.0
