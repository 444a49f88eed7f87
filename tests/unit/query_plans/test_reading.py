"""Plans as psql prints them, in both formats, and texts that are not plans."""

import json

import pytest

from runs.query_plans import PlanUnreadableError, read

JOIN = """                              QUERY PLAN
-----------------------------------------------------------------------
 Hash Left Join  (cost=1.10..2.30 rows=5 width=8) (actual time=0.020..0.030 rows=10.00 loops=2)
   Hash Cond: (a.id = b.id)
   Buffers: shared hit=2
   CTE w
     ->  Result  (cost=0.00..0.01 rows=1 width=4) (actual time=0.001..0.002 rows=1.00 loops=1)
   ->  Parallel Seq Scan on public.a  (cost=0.00..1.05 rows=5 width=4) (actual rows=5 loops=1)
   ->  Hash  (cost=1.05..1.05 rows=5 width=4) (never executed)
         ->  Index Only Scan using b_pkey on b x  (cost=0.00..1.05 rows=5 width=4) (never executed)
               Heap Fetches: 0
 Planning Time: 0.100 ms
 JIT:
   Functions: 3
 Execution Time: 0.050 ms
(12 rows)
"""


def test_a_text_plan_of_psql_becomes_a_tree():
    plan = read(JOIN)
    root = plan.root
    assert (root.kind, root.loops, root.rows, root.detail("Hash Cond")) == (
        "Hash Left Join", 2, 10.0, "(a.id = b.id)",
    )  # fmt: skip
    cte, scan, hashed = root.children
    assert cte.role == "CTE w"
    assert (scan.kind, scan.on, scan.total_ms) == ("Parallel Seq Scan", "public.a", None)
    assert hashed.is_never_executed
    only = hashed.children[0]
    assert (only.kind, only.index, only.on, only.detail("Heap Fetches")) == (
        "Index Only Scan", "b_pkey", "b x", "0",
    )  # fmt: skip
    assert (plan.planning_ms, plan.execution_ms) == (0.1, 0.05)
    assert root.misestimate == 2.0


def test_a_plan_of_9_2_tells_its_total_runtime():
    text = "Result  (cost=0.00..0.01 rows=1 width=0) (actual time=0.1..0.2 rows=1 loops=1)\n"
    assert read(text + "Total runtime: 0.300 ms\n").execution_ms == 0.3


def test_a_json_plan_has_the_names_of_the_text_format():
    node = {"Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize"}
    inner = {"Node Type": "Hash Join", "Join Type": "Semi", "Parent Relationship": "Outer"}
    scan = {
        "Node Type": "Seq Scan", "Relation Name": "t", "Alias": "u", "Parallel Aware": True,
        "Actual Loops": 0, "Actual Rows": 0, "Plan Rows": 7, "Filter": "(x > 1)",
    }  # fmt: skip
    sub = {"Node Type": "Result", "Subplan Name": "SubPlan 1", "Parent Relationship": "SubPlan"}
    whole = [{"Plan": {**node, "Plans": [{**inner, "Plans": [scan]}, sub]}, "Total Runtime": 5}]
    plan = read(
        "QUERY PLAN\n-----\n" + json.dumps(whole, indent=2).replace("\n", " +\n") + "\n(1 row)"
    )
    assert [each.name for each in plan.nodes()] == [
        "Finalize GroupAggregate", "Hash Semi Join", "Parallel Seq Scan on t u", "Result",
    ]  # fmt: skip
    scanned = plan.nodes()[2]
    assert scanned.is_never_executed
    assert (scanned.rows, scanned.estimated_rows, scanned.detail("Filter")) == (
        None,
        7.0,
        "(x > 1)",
    )
    assert plan.nodes()[3].role == "SubPlan 1"
    assert plan.execution_ms == 5.0


@pytest.mark.parametrize("text", ["", "hello", "[]", '{"Plan": 3}', "[" * 5000, '[{"Plan": {}}]'])
def test_what_is_no_plan_is_refused_with_a_reason(text):
    with pytest.raises(PlanUnreadableError) as refused:
        read(text)
    assert str(refused.value)
