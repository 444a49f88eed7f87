"""EXPLAIN's text format, from 9.2 to 19, also as reports print it.

The column of its arrow gives a node's place: it belongs to the last node before it whose arrow
is further left. Other lines belong to the node above them, however they are indented: printed
plans have lost blanks there, and have marks of their own in front.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from runs.query_plans.node import Node, Plan
from runs.query_plans.unreadable import PlanUnreadableError

_FRAME = re.compile(r"\s*(?:QUERY PLAN|-{5,}|\(\d+ rows?\)|\(\d+行\))\s*")
_ROLE = re.compile(r"[\s│|★*]*\d*\s*((?:SubPlan|InitPlan|CTE) (?!Scan\b)[^\s(].*?)\s*")
_COST = re.compile(
    r"\(cost=(?P<startup>[\d.]+)\.\.(?P<total>[\d.]+) rows=(?P<rows>\d+) width=\d+\)"
)
_ACTUAL = re.compile(
    r"\(actual (?:time=(?P<startup>[\d.]+)\.\.(?P<total>[\d.]+) )?"
    r"rows=(?P<rows>[\d.]+) loops=(?P<loops>\d+)\)"
)
_NEVER = "(never executed)"
_TIMES = {
    "planning time": "planning_ms",
    "execution time": "execution_ms",
    "total runtime": "execution_ms",
}
_TIME = re.compile(
    r"\s*(planning time|execution time|total runtime)\s*:\s*([\d.]+) ms", re.IGNORECASE
)
# Lines after the last node that do not belong to it.
_FOOTER = re.compile(
    r"(?:Planning|Trigger\b.*|JIT|Settings|Query Identifier|Serialization|Time)\s*:.*"
)
# "Index Scan using i on t a", "Hash Join", "Seq Scan on s.t a".
_NAME = re.compile(r"(?P<kind>.+?)(?: using (?P<index>\S+|\".+?\"))?(?: on (?P<on>.+))?")


@dataclass
class _Open:
    """A node whose children are still being read."""

    column: int
    node: Node
    details: list[tuple[str, str]] = field(default_factory=list)
    children: "list[_Open]" = field(default_factory=list)

    def closed(self) -> Node:
        values = {name: getattr(self.node, name) for name in self.node.__dataclass_fields__}
        values["details"] = tuple(self.details)
        values["children"] = tuple(each.closed() for each in self.children)
        return Node(**values)


def read(text: str) -> Plan:
    """The plan. Raises PlanUnreadableError for a text without a node."""
    root: _Open | None = None
    path: list[_Open] = []
    role, footer, times = "", [], {}
    for line in _lines(text):
        if time := _TIME.match(line):
            times[_TIMES[time[1].lower()]] = float(time[2])
        elif found := _ROLE.fullmatch(line):
            role = found[1]
        elif (node := _node(line, role, is_first=root is None)) is not None:
            column, read_node = node
            opened, role = _Open(column, read_node), ""
            while path and path[-1].column >= column:
                path.pop()
            if root is None:
                root = opened
            else:
                (path[-1] if path else root).children.append(opened)
            path.append(opened)
        elif _FOOTER.fullmatch(line.strip()) and not line.startswith("   "):
            footer.append(line.strip())
        elif path and line.strip():
            path[-1].details.append(_detail(line))
    if root is None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        raise PlanUnreadableError(f"No node of a plan is in this text; it begins: {first[:80]!r}")
    return Plan(root.closed(), footer=tuple(footer), **times)


def _lines(text: str) -> Sequence[str]:
    """The lines of the plan itself: without psql's frame, and its marks of longer lines."""
    lines = []
    for line in text.expandtabs(8).splitlines():
        whole = line.rstrip()
        if whole.endswith("+") and whole[-2:-1] in {" ", ")"}:
            whole = whole[:-1].rstrip()
        if whole and not _FRAME.fullmatch(whole):
            lines.append(whole)
    return lines


def _node(line: str, role: str, *, is_first: bool) -> tuple[int, Node] | None:
    """(column of its arrow, node); None for a line without a node."""
    head, arrow, rest = line.partition("->")
    if arrow and not head.strip(" │|★*0123456789"):
        column, text = len(head), rest.strip()
    elif is_first and (_COST.search(line) or _ACTUAL.search(line)):
        # The arrow would stand further left than every other.
        column, text = -1, line.strip()
    else:
        return None
    return column, _figured(text, role)


def _figured(text: str, role: str) -> Node:
    cost, actual = _COST.search(text), _ACTUAL.search(text)
    ends = [found.start() for found in (cost, actual) if found]
    ends += [text.index(_NEVER)] if _NEVER in text else []
    name = text[: min(ends, default=len(text))].strip()
    kind, on, index = _named(name)
    loops = 0 if _NEVER in text else None
    return Node(
        kind=kind,
        on=on,
        index=index,
        role=role,
        startup_cost=float(cost["startup"]) if cost else None,
        total_cost=float(cost["total"]) if cost else None,
        estimated_rows=float(cost["rows"]) if cost else None,
        startup_ms=_number(actual, "startup"),
        total_ms=_number(actual, "total"),
        rows=_number(actual, "rows"),
        loops=int(actual["loops"]) if actual else loops,
    )


def _number(found: re.Match[str] | None, name: str) -> float | None:
    return float(found[name]) if found and found[name] is not None else None


def _named(name: str) -> tuple[str, str, str]:
    """(kind, what it is on, index)."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name, "", ""
    kind, on, index = found["kind"], found["on"] or "", found["index"] or ""
    if kind == "Bitmap Index Scan":
        return kind, "", on
    return kind, on, index


def _detail(line: str) -> tuple[str, str]:
    name, colon, value = line.strip().partition(": ")
    return (name, value.strip()) if colon else ("", line.strip())
