"""What a plan of the scenario must send to other servers, and what its scripts name."""

import json

import pytest

from runs.scenarios.datasets import videos
from runs.scenarios.foreign_tables import plan_problem, script
from runs.scenarios.long_run_stability import judge

ACCOUNTS = "Remote SQL: SELECT aid FROM public.pgbench_accounts WHERE ((aid = 1))"
CUSTOMERS = "Remote SQL: SELECT id FROM public.addrbook WHERE ((id = 1))"
JOIN = "Remote SQL: SELECT r1.name FROM (public.addrbook r1 INNER JOIN public.x r2) WHERE 1"


def levels(operation="select", pattern=1, location="local"):
    return {"operation": operation, "pattern": pattern, "table_location": location}


@pytest.mark.parametrize(
    ("plan", "cell", "problem"),
    [
        ("Index Scan", levels(), ""),
        (ACCOUNTS, levels(pattern=2), ""),
        (f"{ACCOUNTS}\n{CUSTOMERS}", levels(pattern=4), ""),
        (JOIN, levels(pattern=4), "sends 1 statements"),
        ("Remote SQL: SELECT aid FROM public.pgbench_accounts", levels(pattern=2), "whole table"),
        ("Remote SQL: INSERT INTO public.pgbench_history(tid)", levels("insert", 1, "foreign"), ""),
        ("Index Scan", levels("update", 1, "foreign"), "sends 0 statements"),
    ],
)
def test_a_plan_that_does_something_else_is_told(plan, cell, problem):
    assert problem in plan_problem(plan, 150000, cell)
    assert bool(plan_problem(plan, 150000, cell)) == bool(problem)


def test_before_9_6_a_foreign_update_is_two_statements():
    plan = f"{ACCOUNTS} FOR UPDATE\nRemote SQL: UPDATE public.x SET abalance = $2 WHERE ctid = $1"
    assert plan_problem(plan, 90500, levels("update", 1, "foreign")) == ""
    assert plan_problem(plan, 90600, levels("update", 1, "foreign"))


def test_each_pattern_names_its_tables():
    assert "ext2.addrbook ad, public.pgbench_accounts" in script(levels(pattern=3))
    assert "UPDATE ext1.pgbench_accounts" in script(levels("update", 1, "foreign"))
    assert "INTO public.pgbench_history" in script(levels("insert"))


def test_a_level_throughput_neither_drifts_nor_dips():
    verdict = judge([100.0] * 1200)
    assert (verdict.trend, verdict.dip, verdict.variation) == (100, 100, 0)
    assert verdict.interval_s == 60


def test_a_decay_is_the_end_against_the_beginning():
    falling = [100 - second / 20 for second in range(1200)]
    assert judge(falling).trend == pytest.approx(100 * 43 / 91, abs=3)


def test_a_dip_is_found_where_it_is_and_not_by_a_single_second():
    values = [100.0] * 1200
    values[600:660] = [10.0] * 60
    dipped = judge(values)
    assert (dipped.dip, dipped.dip_at_s) == (10, 600)
    values = [100.0] * 1200
    values[600] = None
    assert judge(values).dip > 95


def test_too_few_seconds_are_no_verdict():
    assert judge([100.0] * 5) is None
    assert judge([0.0] * 100) is None


def test_the_same_records_are_made_again_with_the_searched_word_as_often_as_in_the_report():
    made = [json.loads(record) for _number, _tag, record in videos.records(5000)]
    assert made == [json.loads(record) for _number, _tag, record in videos.records(5000)]
    titles = [each["title"] for each in made]
    descriptions = [each["description"] for each in made]
    assert all(10 <= len(each) <= 25 for each in titles)
    assert all(60 <= len(each) <= 250 for each in descriptions)
    assert 10 <= sum(videos.KEYWORD in each for each in titles) <= 45
    assert 30 <= sum(videos.KEYWORD in each for each in descriptions) <= 80
    assert len(made[0]) == 13
