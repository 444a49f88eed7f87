"""What differs between the plans of a statement."""

from runs.statements.plan_shape import PlanDifference, PlanShape, ShapeNode, difference


def node(name, on="", index="", estimated=10.0, depth=0):
    return ShapeNode(depth, name, on, index, estimated, 10.0, 1.0)


def test_the_same_plan_differs_in_nothing():
    plan = PlanShape((node("Aggregate"), node("Seq Scan", "t")))
    assert difference([plan], [plan]) == PlanDifference()
    assert difference([plan], [plan]).is_none


def test_a_scan_that_becomes_parallel_is_the_same_scan():
    base = PlanShape((node("Aggregate"), node("Seq Scan", "t")))
    names = ("Finalize Aggregate", "Gather", "Partial Aggregate")
    stages = [node(name) for name in names]
    head = PlanShape((*stages, node("Parallel Seq Scan", "t")))
    found = difference([base], [head])
    assert found.becomes_parallel
    assert (found.only_base, found.only_head) == ((), ())
    assert difference([head], [base]).becomes_serial


def test_an_index_that_is_lost_is_named():
    base = PlanShape((node("Index Scan", "t", "t_a"),))
    head = PlanShape((node("Seq Scan", "t"),))
    found = difference([base], [head])
    assert found.only_base == ("Index Scan using t_a on t",)
    assert found.only_head == ("Seq Scan on t",)


def test_estimates_are_named_by_a_factor():
    base, head = (
        PlanShape((node("Seq Scan", "t"),)),
        PlanShape((node("Seq Scan", "t", "", 50.0),)),
    )
    assert difference([base], [head]).estimates == (("Seq Scan on t", 10.0, 50.0),)


def test_jit_and_disk_are_named():
    base = PlanShape((node("Sort"),))
    head = PlanShape((node("Sort"),), jit_ms=5.0, is_spilled=True)
    found = difference([base], [head])
    assert (found.gains_jit, found.gains_spill) == (True, True)
    assert difference([head], [base]).loses_jit


def test_joins_in_another_order_are_said_and_not_listed_on_both_sides():
    scans = [node("Seq Scan", "a"), node("Index Scan", "b", "b_pkey")]
    base = PlanShape((node("Hash Join"), *scans))
    head = PlanShape((node("Hash Join"), *scans[::-1]))
    found = difference([base], [head])
    assert found.is_reordered
    assert (found.only_base, found.only_head) == ((), ())
    # What is there more often than before is still named.
    found = difference([base], [PlanShape((*head.nodes, node("Seq Scan", "a")))])
    assert found.only_head == ("Seq Scan on a",)
