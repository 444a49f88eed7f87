"""Reads the output of EXPLAIN: text from 9.2 to 19, also as reports print it, and JSON.

The column of its arrow gives a node's place: it belongs to the last node before it whose arrow
is further left. Other lines belong to the node above them, however they are indented: printed
plans have lost blanks there, and have marks of their own in front.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs import foreign_json
from runs.query_plans.node import Node, Plan


class PlanUnreadableError(ValueError):
    """A text that is not a plan; the message says what was found."""


# Shown by the node itself, not by a line of its own.
_TOLD = frozenset(
    (
        "Node Type", "Strategy", "Partial Mode", "Parent Relationship", "Subplan Name",
        "Parallel Aware", "Async Capable", "Join Type", "Relation Name", "Schema", "Alias",
        "Index Name", "CTE Name", "Function Name", "Operation", "Command", "Startup Cost",
        "Total Cost", "Plan Rows", "Plan Width", "Actual Startup Time", "Actual Total Time",
        "Actual Rows", "Actual Loops", "Plans", "Workers", "Scan Direction",
    )
)  # fmt: skip
_AGGREGATES = {"Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}
_ON = ("Relation Name", "CTE Name", "Function Name", "Tuplestore Name")


# Levels of nodes, as in JSON, where each has two.
MOST_DEPTH = foreign_json.MOST_DEPTH // 2


def is_json(text: str) -> bool:
    """Whether a text starts like EXPLAIN's JSON, possibly after psql's heading."""
    return _body(text)[:1] in {"[", "{"}


def read_json(text: str) -> Plan:
    """The plan. Raises PlanUnreadableError for other JSON."""
    try:
        whole = foreign_json.loads(_body(text))
    except ValueError as error:
        raise PlanUnreadableError(f"This JSON cannot be read: {error}") from error
    first = whole[0] if isinstance(whole, list) and whole else whole
    if not isinstance(first, dict) or not isinstance(first.get("Plan"), dict):
        raise PlanUnreadableError("This JSON is no plan: it has no object “Plan”.")
    execution = first.get("Execution Time", first.get("Total Runtime"))
    try:
        return Plan(
            _json_node(first["Plan"]), _float(first.get("Planning Time")), _float(execution)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanUnreadableError(f"This JSON has a node that cannot be read: {error}") from error


def _body(text: str) -> str:
    """From the first bracket on, without psql's heading, the marks of its lines and the count."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if lines and lines[0] == "QUERY PLAN":
        lines = [line.removesuffix("+").rstrip() for line in lines[2:]]
        lines = [line for line in lines if not (line.startswith("(") and line.endswith(")"))]
    return "\n".join(lines)


def _json_node(given: Mapping[str, Any]) -> Node:
    loops = given.get("Actual Loops")
    return Node(
        kind=_kind(given),
        on=_on(given),
        index=str(given.get("Index Name", "")),
        role=_role(given),
        startup_cost=_float(given.get("Startup Cost")),
        total_cost=_float(given.get("Total Cost")),
        estimated_rows=_float(given.get("Plan Rows")),
        startup_ms=_float(given.get("Actual Startup Time")) if loops else None,
        total_ms=_float(given.get("Actual Total Time")) if loops else None,
        rows=_float(given.get("Actual Rows")) if loops else None,
        loops=int(loops) if loops is not None else None,
        details=tuple((name, _text(value)) for name, value in given.items() if name not in _TOLD),
        children=tuple(_json_node(each) for each in given.get("Plans", ())),
    )


def _kind(given: Mapping[str, Any]) -> str:
    kind = str(given["Node Type"])
    if kind == "Aggregate":
        kind = _AGGREGATES.get(str(given.get("Strategy")), kind)
        if (mode := given.get("Partial Mode", "Simple")) != "Simple":
            kind = f"{mode} {kind}"
    elif kind == "ModifyTable":
        kind = str(given.get("Operation", kind))
    elif kind == "SetOp":
        kind = (
            f"{'Hash' if given.get('Strategy') == 'Hashed' else ''}SetOp {given.get('Command', '')}"
        )
    elif (join := given.get("Join Type", "Inner")) != "Inner":
        kind = f"{kind.removesuffix(' Join')} {join} Join"
    elif kind in {"Hash", "Merge"} and "Join Type" in given:
        kind = f"{kind} Join"
    if given.get("Scan Direction") == "Backward":
        kind = f"{kind} Backward"
    return f"Parallel {kind}" if given.get("Parallel Aware") else kind.strip()


