"""The statements that pgbench sends, and what psql says of their plans."""

import json

from runs.tools.pgbench import load_plans

LOGGED = """pgbench (18.4)
starting vacuum...end.
LOG:  statement: BEGIN;
LOG:  statement: EXPLAIN SELECT count(*)
  FROM t WHERE id = 7;
LOG:  statement: EXPLAIN UPDATE t SET v = 'LOG:  statement: x' WHERE id = 7;
LOG:  statement: END;
transaction type: explain.sql
"""


def test_the_statements_are_those_that_were_explained_whole():
    assert load_plans.logged(LOGGED) == [
        "SELECT count(*)\n  FROM t WHERE id = 7",
        "UPDATE t SET v = 'LOG:  statement: x' WHERE id = 7",
    ]


def printed(*blocks, functions=0):
    lines = []
    for number, plan in blocks:
        lines.append(f"@plan {number}")
        if plan is not None:
            lines.append(json.dumps([plan], indent=1))
    return "\n".join([*lines, "@plan", f"@functions\t{functions}"])


def test_each_statement_has_its_first_plan_and_the_median_time():
    scan = {"Plan": {"Node Type": "Seq Scan"}}
    times = [(0, {**scan, "Planning Time": time}) for time in (9.0, 1.0, 2.0, 1.5, 1.2)]
    planned = load_plans.planned(printed(*times, (1, None)), ["SELECT 1", "broken"])
    assert [plan["statement"] for plan in planned.plans] == ["SELECT 1"]
    assert planned.milliseconds == 1.5
    assert not planned.has_functions


def test_to_9_6_the_time_is_not_told():
    planned = load_plans.planned(
        printed((0, {"Plan": {}}), functions=2), ["SELECT f(1)"]
    )
    assert planned.milliseconds is None
    assert planned.has_functions
    assert "SUMMARY" not in load_plans.explaining_sql(["SELECT 1"], 90624)
    assert "SUMMARY" in load_plans.explaining_sql(["SELECT 1"], 100023)


def test_an_execution_is_taken_back_and_tells_only_what_is_within():
    sql = load_plans.executing_sql(["UPDATE t SET v = 1"])
    assert sql.index("BEGIN;") < sql.index("UPDATE t") < sql.index("ROLLBACK;")
    plans = [
        {"statement": "SELECT f(7)", "Plan": {"Node Type": "Result"}},
        {
            "statement": "SELECT count(v) FROM t WHERE k = x",
            "Plan": {"Node Type": "Seq Scan"},
        },
        {
            "statement": "SELECT count(v) FROM t WHERE k = x",
            "Plan": {"Node Type": "Seq Scan"},
        },
    ]
    (within,) = load_plans.within(plans, ["SELECT f(7);"])
    assert within["statement"].startswith("SELECT count(v)")
    assert within["nested"]
