"""What differs between two databases is read, and single objects are put back, on real servers."""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runs.analysis.why import repairs, suspects
from runs.analysis.why.suspects import Side
from runs.execution.clusters.postgres import json_rows
from runs.execution.evidence import objects
from runs.postgresql_settings import comparing
from tests.unit.analysis.why.test_parts import PLAIN
from tests.unit.postgresql_settings.servers import started_often

COMMON = """
CREATE TABLE t (id int PRIMARY KEY, k int, v text, n numeric);
INSERT INTO t SELECT i, i % 100, repeat(md5(i::text), 3), i FROM generate_series(1, 2000) i;
CREATE INDEX t_k ON t (k);
CREATE TABLE p (id int PRIMARY KEY);
INSERT INTO p SELECT generate_series(0, 2000);
CREATE FUNCTION f(x int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
BEGIN RETURN (SELECT count(*) FROM t WHERE k = x); END $$;
CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE VIEW w AS SELECT k FROM t;
CREATE SEQUENCE s;
CREATE DOMAIN d AS int;
"""


@dataclass(frozen=True)
class Plant:
    """What only B executes, the difference that it makes, and from which version on.

    `setup_only`: nothing puts it back alone; `only_back`: nothing gives it to A.
    """

    sql: str
    key: str
    since: int = 0
    setup_only: bool = False
    only_back: bool = False


