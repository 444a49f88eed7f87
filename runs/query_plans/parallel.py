"""The part of a query that worked in parallel, and how long it took.

Source: PGECons WG1 report 2017, 6.5: tables 6.16 and 6.17 give the time of the parallel part of the
plans that it prints.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from runs.query_plans.node import Node, Plan


@dataclass(frozen=True)
class Gathered:
    """A Gather or Gather Merge: the end of all its loops in seconds, and its workers."""

    seconds: float
    planned: int
    launched: int


def gathered(plan: Plan) -> list[Gathered]:
    """Every Gather that was executed, in printed order."""
    return [
        _gathered(node)
        for node in plan.nodes()
        if node.is_gather and not node.is_never_executed
    ]


def workers_of(node: Node) -> Gathered | None:
    """A node's workers; None where not both numbers of them are printed."""
    texts = (node.detail("Workers Planned"), node.detail("Workers Launched"))
    return _gathered(node) if all(text.isdigit() for text in texts) else None


def seconds_in_subplans(plan: Plan) -> float | None:
    """As in table 6.16: only the Gathers in sub-plans; None if there is none."""
    seconds = [
        _gathered(node).seconds for node in _subplan_nodes(plan.root, inside=False)
    ]
    return sum(seconds) if seconds else None


def seconds_to_the_last_step(plan: Plan) -> float | None:
    """As in table 6.17: to the end of the node that finishes the workers' work, else the Gather."""
    ends = [_end(node) for node in _finishing(plan.root) if not node.is_never_executed]
    return sum(ends) if ends else None


def _subplan_nodes(node: Node, *, inside: bool) -> Iterator[Node]:
    is_in = inside or node.role.startswith("SubPlan")
    if is_in and node.is_gather and not node.is_never_executed:
        yield node
    for child in node.children:
        yield from _subplan_nodes(child, inside=is_in)


def _finishing(node: Node) -> Iterator[Node]:
    """The highest Finalize above each Gather; the Gather itself if there is none."""
    is_end = node.kind.startswith("Finalize ") or node.is_gather
    if is_end and any(node.is_gather for _depth, node in node.walk()):
        yield node
        return
    for child in node.children:
        yield from _finishing(child)


def _gathered(node: Node) -> Gathered:
    planned, launched = (
        node.detail(f"Workers {workers}") for workers in ("Planned", "Launched")
    )
    return Gathered(_end(node), _whole(planned), _whole(launched))


def _end(node: Node) -> float:
    return (node.whole_ms or 0.0) / 1000


def _whole(text: str) -> int:
    return int(text) if text.isdigit() else 0
