"""What a plan of the scenario must send to other servers, and what its scripts name."""

import pytest

from runs.scenarios.foreign_tables import plan_problem, script

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
