"""The time that each node of a plan itself took.

Below a Gather, several processes run a node at the same time: its elapsed time is the time of all
loops by the number of processes. A CTE or an InitPlan runs in the node that reads its result, so
its time is taken from there: in printed order where several read it.
"""

from collections.abc import Iterator
from dataclasses import replace

from runs.query_plans.node import Node


def with_times(root: Node) -> Node:
    """The same tree, whose nodes know their processes and what they ran for others."""
    whole = _with_processes(root, 1.0)
    return _with_inner(whole, _inner(whole))


def _with_processes(node: Node, processes: float) -> Node:
    below = processes
    if node.is_gather and node.loops and node.children:
        below = max(1.0, (node.children[0].loops or 0) / node.loops)
    children = tuple(
        _with_processes(each, processes if each.is_init else below) for each in node.children
    )
    return replace(node, processes=processes, children=children)


def _inner(root: Node) -> dict[int, float]:
    """Milliseconds of CTEs and InitPlans by the `id` of the node that ran them."""
    inner: dict[int, float] = {}
    for _depth, node in root.walk():
        for init in node.children:
            left = init.elapsed_ms or 0.0
            if not init.is_init or not left:
                continue
            for reader in _readers(node, init):
                free = (reader.own_ms or 0.0) - inner.get(id(reader), 0.0)
                taken = min(max(free, 0.0), left)
                inner[id(reader)] = inner.get(id(reader), 0.0) + taken
                left -= taken
    return inner


def _readers(owner: Node, init: Node) -> Iterator[Node]:
    """The nodes that read its result, in printed order; at last the one that it belongs to."""
    _word, _blank, name = init.role.partition(" ")
    is_cte = init.role.startswith("CTE ")
    marks = [f"({init.role})", f"(InitPlan {name})"]
    if "(returns " in name:
        marks = [each.strip() for each in name.partition("(returns ")[2].rstrip(")").split(",")]
    for _depth, node in owner.walk():
        if is_cte:
            reads = node.kind == "CTE Scan" and node.on.partition(" ")[0] == name
        else:
            reads = any(mark in value for mark in marks for _name, value in node.details)
        if reads and node is not init:
            yield node
    if not is_cte:
        yield owner


def _with_inner(node: Node, inner: dict[int, float]) -> Node:
    children = tuple(_with_inner(each, inner) for each in node.children)
    return replace(node, inner_ms=inner.get(id(node), 0.0), children=children)