def _on(given: Mapping[str, Any]) -> str:
    name = next((str(given[key]) for key in _ON if key in given), "")
    alias = str(given.get("Alias", ""))
    if not name:
        return alias
    return f"{name} {alias}" if alias and alias != name else name


def _role(given: Mapping[str, Any]) -> str:
    return str(given.get("Subplan Name", ""))


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


_FRAME = re.compile(r"\A\s*(?:QUERY PLAN|-{5,}|\(\d+ rows?\)|\(\d+行\))\s*")
_ROLE = re.compile(r"\A[\s│|★*]*+\d*+\s*+((?:SubPlan|InitPlan|CTE) (?!Scan\b)[^\s(].*)")
_FIGURE = r"\d++(?:\.\d++)?"
_COST = re.compile(
    rf"\(cost=(?P<startup>{_FIGURE})\.\.(?P<total>{_FIGURE}) rows=(?P<rows>\d+) width=\d+\)"
)
_ACTUAL = re.compile(
    rf"\(actual (?:time=(?P<startup>{_FIGURE})\.\.(?P<total>{_FIGURE}) )?"
    rf"rows=(?P<rows>{_FIGURE}) loops=(?P<loops>\d+)\)"
)
_NEVER = "(never executed)"
_TIMES = {
    "planning time": "planning_ms",
    "execution time": "execution_ms",
    "total runtime": "execution_ms",
}
_TIME = re.compile(
    rf"\A\s*(planning time|execution time|total runtime)\s*:\s*({_FIGURE}) ms", re.IGNORECASE
)
# Lines after the last node that do not belong to it.
_FOOTER = re.compile(
    r"(?:Planning|Trigger\b.*|JIT|Settings|Query Identifier|Serialization|Time)\s*:.*"
)


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


def read_text(text: str) -> Plan:
    """The plan. Raises PlanUnreadableError for a text without a node."""
    root: _Open | None = None
    path: list[_Open] = []
    role, footer, times = "", [], {}
    for line in _lines(text):
        if time := _TIME.match(line):
            times[_TIMES[time[1].lower()]] = float(time[2])
        elif found := _ROLE.fullmatch(line):
            role = found[1]
        elif (node := _text_node(line, role, is_first=root is None)) is not None:
            column, read_node = node
            opened, role = _Open(column, read_node), ""
            _close(path, column)
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


def _close(path: list[_Open], column: int) -> None:
    """Leave the nodes that the one in this column is not below."""
    while path and path[-1].column >= column:
        path.pop()
    if len(path) >= MOST_DEPTH:
        raise PlanUnreadableError(f"This plan has more than {MOST_DEPTH} levels.")


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


def _text_node(line: str, role: str, *, is_first: bool) -> tuple[int, Node] | None:
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
    """(kind, table, index) of "Index Scan using i on t a", "Hash Join" or "Seq Scan on t a"."""
    kind, using, rest = name.partition(" using ")
    if not using or " on " in kind:
        kind, _on, on = name.partition(" on ")
        index = ""
    else:
        closed = rest.find('"', 1) + 1 if rest.startswith('"') else 0
        index = rest[:closed] or rest.partition(" ")[0]
        on = rest[len(index) :].removeprefix(" on ")
    if kind == "Bitmap Index Scan":
        return kind, "", on
    return kind, on, index


def _detail(line: str) -> tuple[str, str]:
    name, colon, value = line.strip().partition(": ")
    return (name, value.strip()) if colon else ("", line.strip())


__all__ = ["PlanUnreadableError", "looks_like_plan", "read"]

# Larger ones are not plans of ours, and no page could show them.
MOST_CHARACTERS = 4_000_000
_NODE = re.compile(
    r"\(cost=\d|\(actual (?:time|rows)=|\"Node Type\"|^[^\S\n]*+QUERY PLAN[^\S\n]*+$", re.MULTILINE
)


def read(text: str) -> Plan:
    """The plan in a text: format text or JSON, of any version from 9.2 on, as psql prints it.

    Raises PlanUnreadableError, which says what was found.
    """
    if len(text) > MOST_CHARACTERS:
        raise PlanUnreadableError(f"A plan of {len(text):,} characters is too long to read.")
    if is_json(text):
        return read_json(text)
    return read_text(text)


def looks_like_plan(text: str) -> bool:
    """Whether a text may be a plan, without reading all of it."""
    return bool(_NODE.search(text[:20_000]))
