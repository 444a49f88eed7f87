"""Each server prints a plan in several formats: all of them are the same plan."""

# ruff: noqa: E501, ISC004 - queries are wide.
import json
import os
import re

import psycopg
import pytest

from runs.query_plans.reading import read
from tests.each import some
from tests.unit.postgresql_settings.servers import asked_often

# Every version takes seconds; the oldest and the newest have all forms of the foot between them.
MAJORS = (
    {"9.3", "9.6", "12", "14", "17", "18"}
    if "BENCHLAB_TEST_ALL" in os.environ
    else {"9.6", "18"}
)
SERVERS = [each for each in asked_often() if each.major in MAJORS]
SETUP = """
DROP TABLE IF EXISTS "Order Line", item;
DROP FUNCTION IF EXISTS nothing();
CREATE TABLE item (id int PRIMARY KEY, shelf int, name text);
CREATE TABLE "Order Line" (id int, item int REFERENCES item, pieces numeric);
INSERT INTO item SELECT i, i % 12, 'item ' || i FROM generate_series(1, 1500) i;
INSERT INTO "Order Line" SELECT i, 1 + i % 1500, i % 97 FROM generate_series(1, 6000) i;
CREATE INDEX line_item ON "Order Line" (item);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER looks BEFORE INSERT ON "Order Line" FOR EACH ROW EXECUTE PROCEDURE nothing();
ANALYZE item; ANALYZE "Order Line";
"""
LINE = '"Order Line"'
QUERIES = [
    each.replace("LINE", LINE)
    for each in (
        "SELECT i.id, (SELECT count(*) FROM LINE x WHERE x.pieces > i.id) FROM item i"
        " JOIN LINE l ON l.item = i.id WHERE i.id < 20",
        "SELECT * FROM item WHERE shelf = (SELECT max(shelf) FROM item) AND id > (SELECT 5)",
        "SELECT * FROM item i LEFT JOIN LINE l ON l.item = i.id WHERE i.shelf = 4"
        " AND i.id > (SELECT avg(x.id) FROM LINE x WHERE x.item = i.id)",
        "SELECT * FROM item WHERE id NOT IN (SELECT item FROM LINE WHERE pieces > 90)",
        "SELECT * FROM item i WHERE EXISTS (SELECT 1 FROM LINE l WHERE l.item = i.id) OR shelf = 1",
        "WITH c AS (SELECT shelf, count(*) n FROM item GROUP BY shelf)"
        " SELECT * FROM c a JOIN c b USING (shelf) WHERE a.n > (SELECT avg(n) FROM c)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9)"
        " SELECT * FROM r JOIN item ON id = n",
        "SELECT id FROM item EXCEPT SELECT item FROM LINE",
        "SELECT id FROM item INTERSECT ALL SELECT item FROM LINE",
        "SELECT shelf, rank() OVER (PARTITION BY shelf ORDER BY id) FROM item LIMIT 7",
        "SELECT * FROM item WHERE id IN (SELECT item FROM LINE WHERE pieces < 3)",
        "SELECT * FROM item i WHERE NOT EXISTS (SELECT 1 FROM LINE l WHERE l.item = i.id)",
        "INSERT INTO LINE SELECT id, id, id FROM item WHERE shelf = 2",
        "UPDATE item SET name = 'x' FROM LINE l WHERE l.item = item.id AND l.id < 9",
        "DELETE FROM LINE l USING item i WHERE l.item = i.id AND i.shelf = 3",
        "WITH gone AS (DELETE FROM LINE WHERE id < 5 RETURNING *)"
        " INSERT INTO LINE SELECT id + 9000, item, 1 FROM gone",
        "SELECT shelf, id % 3, count(*) FROM item GROUP BY 1, 2 ORDER BY 3",
        "SELECT id FROM item UNION ALL SELECT item FROM LINE ORDER BY 1 LIMIT 3",
        "SELECT * FROM generate_series(1, 5) g JOIN item ON id = g",
        "SELECT * FROM (VALUES (1), (2)) v(x) JOIN item ON id = x",
        "SELECT * FROM item FULL JOIN LINE l ON l.item = item.id WHERE item.id IS NULL",
        "SELECT * FROM LINE l RIGHT JOIN item ON l.item = item.id AND l.pieces < 3",
        "SELECT * FROM item ORDER BY id DESC LIMIT 3",
        "SELECT * FROM LINE WHERE item IN (5, 6) OR item = 100",
        "SELECT * FROM item, LATERAL (SELECT * FROM LINE l WHERE l.item = item.id LIMIT 1) x",
        "SELECT * FROM item WHERE id < (SELECT max(id) / 2 FROM item) ORDER BY name LIMIT 2",
        "SELECT * FROM item WHERE id = 5 FOR UPDATE",
        "SELECT generate_series(1, shelf) FROM item WHERE id < 5",
        "SELECT CASE WHEN shelf > 5 THEN (SELECT sum(pieces) FROM LINE WHERE item = i.id)"
        " ELSE (SELECT max(pieces) FROM LINE WHERE item = i.id) END FROM item i WHERE id < 20",
        "SELECT * FROM (SELECT shelf, count(*) c FROM item GROUP BY 1 OFFSET 1) s JOIN item USING (shelf)",
        "SELECT count(*) FROM LINE WHERE pieces::text <> 'a -> b (actual'",
        "SELECT * FROM item a JOIN item b ON a.shelf = b.shelf AND a.id < 9 AND b.id < 99",
        "SELECT DISTINCT pieces FROM LINE WHERE false",
        "SELECT 1",
    )
]
PARALLEL = """
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
"""
SCANS = {"9.6": "SET min_parallel_relation_size = 0"}