PLANTS = {
    "index dropped": Plant("DROP INDEX t_k;", "index t_k"),
    "key dropped": Plant("ALTER TABLE t DROP CONSTRAINT t_pkey;", "index t_pkey"),
    "key added": Plant("ALTER TABLE t ADD UNIQUE (v);", "index t_v_key"),
    "index added": Plant("CREATE INDEX more ON t (v, n);", "index more"),
    "another operator class": Plant(
        "DROP INDEX t_k; CREATE INDEX t_k ON t ((k::text) text_pattern_ops);",
        "index t_k",
    ),
    "partial index": Plant(
        "DROP INDEX t_k; CREATE INDEX t_k ON t (k) WHERE k > 50;", "index t_k"
    ),
    "fillfactor": Plant(
        "ALTER TABLE t SET (fillfactor = 20); VACUUM FULL t;", "relation t"
    ),
    "autovacuum of a table": Plant(
        "ALTER TABLE t SET (autovacuum_enabled = off);", "relation t"
    ),
    "unlogged": Plant("ALTER TABLE t SET UNLOGGED;", "relation t", since=90500),
    "row security": Plant(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY;", "relation t", since=90500
    ),
    "policy": Plant(
        "CREATE POLICY q ON t FOR SELECT USING (k > 0);", "policy t.q", since=90500
    ),
    "type": Plant("ALTER TABLE t ALTER id TYPE bigint;", "column t.id"),
    "type of numbers": Plant(
        "ALTER TABLE t ALTER n TYPE double precision;", "column t.n"
    ),
    "collation of a column": Plant(
        'ALTER TABLE t ALTER v TYPE text COLLATE "POSIX";', "column t.v"
    ),
    "storage": Plant("ALTER TABLE t ALTER v SET STORAGE EXTERNAL;", "column t.v"),
    "compression": Plant(
        "ALTER TABLE t ALTER v SET COMPRESSION pglz;", "column t.v", since=140000
    ),
    "target of statistics": Plant(
        "ALTER TABLE t ALTER k SET STATISTICS 1;", "column t.k"
    ),
    "wrong n_distinct": Plant(
        "ALTER TABLE t ALTER k SET (n_distinct = 2); ANALYZE t;", "column t.k"
    ),
    "not null": Plant("ALTER TABLE t ALTER k SET NOT NULL;", "column t.k"),
    "default": Plant("ALTER TABLE t ALTER k SET DEFAULT 5;", "column t.k"),
    "foreign key": Plant(
        "ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (k) REFERENCES p;", "constraint t.c"
    ),
    "check": Plant(
        "ALTER TABLE t ADD CONSTRAINT c CHECK (length(v) > 0);", "constraint t.c"
    ),
    "constraint of a domain": Plant(
        "ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE > 0);", "domain d.c"
    ),
    "trigger": Plant(
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW EXECUTE PROCEDURE g();",
        "trigger t.g",
    ),
    "trigger with its function": Plant(
        "CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RETURN NEW; END $$; "
        "CREATE TRIGGER o BEFORE UPDATE ON t FOR EACH ROW EXECUTE PROCEDURE own();",
        "trigger t.o",
    ),
    "trigger with a function that no record defines": Plant(
        "CREATE FUNCTION own() RETURNS trigger LANGUAGE internal "
        "AS 'suppress_redundant_updates_trigger'; "
        "CREATE TRIGGER o BEFORE UPDATE ON t FOR EACH ROW EXECUTE PROCEDURE own();",
        "trigger t.o",
        only_back=True,
    ),
    "check with functions": Plant(
        "CREATE FUNCTION z(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1'; "
        "CREATE FUNCTION h(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT z($1)'; "
        "ALTER TABLE t ADD CONSTRAINT c CHECK (h(k) >= 0);",
        "constraint t.c",
    ),
    "rule": Plant("CREATE RULE r AS ON DELETE TO t DO ALSO SELECT 1;", "trigger t.r"),
    "volatility": Plant("ALTER FUNCTION f(int) VOLATILE;", "function f(x integer)"),
    "setting of a function": Plant(
        "ALTER FUNCTION f(int) SET enable_indexscan = off;", "function f(x integer)"
    ),
    "body of a function": Plant(
        """CREATE OR REPLACE FUNCTION f(x int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT count(*) FROM t WHERE k + 0 = x); END $$;""",
        "function f(x integer)",
    ),
    "view": Plant(
        "CREATE OR REPLACE VIEW w AS SELECT k FROM t WHERE k < 50 OFFSET 0;", "view w"
    ),
    "view with more columns": Plant(
        "DROP VIEW w; CREATE VIEW w AS SELECT k, v FROM t;", "view w"
    ),
    "cache of a sequence": Plant(
        "ALTER SEQUENCE s CACHE 50;", "sequence s", since=100000
    ),
    "extended statistics": Plant(
        "CREATE STATISTICS x ON id, k FROM t;", "statistics x", since=100000
    ),
    "replica identity": Plant(
        "ALTER TABLE t REPLICA IDENTITY FULL;", "identity t", since=90400
    ),
    "publication": Plant(
        "CREATE PUBLICATION b FOR TABLE t;",
        "publication b",
        since=100000,
        only_back=True,
    ),
    "slot": Plant(
        "SELECT pg_create_physical_replication_slot('b');",
        "slot b",
        since=90400,
        only_back=True,
    ),
    "setting of the database": Plant(
        "ALTER DATABASE b SET work_mem = '64kB';", "work_mem"
    ),
    "setting of a role": Plant(
        "ALTER ROLE x IN DATABASE b SET enable_seqscan = off;", "enable_seqscan"
    ),
    "prepared transaction": Plant(
        "BEGIN; DELETE FROM t WHERE id < 5; PREPARE TRANSACTION 'held';",
        "prepared held",
        only_back=True,
    ),
    "extension": Plant(
        "DROP EXTENSION IF EXISTS plpgsql CASCADE;", "extension plpgsql", only_back=True
    ),
    "rows": Plant(
        "INSERT INTO p SELECT generate_series(3000, 9000); ANALYZE p;",
        "rows p",
        setup_only=True,
    ),
    "order of rows": Plant(
        "CREATE TABLE u AS TABLE t ORDER BY md5(id::text); TRUNCATE t; "
        "INSERT INTO t TABLE u; DROP TABLE u; ANALYZE t;",
        "distribution t.id",
        setup_only=True,
    ),
    "skew": Plant(
        "UPDATE t SET k = 5 WHERE id > 100; VACUUM FULL t; ANALYZE t;",
        "distribution t.k",
        setup_only=True,
    ),
    "inheritance": Plant(
        "CREATE TABLE c () INHERITS (t);", "relation c", setup_only=True
    ),
    "generated column": Plant(
        "ALTER TABLE t DROP n, ADD n numeric GENERATED ALWAYS AS (id * 2) STORED;",
        "generated t.n",
        since=130000,
        only_back=True,
    ),
    "partitions": Plant(
        "CREATE TABLE r (id int) PARTITION BY RANGE (id); "
        "CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (9);",
        "relation r",
        since=110000,
        setup_only=True,
    ),
}
# As `evidence.accounting` reads them.
_FACTS = """SELECT row_to_json(r) FROM (SELECT c.relname AS relation, c.relkind AS kind,
    c.reltuples AS tuples, pg_relation_size(c.oid) AS bytes FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public') r;
SELECT row_to_json(s) FROM (SELECT name AS setting_name, setting, coalesce(unit, '') AS unit, source
    FROM pg_settings WHERE name IN ('work_mem', 'enable_seqscan')) s;
"""


