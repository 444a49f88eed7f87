"""What plans read: of each side the largest read that the other's plans have not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.analysis.why.account import Account
from runs.analysis.why.suspects import Side


@dataclass(frozen=True)
class PlanRead:
    """What one side's plan reads where the other's does otherwise: estimated rows of a relation, by
    an index or all of it; no relation if it reads none."""

    rows: float = 0.0
    relation: str = ""
    index: str = ""


def compare(a: Side, b: Side) -> tuple[PlanRead, PlanRead] | None:
    """The largest read of each side that the other has not; None where plans are not known."""
    reads_of_a, reads_of_b = _reads(a), _reads(b)
    if reads_of_a is None or reads_of_b is None:
        return None
    return _largest(reads_of_a, reads_of_b), _largest(reads_of_b, reads_of_a)


def _reads(side: Side) -> list[PlanRead] | None:
    account = next((account for account in side.accounts if account.plans), None)
    if account is None:
        return None
    return [
        _read(account, node, bound)
        for plan in account.plans
        for node, bound in _bounded(plan.get("Plan", {}))
        if "Relation Name" in node or "Index Name" in node
    ]


# These read of what is below only as much as they pass on.
_PASSING = frozenset({"Limit", "Result", "Subquery Scan", "LockRows", "ProjectSet"})


def _bounded(
    node: Mapping[str, Any], bound: float | None = None
) -> Iterator[tuple[Mapping[str, Any], float | None]]:
    """The nodes of a plan, each with the rows after which a limit above it stops reading."""
    yield node, bound
    kind = node.get("Node Type", "")
    if kind == "Limit":
        bound = float(node.get("Plan Rows", 0))
    elif kind not in _PASSING:
        bound = None
    for child in node.get("Plans", ()):
        yield from _bounded(child, bound)


def _read(account: Account, node: Mapping[str, Any], bound: float | None) -> PlanRead:
    """A scan without an index reads the whole relation, whatever passes its condition."""
    relation, index = (
        str(node.get("Relation Name", "")),
        str(node.get("Index Name", "")),
    )
    rows = float(node.get("Plan Rows", 0))
    if "Seq Scan" in str(node.get("Node Type", "")):
        rows = float(account.relations.get(relation, {}).get("tuples", rows))
    rows = rows if bound is None else min(rows, bound)
    return PlanRead(rows, relation or index, index)


def _largest(reads: Sequence[PlanRead], others: Sequence[PlanRead]) -> PlanRead:
    """The one with the most rows of those that the others lack, else of all."""
    ways = {(other.relation, other.index) for other in others}
    own_reads = [read for read in reads if (read.relation, read.index) not in ways]
    return max(own_reads or reads, key=lambda read: read.rows, default=PlanRead())
