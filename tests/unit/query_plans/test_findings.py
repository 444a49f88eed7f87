"""What a plan shows: where the time is, what was estimated wrong, spilled or did not come."""
# ruff: noqa: E501 - plans are wide.

import pytest

from runs.query_plans.findings import (
    Misestimated,
    Missing,
    Part,
    Removed,
    Spent,
    Spilled,
    compared,
    findings,
    parts,
)
from runs.query_plans.reading import read

JIT = """Sort  (cost=702.12..702.15 rows=12 width=108) (actual time=1670.2..1670.3 rows=12 loops=1)
  ->  Seq Scan on parcels  (cost=0.00..287.00 rows=15929 width=8) (actual time=1611.5..1621.3 rows=15933 loops=1)
Planning Time: 0.904 ms
JIT:
  Functions: 19
  Options: Inlining true, Optimization true, Expressions true, Deforming true
  Timing: Generation 1.240 ms, Inlining 531.315 ms, Optimization 662.745 ms, Emission 417.483 ms, Total 1612.783 ms
Execution Time: 1814.157 ms
"""
HASH = """Hash Join  (cost=1.00..45.00 rows=27 width=4) (actual time=1.0..45.0 rows=1192 loops=1)
  ->  Seq Scan on a  (cost=0.00..10.00 rows=27 width=4) (actual time=0.1..20.0 rows=1192 loops=1)
  ->  Hash  (cost=0.00..10.00 rows=4000 width=4) (actual time=5.0..5.0 rows=4000 loops=1)
        ->  Seq Scan on b  (cost=0.00..9.00 rows=4000 width=4) (actual time=0.1..4.0 rows=4000 loops=1)
Execution Time: 45.300 ms
"""
LOOP = """Nested Loop  (cost=1.00..45.00 rows=27 width=4) (actual time=1.0..3040.0 rows=1192 loops=1)
  Rows Removed by Join Filter: 4568799
  ->  Seq Scan on a  (cost=0.00..10.00 rows=27 width=4) (actual time=0.1..20.0 rows=1192 loops=1)
  ->  Seq Scan on b  (cost=0.00..9.00 rows=4000 width=4) (actual time=0.1..1.0 rows=4000 loops=1192)
Execution Time: 3041.300 ms
"""
WORKERS = """Gather  (cost=1.00..45.00 rows=40 width=4) (actual time=1.0..78.0 rows=40 loops=1)
  Workers Planned: 4
  Workers Launched: 0
  ->  Parallel Seq Scan on a  (cost=0.00..10.00 rows=10 width=4) (actual time=0.1..70.0 rows=40 loops=1)
Execution Time: 78.100 ms
"""
SPILL = """Sort  (cost=1.00..45.00 rows=4000 width=4) (actual time=1.0..78.0 rows=4000 loops=1)
  Sort Key: a
  Sort Method: external merge  Disk: 12345kB
  ->  Hash Join  (cost=0.00..10.00 rows=4000 width=4) (actual time=0.1..20.0 rows=4000 loops=1)
        ->  Seq Scan on a  (cost=0.00..1.00 rows=4000 width=4) (actual time=0.1..2.0 rows=4000 loops=1)
        ->  Hash  (cost=0.00..10.00 rows=4000 width=4) (actual time=5.0..5.0 rows=4000 loops=1)
              Buckets: 1024  Batches: 8  Memory Usage: 36kB
              ->  Seq Scan on b  (cost=0.00..1.00 rows=4000 width=4) (actual time=0.1..2.0 rows=4000 loops=1)
Execution Time: 78.100 ms
"""
LIMIT = """Limit  (cost=1.00..2.00 rows=7 width=4) (actual time=1.0..2.0 rows=7 loops=1)
  ->  Seq Scan on a  (cost=0.00..10.00 rows=4000 width=4) (actual time=0.1..1.9 rows=7 loops=1)
Execution Time: 2.100 ms
"""
TRIGGER = """Insert on a  (cost=0.00..1.00 rows=0 width=0) (actual time=1.0..1.0 rows=0 loops=1)
  ->  Result  (cost=0.00..0.01 rows=1 width=4) (actual time=0.1..0.1 rows=1 loops=1)
Planning Time: 0.100 ms
Trigger audit: time=80.000 calls=1
Execution Time: 81.100 ms
"""


def test_compilation_is_not_the_time_of_a_scan():
    plan = read(JIT)
    first = findings(plan)[0]
    assert isinstance(first, Spent)
    assert (first.part, round(first.ms)) == (Part.JIT, 1613)
    scan = plan.nodes()[1]
    assert scan.own_ms == pytest.approx(1621.3 - 1612.783)
    assert scan.elapsed_ms == pytest.approx(1621.3)


def test_triggers_and_planning_are_parts_of_their_own():
    plan = read(TRIGGER)
    assert {spent.part: spent.ms for spent in parts(plan)} == {
        Part.PLANNING: 0.1,
        Part.TRIGGERS: 80.0,
    }
    assert findings(plan)[0].part == Part.TRIGGERS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WORKERS, [Missing]),
        (SPILL, [Spilled, Spilled]),
        (LOOP, [Misestimated, Removed]),
        (LIMIT, []),
        (JIT, []),
    ],
)
def test_what_is_worth_a_sentence_is_found_and_nothing_else(text, expected):
    kinds = [
        type(finding)
        for finding in findings(read(text))
        if not isinstance(finding, Spent)
    ]
    assert kinds == expected


def test_what_spilled_is_counted():
    assert {
        f.node.kind: f.kilobytes
        for f in findings(read(SPILL))
        if isinstance(f, Spilled)
    } == {
        "Sort": 12345,
        "Hash": 0,
    }


def test_of_two_plans_the_node_that_costs_the_difference_is_named():
    result = compared(read(HASH), read(LOOP))
    assert (result.node.kind, result.instead.kind) == ("Nested Loop", "Hash Join")
    assert result.is_right_slower
    assert result.misestimated.factor == pytest.approx(1192 / 27)
    mirrored = compared(read(LOOP), read(HASH))
    assert (mirrored.node.kind, mirrored.instead.kind) == ("Nested Loop", "Hash Join")
    assert not mirrored.is_right_slower


def test_plans_without_times_are_not_compared():
    text = "Seq Scan on a  (cost=0.00..10.00 rows=27 width=4)\n"
    assert compared(read(text), read(text)) is None
    assert findings(read(text)) == []