def psql(server, folder, database, sql):
    program = next(
        path
        for path in (
            server.bindir / "psql",
            *sorted(Path("/usr/lib/postgresql").glob("*/bin/psql")),
            Path("/usr/bin/psql"),
        )
        if path.exists()
    )
    argv = [
        program,
        "-XqAt",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        folder,
        "-U",
        "x",
        database,
    ]
    done = subprocess.run(argv, input=sql, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (sql[:300], done.stderr)
    return done.stdout


def number_of(server):
    parts = [int(part) for part in server.version.split(".")]
    return parts[0] * 10000 + (parts[1] * 100 + parts[2] if parts[0] < 10 else parts[1])


def read(server, folder, database, wants_setup=True):
    version = number_of(server)
    rows = json_rows(
        psql(server, folder, database, objects.objects_sql(version) + _FACTS)
    )
    relations = {row["relation"]: row for row in rows if "relation" in row}
    printed = {
        row["setting_name"]: {name: row[name] for name in ("setting", "unit", "source")}
        for row in rows
        if "setting_name" in row
    }
    found = objects.objects(rows)
    account = replace(PLAIN, relations=relations, objects=found)
    return Side(
        server.major,
        version,
        comparing.read_server(printed, server.major),
        [account] * 2,
        further={**found, "setup": {"init_sql": database}} if wants_setup else found,
        of_role=frozenset(
            name
            for name, row in printed.items()
            if row["source"] in {"database", "user", "database user"}
        ),
    )


def listed(a, b):
    return {
        suspect.key: suspect
        for suspect in suspects.find(a, b, None)
        if suspect.kind not in {"setup", "database"}
    }


def settings_of(version):
    settings = {
        "fsync": "off",
        "max_wal_senders": "4",
        "max_prepared_transactions": "2",
        "wal_level": "logical" if version >= 90400 else "hot_standby",
    }
    if version >= 90400:
        settings["max_replication_slots"] = "4"
    return settings


def fresh(server, folder, database, sql=""):
    psql(server, folder, "postgres", f"DROP DATABASE IF EXISTS {database};")
    psql(server, folder, "postgres", f"CREATE DATABASE {database};")
    psql(server, folder, database, COMMON)
    psql(server, folder, database, sql)
    psql(server, folder, database, "VACUUM ANALYZE;")


def fault_of(plant, server, folder, a):
    """What is wrong with how B, which has been planted, is read and put back; empty if nothing."""
    b = read(server, folder, "b")
    found = listed(a, b)
    suspect = found.get(plant.key)
    if suspect is None:
        return f"not listed, but {sorted(found)}"
    if plant.setup_only:
        return str(suspect.statements or "")
    if not suspect.statements:
        return f"nothing puts it back: {suspect}"
    psql(server, folder, "b", "\n".join(suspect.statements))
    psql(server, folder, "b", "VACUUM ANALYZE;")
    left = listed(a, read(server, folder, "b"))
    if plant.key in left:
        return f"left {left[plant.key]}"
    if plant.only_back or suspect.kind == "setting":
        return f"A is given {suspect.statements_forth}" * bool(
            plant.only_back and suspect.statements_forth
        )
    fresh(server, folder, "c")
    psql(server, folder, "c", "\n".join(suspect.statements_forth))
    psql(server, folder, "c", "VACUUM ANALYZE;")
    lacking = listed(read(server, folder, "c"), b)
    return f"A lacks {lacking[plant.key]}" if plant.key in lacking else ""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("server", started_often(), ids=str)
def test_each_plant_is_a_difference_and_is_put_back(server):
    version = number_of(server)
    faults = {}
    with server.running(settings_of(version)) as (folder, started):
        assert started
        fresh(server, folder, "a")
        a = read(server, folder, "a")
        for name, plant in PLANTS.items():
            if version >= plant.since:
                fresh(server, folder, "b", plant.sql)
                faults[name] = fault_of(plant, server, folder, a)
        for database in "abc":
            psql(server, folder, "postgres", f"DROP DATABASE {database};")
    assert not {name: fault for name, fault in faults.items() if fault}


def given_trigger(definitions, present):
    """How A gets the trigger of B, by the functions that B's record defines and A has."""
    trigger = "CREATE TRIGGER o BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION own()"
    change = repairs.Change("t.o", "", trigger, definitions, present)
    remedy = repairs.find_remedy("trigger", change)
    return remedy.statements, remedy.undefined


def test_a_trigger_comes_with_its_function_and_not_without():
    definition = (
        "CREATE OR REPLACE FUNCTION public.own()\n RETURNS trigger\n LANGUAGE plpgsql\n"
        "AS $function$ BEGIN RETURN NEW; END $function$\n"
    )
    functions = {"function": {"own()": "plpgsql v"}}
    recorded = {**functions, "function_definition": {"own()": definition}}
    made, undefined = given_trigger(recorded, {"function": {}})
    assert made[0] == f"{definition.strip()};"
    assert [text.split()[0] for text in made] == ["CREATE", "DROP", "CREATE"]
    assert undefined == ()
    # One that is there is left as it is.
    made, undefined = given_trigger(recorded, functions)
    assert [text.split()[0] for text in made] == ["DROP", "CREATE"]
    assert undefined == ()
    # Cut, or of a language without one: then it is named.
    assert given_trigger(functions, {"function": {}}) == ((), ("own()",))
    # What no record has says nothing.
    made, undefined = given_trigger(functions, {})
    assert (len(made), undefined) == (2, ())


@pytest.mark.parametrize("type_name", ["text", "bytea"])
def test_values_are_stored_as_the_column_says(type_name):
    """Both ways: out of line and not compressed, or compressed."""
    server = started_often()[-1]
    made = (
        f"CREATE TABLE z (v {type_name}); ALTER TABLE z ALTER v SET STORAGE %s; "
        "INSERT INTO z SELECT repeat(md5(i::text), 2000)::%s FROM generate_series(1, 50) i;"
    )
    size = "SELECT pg_total_relation_size('z');"
    with server.running(settings_of(number_of(server))) as (folder, started):
        assert started
        for database, storage in (("a", "EXTERNAL"), ("b", "EXTENDED")):
            fresh(server, folder, database, made % (storage, type_name))
        sides = [read(server, folder, database) for database in "ab"]
        sizes = [int(psql(server, folder, database, size)) for database in "ab"]
        assert sizes[0] > 5 * sizes[1]
        suspect = listed(*sides)["column z.v"]
        psql(server, folder, "b", "\n".join(suspect.statements))
        psql(server, folder, "a", "\n".join(suspect.statements_forth))
        changed = [int(psql(server, folder, database, size)) for database in "ba"]
        assert changed == pytest.approx(sizes, rel=0.1)
        for database in "ab":
            psql(server, folder, "postgres", f"DROP DATABASE {database};")


def test_what_is_locked_is_freed_first_and_else_refused(tmp_path):
    """A table that a prepared transaction holds is not waited for."""
    server = started_often()[-1]
    with server.running(settings_of(number_of(server))) as (folder, started):
        assert started
        held = "BEGIN; DELETE FROM t WHERE id < 5; PREPARE TRANSACTION 'held';"
        fresh(server, folder, "b", held)
        statements = ["VACUUM FULL t;", "ROLLBACK PREPARED 'held';"]
        waits = repairs.script(statements[:1]).replace("30s", "100ms")
        with pytest.raises(AssertionError, match="lock timeout"):
            psql(server, folder, "b", waits)
        psql(server, folder, "b", repairs.script(statements))
        psql(server, folder, "postgres", "DROP DATABASE b;")


def test_every_kind_of_a_database_says_whether_it_is_put_back():
    kinds = objects.KINDS.keys() - objects.DEFINITIONS
    assert kinds <= repairs.REPAIRS.keys()
    assert suspects.UNCOMPARED == objects.DEFINITIONS


@pytest.mark.parametrize(
    ("kind", "name", "wanted"),
    [
        ("index", "i", "CREATE INDEX i ON t (k); DROP TABLE t"),
        ("index", 'i"; DROP TABLE t', "CREATE INDEX i ON t (k)"),
        ("index", "i", "CREATE INDEX i ON t (k) \\! rm"),
        ("index", "i", "DROP TABLE t"),
        ("index", "i", "CREATE INDEX i ON t (k) WHERE v = :'HOME'"),
        ("index", "i", "CREATE INDEX i ON t (k) -- x"),
        ("index", "i", "CREATE INDEX i ON t (" + "k, " * 1000 + "k)"),
        ("constraint", "t.c", "CHECK (true); DROP TABLE t"),
        ("trigger", "t.g", "CREATE TABLE x ()"),
        ("policy", "t.p", "AS PERMISSIVE; DROP TABLE t"),
        ("view", "w", "SELECT 1; DROP TABLE t"),
        ("sequence", "s", "CACHE 1 INCREMENT 1; DROP TABLE t"),
        ("default", "work_mem (role x)", "'; DROP TABLE t"),
        ("prepared", "x'; DROP TABLE t", ""),
    ],
)
def test_what_is_not_in_the_form_of_its_row_is_not_put_back(kind, name, wanted):
    now = "CREATE INDEX i ON t (v)" if kind == "index" else "x"
    change = repairs.Change(name, now, wanted)
    assert repairs.find_remedy(kind, change).statements == ()


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE OR REPLACE FUNCTION f() AS $function$ BEGIN END $function$; DROP TABLE t",
        "CREATE OR REPLACE FUNCTION f(); DROP TABLE t; $function$ $function$",
        "CREATE OR REPLACE FUNCTION f() AS $function$ $function$; x $function$ $function$",
        "CREATE OR REPLACE FUNCTION f() AS $function$ \\! rm $function$",
        "DROP TABLE t",
    ],
)
def test_a_function_is_one_statement_of_a_catalogue(definition):
    change = repairs.Change(
        "f()",
        "sql v COST 1 x",
        "sql s COST 2 y",
        {"function_definition": {"f()": definition}},
    )
    assert repairs.find_remedy("function", change).statements == ()