@pytest.fixture(scope="module", params=SERVERS, ids=str)
def server(request):
    with request.param.running({}) as (folder, started):
        assert started
        with psycopg.connect(
            host=str(folder), user="x", dbname="postgres", autocommit=True
        ) as it:
            for statement in SETUP.split(";\n"):
                if statement.strip():
                    it.execute(statement)
            yield request.param.major, it


def explained(connection, options, query):
    with connection.transaction(force_rollback=True):
        rows = connection.execute(f"EXPLAIN ({options}) {query}").fetchall()
    first = rows[0][0]
    if isinstance(first, list):
        return json.dumps(first)
    return "\n".join(row[0] for row in rows)


def tree(plan, *, own=False):
    return [
        (depth, n.kind, n.on, n.index, n.role, n.total_cost, n.estimated_rows)
        + ((n.rows, n.loops, n.is_never_executed) if own else ())
        for depth, n in plan.root.walk()
    ]


def modes(major):
    parallel = PARALLEL + SCANS.get(major, "SET min_parallel_table_scan_size = 0")
    return ("", parallel) if major != "9.3" else ("",)


def test_all_formats_of_a_plan_are_the_same_tree(server):
    major, connection = server
    wrong, seen = [], 0
    for mode in modes(major):
        connection.execute("RESET ALL;" + mode)
        for query in some(QUERIES) if mode else QUERIES:
            text = read(explained(connection, "FORMAT text", query))
            for form in ("json", "yaml", "xml"):
                other = read(explained(connection, f"FORMAT {form}", query))
                seen += 1
                if (
                    tree(other) != tree(text)
                    or text.not_understood
                    or other.not_understood
                ):
                    pairs = zip(tree(text), tree(other), strict=False)
                    differ = [each for each in pairs if each[0] != each[1]][:1]
                    wrong.append((form, bool(mode), query, differ, text.not_understood))
    assert seen >= 34 * 3  # each query in each format
    assert not wrong, "\n".join(map(str, wrong))


def test_what_was_executed_is_the_same_and_own_times_are_those_of_the_whole(server):
    _major, connection = server
    connection.execute("RESET ALL")
    wrong = []
    for query in some(QUERIES, 2):
        plans = [
            read(
                explained(
                    connection, f"ANALYZE, VERBOSE, TIMING off, FORMAT {form}", query
                )
            )
            for form in ("text", "json")
        ]
        if (
            tree(plans[0], own=True) != tree(plans[1], own=True)
            or plans[0].not_understood
        ):
            wrong.append((query, plans[0].not_understood))
        for form in ("text", "json"):
            plan = read(explained(connection, f"ANALYZE, FORMAT {form}", query))
            own = sum(each.own_ms or 0.0 for each in plan.nodes())
            whole = plan.root.whole_ms
            # A time is printed with three digits, for the mean of all loops.
            slack = 0.1 + sum(0.001 * (each.loops or 0) for each in plan.nodes())
            # Only the statements below a WITH run after their parent.
            if (
                not query.startswith("WITH gone")
                and abs(own - whole) > 0.02 * whole + slack
            ):
                wrong.append((form, query, own, whole))
    assert not wrong, "\n".join(map(str, wrong))


