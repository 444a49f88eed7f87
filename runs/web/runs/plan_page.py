"""What the plan viewer shows: the lines of one plan, or of two side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext_lazy

from runs.query_plans import Difference, Node, Pair, Plan, SubPlan, compare, subplans

# From here on a line is highlighted: a share of the total time, and a factor of rows.
SLOW_SHARE, WRONG_ROWS = 0.2, 10
# Deeper lines are not indented any further.
DEEPEST = 40
TITLES = {
    Difference.ONLY_LEFT: gettext_lazy("only left"),
    Difference.ONLY_RIGHT: gettext_lazy("only right"),
    Difference.EXECUTED_LEFT: gettext_lazy("executed left only"),
    Difference.EXECUTED_RIGHT: gettext_lazy("executed right only"),
    Difference.KIND: gettext_lazy("other node"),
    Difference.LOOPS: gettext_lazy("other loops"),
    Difference.ROWS: gettext_lazy("other rows"),
    Difference.FASTER: gettext_lazy("faster right"),
    Difference.SLOWER: gettext_lazy("slower right"),
}
TONES = {
    Difference.ONLY_LEFT: "different",
    Difference.ONLY_RIGHT: "different",
    Difference.EXECUTED_LEFT: "failed",
    Difference.EXECUTED_RIGHT: "failed",
    Difference.FASTER: "faster",
    Difference.SLOWER: "slower",
}


@dataclass(frozen=True)
class Line:
    """A node of a plan as a line; times in milliseconds, None where nothing is printed."""

    depth: int
    node: Node
    share: float | None

    @property
    def is_slow(self) -> bool:
        """Whether much of the time passed in this node itself."""
        return self.share is not None and self.share >= SLOW_SHARE

    @property
    def is_misestimated(self) -> bool:
        """Whether the rows are far from what was estimated."""
        return (self.node.misestimate or 1) >= WRONG_ROWS


@dataclass(frozen=True)
class Mark:
    """A difference in words."""

    title: str
    tone: str


@dataclass(frozen=True)
class Row:
    """A line of the comparison; a side is None if it has no such node."""

    left: Line | None
    right: Line | None
    marks: Sequence[Mark]
    opens_branch: bool


@dataclass(frozen=True)
class Comparison:
    """Two plans side by side, and the sub-plans that only one of them executed."""

    rows: Sequence[Row]
    branches: Sequence[SubPlan]


def lines(plan: Plan) -> list[Line]:
    """Every node in the order of printing."""
    return [_line(depth, node, plan) for depth, node in plan.root.walk()]


def side_by_side(left: Plan, right: Plan) -> Comparison:
    """Every node of both, with what differs."""
    branches = [each for each in subplans(left, right) if each.is_other_branch]
    names = {each.role for each in branches}
    rows = [_row(pair, left, right, names) for pair in compare(left, right)]
    return Comparison(rows, branches)


def _row(pair: Pair, left: Plan, right: Plan, branches: set[str]) -> Row:
    marks = [Mark(str(TITLES[each]), TONES.get(each, "info")) for each in pair.differences]
    roles = {node.role for node in (pair.left, pair.right) if node is not None}
    return Row(
        left=_line(pair.depth_left, pair.left, left) if pair.left else None,
        right=_line(pair.depth_right, pair.right, right) if pair.right else None,
        marks=marks,
        opens_branch=bool(roles & branches),
    )


def _line(depth: int, node: Node, plan: Plan) -> Line:
    own, total = node.own_ms, plan.total_ms
    share = min(1.0, own / total) if own is not None and total else None
    return Line(min(depth, DEEPEST), node, share)
