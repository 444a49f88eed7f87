"""Plans as psql prints them, in both formats, and texts that are not plans."""

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

import runs.published
from runs.query_plans import (
    Plan,
    PlanUnreadableError,
    compare,
    parallel,
    subplans,
)
from runs.query_plans.reading import read

SOURCES = Path(runs.published.__file__).parent.glob("*.yaml")


@cache
def printed() -> dict[str, str]:
    found = {}
    for source in SOURCES:
        for campaign in yaml.safe_load(source.read_text())["campaigns"]:
            for each in campaign.get("artifacts") or []:
                if "plan-" in each["name"]:
                    found[each["name"]] = each["text"]
    return found


def plan(name: str) -> Plan:
    return read(printed()[name])


def test_every_printed_plan_is_read_to_its_last_node():
    wrong = {}
    for name, text in printed().items():
        # A plan without ANALYZE has costs only; every node has the one or the other.
        wanted = text.count("(cost=") or text.count("(actual ")
        if len(read(text).nodes()) != wanted:
            wrong[name] = wanted
    assert len(printed()) >= 8
    assert not wrong


def test_the_parallel_part_is_that_of_the_tables():
    """Tables 6.16 and 6.17 of 2017: 0.5117 s of Q10 on 9.6, 7.74 s of Q11 on 10."""
    assert parallel.seconds_in_subplans(plan("plan-q10-9.6.txt")) == pytest.approx(
        0.511721
    )
    assert parallel.seconds_to_the_last_step(plan("plan-q11-10.txt")) == pytest.approx(
        7.740506
    )
    gathers = parallel.gathered(plan("plan-q10-9.6.txt"))
    assert [(each.planned, each.launched) for each in gathers] == [(2, 2)] * 3
    assert parallel.gathered(plan("plan-q11-9.5.txt")) == []


def test_the_four_sub_plans_that_the_report_marks_are_the_other_branch():
    old, new = plan("plan-q10-9.5.txt"), plan("plan-q10-9.6.txt")
    found = {
        each.role: (each.left_loops, each.right_loops) for each in subplans(old, new)
    }
    assert found == {
        "SubPlan 1": (17304, 0),
        "SubPlan 2": (0, 1),
        "SubPlan 3": (16785, 0),
        "SubPlan 4": (0, 1),
    }
    assert all(each.is_other_branch for each in subplans(old, new))


def test_nodes_that_only_one_of_two_plans_has_stand_alone():
    pairs = compare(plan("plan-q10-9.5.txt"), plan("plan-q10-9.6.txt"))
    alone = [
        (pair.left, pair.right and pair.right.name) for pair in pairs if not pair.left
    ]
    assert alone == [(None, "Gather")] * 3
    assert [pair for pair in pairs if not pair.right] == []


def test_a_plan_compared_with_itself_has_no_difference():
    same = plan("plan-q10-9.5.txt")
    assert {pair.differences for pair in compare(same, same)} == {()}


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
        "Hash Left Join",
        2,
        10.0,
        "(a.id = b.id)",
    )
    cte, scan, hashed = root.children
    assert cte.role == "CTE w"
    assert (scan.kind, scan.on, scan.total_ms) == (
        "Parallel Seq Scan",
        "public.a",
        None,
    )
    assert hashed.is_never_executed
    only = hashed.children[0]
    assert (only.kind, only.index, only.on, only.detail("Heap Fetches")) == (
        "Index Only Scan",
        "b_pkey",
        "b x",
        "0",
    )
    assert (plan.planning_ms, plan.execution_ms) == (0.1, 0.05)
    assert root.misestimate == 2.0


def test_a_plan_of_9_2_tells_its_total_runtime():
    text = "Result  (cost=0.00..0.01 rows=1 width=0) (actual time=0.1..0.2 rows=1 loops=1)\n"
    assert read(text + "Total runtime: 0.300 ms\n").execution_ms == 0.3


def test_a_json_plan_has_the_names_of_the_text_format():
    node = {"Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize"}
    inner = {
        "Node Type": "Hash Join",
        "Join Type": "Semi",
        "Parent Relationship": "Outer",
    }
    scan = {
        "Node Type": "Seq Scan",
        "Relation Name": "t",
        "Alias": "u",
        "Parallel Aware": True,
        "Actual Loops": 0,
        "Actual Rows": 0,
        "Plan Rows": 7,
        "Filter": "(x > 1)",
    }
    sub = {
        "Node Type": "Result",
        "Subplan Name": "SubPlan 1",
        "Parent Relationship": "SubPlan",
    }
    whole = [
        {
            "Plan": {**node, "Plans": [{**inner, "Plans": [scan]}, sub]},
            "Total Runtime": 5,
        }
    ]
    plan = read(
        "QUERY PLAN\n-----\n"
        + json.dumps(whole, indent=2).replace("\n", " +\n")
        + "\n(1 row)"
    )
    assert [each.name for each in plan.nodes()] == [
        "Finalize GroupAggregate",
        "Hash Semi Join",
        "Parallel Seq Scan on t u",
        "Result",
    ]
    scanned = plan.nodes()[2]
    assert scanned.is_never_executed
    assert (scanned.rows, scanned.estimated_rows, scanned.detail("Filter")) == (
        None,
        7.0,
        "(x > 1)",
    )
    assert plan.nodes()[3].role == "SubPlan 1"
    assert plan.execution_ms == 5.0


@pytest.mark.parametrize(
    "text", ["", "hello", "[]", '{"Plan": 3}', "[" * 5000, '[{"Plan": {}}]']
)
def test_what_is_no_plan_is_refused_with_a_reason(text):
    with pytest.raises(PlanUnreadableError) as refused:
        read(text)
    assert str(refused.value)


@pytest.mark.parametrize(
    ("line", "hit", "from_disk"),
    [
        ("shared hit=3 read=4 dirtied=1, temp read=9", 3, 4),
        ("temp read=9 written=2", 0, 0),
        ("local hit=5, temp read=9", 0, 0),
        ("shared read=12", 0, 12),
    ],
)
def test_shared_blocks_are_counted_apart(line, hit, from_disk):
    said = f"Seq Scan on a  (cost=0..1 rows=5 width=4) (actual rows=5 loops=1)\n  Buffers: {line}"
    root = read(said).root
    assert (root.shared_blocks("hit"), root.shared_blocks("read")) == (hit, from_disk)