# What only some versions have, or print differently by format: the last is of 15, the others of 13.
LINES = [
    "SELECT shelf, id % 3, count(*) FROM item GROUP BY CUBE (1, 2)",
    "SELECT * FROM (SELECT * FROM item ORDER BY shelf) i ORDER BY shelf, id",
    "SELECT * FROM item WHERE name = E'two\\n  Filter: lines'",
    "SELECT count(*) FROM item TABLESAMPLE bernoulli (100) REPEATABLE (3)",
    "SELECT * FROM item WHERE false",
    "UPDATE part SET id = 1",
    "SELECT * FROM part WHERE id = (SELECT 1)",
    "SELECT name, count(*) FROM item GROUP BY 1",
    "INSERT INTO LINE SELECT id, id, 1 FROM item WHERE shelf = 1",
    "MERGE INTO item USING LINE l ON l.id = item.id WHEN MATCHED AND shelf = 99 THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET shelf = 1 WHEN NOT MATCHED THEN DO NOTHING",
]


def test_each_format_has_the_same_lines(server):
    major, connection = server
    if major in {"9.3", "9.6", "12"}:
        pytest.skip("no incremental sort")
    connection.execute("RESET ALL; SET work_mem = 64; SET enable_indexscan = off")
    connection.execute(
        """CREATE TABLE IF NOT EXISTS part (id int) PARTITION BY RANGE (id);
        CREATE TABLE IF NOT EXISTS part_1 PARTITION OF part FOR VALUES FROM (0) TO (9);
        CREATE TABLE IF NOT EXISTS part_2 PARTITION OF part FOR VALUES FROM (9) TO (18);
        CREATE OR REPLACE TRIGGER ": calls" AFTER INSERT ON LINE EXECUTE FUNCTION nothing()
        """.replace("LINE", LINE)
    )
    wrong = []
    for query in LINES if major != "14" else LINES[:-1]:
        for options in ("ANALYZE", "ANALYZE, VERBOSE"):
            plans = [
                read(
                    explained(
                        connection,
                        f"{options}, FORMAT {form}",
                        query.replace("LINE", LINE),
                    )
                )
                for form in ("text", "json", "yaml", "xml")
            ]
            lines = [lines_without_numbers(plan) for plan in plans]
            wrong += [(query, lines[0], each) for each in lines if each != lines[0]]
    assert not wrong, "\n".join(map(str, wrong[:3]))


def lines_without_numbers(plan):
    lines = []
    for node in plan.nodes():
        details = [(name, text) for name, text in node.details if name != "Buffers"]
        lines.append(
            sorted((name, re.sub(r"\s+|[\d.]+", "#", text)) for name, text in details)
        )
    footer = [line for line in plan.footer if "Buffers" not in line]
    return lines + [re.sub(r"[\d.]+", "#", line) for line in footer]


def test_own_times_of_a_parallel_plan_are_elapsed_ones(server):
    major, connection = server
    if major == "9.3":
        pytest.skip("no parallel queries")
    connection.execute("RESET ALL;" + modes(major)[1])
    query = f"SELECT count(*) FROM {LINE}, item WHERE shelf < 3"
    for form in ("text", "json"):
        plan = read(explained(connection, f"ANALYZE, FORMAT {form}", query))
        assert any(each.processes == 3 for each in plan.nodes())
        own = sum(each.own_ms for each in plan.nodes())
        assert own == pytest.approx(plan.root.whole_ms, rel=0.35)


def test_the_foot_is_the_same_in_each_format(server):
    major, connection = server
    if major in {"9.3", "9.6"}:
        options = "ANALYZE, BUFFERS"
    else:
        options = "ANALYZE, BUFFERS, SETTINGS" + (
            ", WAL, SERIALIZE, MEMORY" if major == "18" else ""
        )
    connection.execute("RESET ALL; SET work_mem = '5MB'; SET enable_hashjoin = off")
    if major == "18":
        connection.execute("SET jit_above_cost = 0")
    insert = (
        f"INSERT INTO {LINE} SELECT id, id, id FROM item WHERE shelf = 2 RETURNING *"
    )
    feet = []
    for form in ("text", "json", "yaml", "xml"):
        plan = read(explained(connection, f"{options}, FORMAT {form}", insert))
        assert plan.execution_ms is not None
        assert not plan.not_understood
        feet.append([re.sub(r"[\d.]+", "#", each) for each in plan.footer])
        buffers = plan.root.detail("Buffers")
        assert "shared hit=" in buffers
        assert not [
            name for name, _value in plan.root.details if name.endswith(" Blocks")
        ]
    # What is read from disk or made anew depends on the time.
    assert {len({tuple(e for e in foot if "Buffers" not in e) for foot in feet})} == {
        1
    }, feet
    names = "\n".join(feet[0])
    wanted = {
        "9.6": ("Trigger",),
        "18": ("Trigger", "Settings", "Planning: Memory", "Serialization"),
    }
    assert [each for each in wanted.get(major, ()) if each not in names] == []
