"""A plan as a tree of nodes, independent of its printed format."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self


class PlanUnreadableError(ValueError):
    """A text that is not a plan; the message says what was found."""


# Larger ones are not plans of ours, and no page could show them.
MOST_CHARACTERS = 4_000_000
_JIT_TOTAL = re.compile(r"\bTotal (\d{1,12}(?:\.\d{1,6})?) ms")
_TRIGGER_TIME = re.compile(r"\ATrigger .{1,200}?: time=(\d{1,12}(?:\.\d{1,6})?) ")
GATHERS = ("Gather", "Gather Merge")


@dataclass(frozen=True)
class Node:
    """One node of a plan.

    `kind` is what it does ("Seq Scan", "Hash Left Join"), `on` its objects ("store_sales",
    "customer c"), `index` the index used, `role` its role below its parent if that has a name
    ("SubPlan 1", "CTE year_total"). Costs are in the planner's unit. Times are milliseconds and
    rows are counts per loop, as EXPLAIN prints them; `loops` of 0 is a node never executed. All of
    these are None if not printed. `details` are the further lines, in order. `processes` is how
    many ran it at the same time, `inner_ms` the time of CTEs, InitPlans and JIT
    compilation that ran in it (see `reading.add_times`).
    """

    kind: str
    on: str = ""
    index: str = ""
    role: str = ""
    total_cost: float | None = None
    estimated_rows: float | None = None
    total_ms: float | None = None
    rows: float | None = None
    loops: int | None = None
    details: tuple[tuple[str, str], ...] = ()
    children: tuple[Self, ...] = ()
    processes: float = 1.0
    inner_ms: float = 0.0

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
    def elapsed_ms(self) -> float | None:
        """How long it ran, all loops and its children: the processes of a Gather run together."""
        ms_of_all = self.whole_ms
        return None if ms_of_all is None else ms_of_all / self.processes

    @property
    def own_ms(self) -> float | None:
        """How long it ran without its children and what it ran for others; never below 0."""
        elapsed = self.elapsed_ms
        if elapsed is None:
            return None
        below = sum(
            child.elapsed_ms or 0.0 for child in self.children if not child.is_init
        )
        return max(0.0, elapsed - below - self.inner_ms)

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

    def shared_blocks(self, kind: str) -> int:
        """How many shared blocks were `hit`, `read`, `dirtied` or `written`, here and below."""
        shared = next(
            (x for x in self.detail("Buffers").split(", ") if x.startswith("shared ")),
            "",
        )
        counts = (word.partition("=") for word in shared.split())
        return next((int(count) for name, _equals, count in counts if name == kind), 0)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Self]]:
        """(depth, node) of this node and all below it, in printed order."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True)
class Plan:
    """A complete plan; times in milliseconds, None if not printed.

    `footer` are the further lines at its end (planning, triggers, JIT, settings), each with the
    name of its group. `not_understood` are lines that are no part of a plan: (number in the text,
    line). `may_be_cut` is of a text with times but without that of the whole, which is at its end.
    """

    root: Node
    planning_ms: float | None = None
    execution_ms: float | None = None
    footer: tuple[str, ...] = ()
    not_understood: tuple[tuple[int, str], ...] = ()
    may_be_cut: bool = False

    def nodes(self) -> list[Node]:
        """All nodes in the order of printing."""
        return [node for _depth, node in self.root.walk()]

    @property
    def jit_ms(self) -> float:
        """The time of just-in-time compilation; 0 if none is printed.

        That of parallel workers is printed in one sum, and passed at the same time.
        """
        printed = sum(
            float(total[1])
            for line in self.footer
            if line.startswith("JIT: Timing:") and (total := _JIT_TOTAL.search(line))
        )
        elapsed = printed / max(node.processes for _depth, node in self.root.walk())
        return min(elapsed, self.total_ms or elapsed)

    @property
    def triggers_ms(self) -> float:
        """The time of all triggers; 0 if none is printed."""
        times = (_TRIGGER_TIME.match(line) for line in self.footer)
        return sum(float(time[1]) for time in times if time)

    @property
    def whole_ms(self) -> float:
        """Planning and execution together; 0 where neither is printed."""
        return (self.total_ms or 0.0) + (self.planning_ms or 0.0)

    @property
    def total_ms(self) -> float | None:
        """How long the query took: as printed at the end, else by its first node."""
        return (
            self.execution_ms if self.execution_ms is not None else self.root.whole_ms
        )
