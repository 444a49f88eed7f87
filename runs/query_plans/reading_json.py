"""EXPLAIN's JSON format: the same names as the text format gives to what a node does."""

import json
from collections.abc import Mapping
from typing import Any

from runs.query_plans.node import Node, Plan
from runs.query_plans.unreadable import PlanUnreadableError

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


def is_json(text: str) -> bool:
    """Whether a text starts like EXPLAIN's JSON, possibly after psql's heading."""
    return _body(text)[:1] in {"[", "{"}


def read(text: str) -> Plan:
    """The plan. Raises PlanUnreadableError for other JSON."""
    try:
        whole = json.loads(_body(text))
    except ValueError as error:
        raise PlanUnreadableError(f"This JSON cannot be read: {error}") from error
    except RecursionError as error:
        raise PlanUnreadableError("This JSON is nested too deeply.") from error
    first = whole[0] if isinstance(whole, list) and whole else whole
    if not isinstance(first, dict) or not isinstance(first.get("Plan"), dict):
        raise PlanUnreadableError("This JSON is no plan: it has no object “Plan”.")
    execution = first.get("Execution Time", first.get("Total Runtime"))
    try:
        return Plan(_node(first["Plan"]), _float(first.get("Planning Time")), _float(execution))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise PlanUnreadableError(f"This JSON has a node that cannot be read: {error}") from error


def _body(text: str) -> str:
    """From the first bracket on, without psql's heading, the marks of its lines and the count."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if lines and lines[0] == "QUERY PLAN":
        lines = [line.removesuffix("+").rstrip() for line in lines[2:]]
        lines = [line for line in lines if not (line.startswith("(") and line.endswith(")"))]
    return "\n".join(lines)


def _node(given: Mapping[str, Any]) -> Node:
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
        children=tuple(_node(each) for each in given.get("Plans", ())),
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
