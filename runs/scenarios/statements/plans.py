"""What EXPLAIN prints of each statement, and what is compared of it."""

from collections.abc import Iterable, Sequence

from runs.execution.bench import Bench
from runs.query_plans import Plan
from runs.query_plans.node import PlanUnreadableError
from runs.query_plans.reading import read
from runs.scenarios.statements import cold
from runs.scenarios.statements.passes import END, EXPLAINED, MARK, expanded
from runs.statements.plan_shape import MOST_NODES, PlanShape, ShapeNode


async def explain(bench: Bench, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """EXPLAIN of each statement of the first sample of the units of these numbers.

    Where executions are cold, each unit's is.
    """
    if not numbers:
        return {}
    if not cold.is_cold(bench):
        return await _explain(bench, "plans", numbers)
    plans: dict[int, tuple[str, ...]] = {}
    for number in numbers:
        step = f"plan-{number:04}"
        await cold.restart(bench, step)
        plans |= await _explain(bench, step, [number])
    return plans


async def _explain(
    bench: Bench, step: str, numbers: Sequence[int]
) -> dict[int, tuple[str, ...]]:
    names = [f"{number}.0" for number in numbers]
    stdin = "\n".join([*names, ""])
    result = await bench.step(
        step, expanded(bench, EXPLAINED), stdin=stdin, check=False, is_private=True
    )
    return read_plans(result.stdout.splitlines())


def read_plans(lines: Iterable[str]) -> dict[int, tuple[str, ...]]:
    """By number of a unit what was printed of each of its statements."""
    plans: dict[int, tuple[str, ...]] = {}
    number = 0
    printed: list[str] = []
    for line in lines:
        match = MARK.match(line)
        if match is None and not END.match(line):
            printed.append(line)
            continue
        if number and printed:
            plans[number] = (*plans.get(number, ()), "\n".join(printed))
        number, printed = int(match[1]) if match else 0, []
    return plans


def shapes(plans: Sequence[str]) -> tuple[PlanShape, ...]:
    """What is compared of each plan; none where one cannot be read."""
    try:
        return tuple(_shape(read(plan)) for plan in plans)
    except PlanUnreadableError:
        return ()


def _shape(plan: Plan) -> PlanShape:
    nodes = [
        ShapeNode(
            depth=depth,
            name=node.kind,
            on=node.on,
            index=node.index,
            estimated=node.estimated_rows,
            rows=node.rows,
            milliseconds=node.total_ms,
        )
        for depth, node in list(plan.root.walk())[:MOST_NODES]
    ]
    details = [text for node in plan.nodes() for _name, text in node.details]
    return PlanShape(
        nodes=tuple(nodes),
        jit_ms=plan.jit_ms,
        planning_ms=plan.planning_ms,
        execution_ms=plan.execution_ms,
        blocks_hit=plan.root.shared_blocks("hit"),
        blocks_read=plan.root.shared_blocks("read"),
        is_spilled=any("Disk" in text for text in details),
    )
