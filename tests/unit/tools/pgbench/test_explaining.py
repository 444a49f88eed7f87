"""Scripts that explain their statements, and the plans that pgbench prints of them."""

from runs.tools.pgbench import generators

SCRIPT = r"""\set aid random(1, 10)
BEGIN;
-- select nothing; here
SELECT abalance FROM t WHERE aid = :aid AND note = 'a; update';
WITH x AS (SELECT 1; ) SELECT 2 \gset
\sleep 10 ms
INSERT INTO h VALUES (:aid)\; UPDATE t SET a = 1;
END;
"""


def test_every_statement_with_a_plan_is_explained_and_nothing_else():
    made = generators.explaining(SCRIPT, 90300).removeprefix(generators._SESSION)
    assert made.split("\n") == [
        r"\set aid random(1, 10)",
        "BEGIN;",
        "-- select nothing; here",
        "EXPLAIN SELECT abalance FROM t WHERE aid = :aid AND note = 'a; update';",
        "EXPLAIN WITH x AS (SELECT 1; ) SELECT 2 ;",
        "",
        r"EXPLAIN INSERT INTO h VALUES (:aid)\; EXPLAIN UPDATE t SET a = 1;",
        "END;",
        "",
        "",
    ]
    assert "log_settings" in generators.explaining(SCRIPT, 120000)


def test_plans_are_read_among_other_messages():
    printed = """pgbench (15.18, server 18.0)
LOG:  duration: 0.000 ms  plan:
{
  "Query Text": "EXPLAIN SELECT 1\\nFROM t;",
  "Plan": {
    "Node Type": "Result"
  }
}
NOTICE:  something else
LOG:  duration: 0.000 ms  plan:
{
  "Query Text": "EXPLAIN cut
"""
    assert generators.plans(printed) == [
        {"statement": "SELECT 1\nFROM t;", "Plan": {"Node Type": "Result"}}
    ]
