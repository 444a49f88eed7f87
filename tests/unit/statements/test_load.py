"""Statements of logs, counters and SQL: what is read, what is left out, and what is refused."""

import json

import pytest

from runs.statements import data_script, drawing, load
from runs.statements.data_script import DataRefused
from runs.statements.load import NoStatements
from runs.statements.tokens import NotSql, fingerprint, masked, one, shown

BEGIN = "2026-11-28 10:00:00.123 UTC [{}] "


def line(pid, text):
    return BEGIN.format(pid) + text + "\n"


def units(read):
    return {unit.text: (unit.calls, unit.samples) for unit in read.units}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("SELECT a FROM t WHERE b = 1", "select  A from T where B=2 -- other"),
        ("SELECT * FROM t WHERE a IN (1, 2, 3)", "SELECT * FROM t WHERE a IN ($1)"),
        ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", "INSERT INTO t VALUES (3, 'c')"),
        ("SELECT -1", "SELECT 5"),
        ("SELECT /* a /* b */ c */ 1.5e3", "SELECT 0xFF"),
        ("SELECT $a$ ' $b$ $a$", "SELECT E'it\\'s'"),
        ("SELECT true, NULL", "SELECT 1, 'x'"),
    ],
)
def test_statements_that_differ_in_constants_are_one(left, right):
    assert fingerprint(one(left)) == fingerprint(one(right))


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("SELECT a||'x', b->>'k'\n  FROM t -- note", "SELECT a||?, b->>? FROM t"),
        (
            "SELECT 1 WHERE a>=1 AND b@@'q' AND c<>- 5",
            "SELECT ? WHERE a>=? AND b@@? AND c<>?",
        ),
        ("SELECT x FROM t WHERE a IN (1,2, 3)", "SELECT x FROM t WHERE a IN (?, ...)"),
        ("INSERT INTO t VALUES (1, 2), (3, 4)", "INSERT INTO t VALUES (?, ...), ..."),
        ("SELECT a--1\n+1", "SELECT a +?"),
    ],
)
def test_a_statement_is_named_as_it_was_written(written, named):
    assert shown(one(written)) == named


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("SELECT a - 1 FROM t", "SELECT a FROM t"),
        ("SELECT a IS NULL", "SELECT a IS NOT NULL"),
        ('SELECT "A"', "SELECT a"),
        ("SELECT a FROM t", "SELECT a FROM u"),
    ],
)
def test_statements_that_do_something_else_are_two(left, right):
    assert fingerprint(one(left)) != fingerprint(one(right))


def test_a_log_gives_statements_with_values_times_and_transactions():
    text = (
        line(1, "LOG:  duration: 1.250 ms  statement: SELECT *\n\tFROM t WHERE a = 5;")
        + line(
            1, "LOG:  duration: 0.100 ms  parse S_1: UPDATE t SET x = $1 WHERE a = $2"
        )
        + line(
            1, "LOG:  duration: 0.200 ms  bind S_1: UPDATE t SET x = $1 WHERE a = $2"
        )
        + line(1, "DETAIL:  Parameters: $1 = 'it''s', $2 = NULL")
        + line(
            1, "LOG:  duration: 2.000 ms  execute S_1: UPDATE t SET x = $1 WHERE a = $2"
        )
        + line(1, "DETAIL:  Parameters: $1 = 'it''s', $2 = NULL")
        + line(2, "LOG:  statement: BEGIN")
        + line(2, "LOG:  statement: INSERT INTO t VALUES (1)")
        + line(1, 'ERROR:  column "no" does not exist')
        + line(1, "STATEMENT:  SELECT no")
        + line(2, "LOG:  duration: 3.000 ms")
        + line(2, "LOG:  duration: 4.000 ms  statement: SELECT 2")
        + line(2, "LOG:  duration: 0.010 ms  statement: COMMIT")
    )
    read = load.read(text)
    assert read.format == "stderr"
    assert units(read) == {
        "SELECT * FROM t WHERE a = ?": (1, (("SELECT *\nFROM t WHERE a = 5",),)),
        "UPDATE t SET x = ? WHERE a = ?": (
            1,
            (("UPDATE t SET x = 'it''s' WHERE a = NULL",),),
        ),
        "INSERT INTO t VALUES (?);\nSELECT ?": (
            1,
            (("INSERT INTO t VALUES (1)", "SELECT 2"),),
        ),
    }
    assert read.milliseconds == pytest.approx(10.25)
    assert [unit.line for unit in read.units] == [9, 6, 1]


@pytest.mark.parametrize(
    "prefix", ["", "%m [%p] ", "%t %u@%d %c ", "%n:%l:%p:", "<%p> "]
)
def test_sessions_are_told_apart_by_any_prefix(prefix):
    values = {
        "m": "2026-11-28 10:00:00.123 UTC",
        "t": "2026-11-28 10:00:00 UTC",
        "u": "me",
    }
    values |= {"d": "shop", "n": "1732788000.123", "l": "7"}

    def begin(number):
        text = prefix or "%m [%p] "
        own = values | {"p": str(4000 + number), "c": f"65f0a1b2.{number}a"}
        for letter, value in own.items():
            text = text.replace(f"%{letter}", value)
        return text

    lines = []
    for step in ("BEGIN", "SELECT a FROM t", "SELECT b FROM t", "COMMIT"):
        lines += [
            f"{begin(n)}LOG:  duration: 1.000 ms  statement: {step}" for n in (1, 2)
        ]
    read = load.read("\n".join(lines), prefix=prefix)
    assert {unit.text: unit.calls for unit in read.units} == {
        "SELECT a FROM t;\nSELECT b FROM t": 2
    }


def test_auto_explain_is_read_as_text_and_as_json():
    text = line(1, "LOG:  duration: 5.000 ms  plan:\n\tQuery Text: SELECT count(*)") + (
        "\t  FROM t;\n\tAggregate  (cost=1.00..2.00 rows=1 width=8)\n"
        "\t  ->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=0)\n"
    )
    plan = json.dumps(
        {"Query Text": "SELECT $1", "Query Parameters": "$1 = '7'"}, indent=2
    )
    text += line(1, "LOG:  duration: 6.000 ms  plan:\n\t" + plan.replace("\n", "\n\t"))
    read = load.read(text)
    assert [unit.samples for unit in read.units] == [
        (("SELECT '7'",),),
        (("SELECT count(*)\n  FROM t",),),
    ]


COUNTED = [("SELECT a FROM t", 12, 34.5), ("SELECT a\n  FROM t WHERE b = $1", 3, 1.0)]


def printed_by_psql(time):
    return (
        f" calls | {time:>15} |          query\n"
        "-------+-----------------+--------------------------\n"
        "    12 |            34.5 | SELECT a FROM t\n"
        "     3 |               1 | SELECT a                +\n"
        "       |                 |   FROM t WHERE b = $1\n"
        "(2 rows)\n"
    )


def as_rows(time):
    return [
        {"query": query, "calls": calls, time: total} for query, calls, total in COUNTED
    ]


KEPT = {
    "csv": """query,calls,total_exec_time
"SELECT a FROM t",12,34.5
"SELECT a
  FROM t WHERE b = $1",3,1
""",
    "tabs": """queryid\tquery\tcalls\ttotal_time
1\tSELECT a FROM t\t12\t34.5
2\t"SELECT a
  FROM t WHERE b = ?"\t3\t1
""",
    "json": json.dumps(as_rows("total_time")),
    "json lines": "\n".join(json.dumps(row) for row in as_rows("total_exec_time")),
    "psql": printed_by_psql("total_exec_time"),
    "psql of 9.4": printed_by_psql("total_time"),
    "psql with x": """-[ RECORD 1 ]---+----
query           | SELECT a FROM t
calls           | 12
total_time      | 34.5
-[ RECORD 2 ]---+----
query           | SELECT a+
                |   FROM t WHERE b = $1
calls           | 3
""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=list(KEPT))
def test_pg_stat_statements_is_read_as_people_keep_it(text):
    read = load.read(text)
    assert read.format == "pg_stat_statements"
    rows = [(unit.text, unit.calls, unit.drawn_from) for unit in read.units]
    assert rows == [
        ("SELECT a FROM t", 12, ()),
        ("SELECT a FROM t WHERE b = ?", 3, ("t.b",)),
    ]
    assert read.units[0].milliseconds == 34.5
    ((sample,),) = read.units[1].samples
    assert " ".join(sample.split()) == "SELECT a FROM t WHERE b = $1"


DRAWN = {
    "SELECT 1 FROM orders o JOIN items AS i USING (id) WHERE o.kind = $1 AND i.n > $2": (
        "orders.kind",
        "items.n",
    ),
    "UPDATE shop.orders SET note = $1 WHERE id IN ($2, $3)": (
        "shop.orders.note",
        "shop.orders.id",
    ),
    'DELETE FROM "T" WHERE "Id" BETWEEN $1 AND $2': ("T.Id",),
    "SELECT 1 FROM a, b WHERE a.x = b.x AND $1 < y LIMIT $2": ("y",),
    "SELECT 1 FROM t WHERE id = $1 AND EXISTS (SELECT 1 FROM u WHERE u.k <> $2::int)": (
        "id",
        "u.k",
    ),
    "SELECT $1": None,
    "INSERT INTO t VALUES ($1)": None,
    "SELECT 1 FROM t WHERE lower(x) = $1": None,
    "SELECT 1 FROM t WHERE x LIKE $1": None,
    "SELECT 1 FROM t WHERE x = ANY ($1)": None,
    "WITH few AS (SELECT a FROM t) SELECT 1 FROM few, u WHERE few.a = $1 AND u.b = $2": (
        "a",
        "u.b",
    ),
    "SELECT 1 FROM (SELECT x FROM t) AS other WHERE other.x = $1": ("t.x",),
    "SELECT 1 WHERE x = $1": None,
}


@pytest.mark.parametrize(("text", "columns"), DRAWN.items())
def test_a_parameter_is_drawn_from_the_column_that_it_is_compared_with(text, columns):
    found = drawing.parameters(one(text))
    assert (None if found is None else drawing.sources(found)) == columns


def test_the_ends_of_a_range_are_in_their_order():
    lower, upper = drawing.parameters(one("SELECT 1 FROM t WHERE a BETWEEN $1 AND $2"))
    places = [
        (lower.place("load/1", draw), upper.place("load/1", draw)) for draw in range(50)
    ]
    assert all(low < high for low, high in places)
    assert len(set(places)) == 50
    assert places == [
        (lower.place("load/1", draw), upper.place("load/1", draw)) for draw in range(50)
    ]


def test_values_that_were_logged_come_before_what_is_drawn():
    text = "SELECT a FROM t WHERE b = $1"
    calls = [
        line(1, f"LOG:  duration: 1.000 ms  execute S: {text}"),
        line(1, f"LOG:  duration: 1.000 ms  execute S: {text}")
        + line(1, "DETAIL:  parameters: $1 = '4'"),
    ]
    for ordered in (calls, calls[::-1]):
        (unit,) = load.read("".join(ordered)).units
        assert (unit.calls, unit.drawn) == (2, ())
        assert unit.samples == (("SELECT a FROM t WHERE b = '4'",),)


def test_counters_of_the_server_weigh_the_statements_of_a_log():
    log = line(1, "LOG:  duration: 1.000 ms  execute S: SELECT a FROM t WHERE b = $1")
    log += line(1, "DETAIL:  parameters: $1 = '4'")
    read = load.read(
        log, weights="query,calls,total_time\nSELECT a FROM t WHERE b = $1,900,70.5\n"
    )
    (unit,) = read.units
    assert (unit.calls, unit.milliseconds) == (900, 70.5)
    assert unit.samples == (("SELECT a FROM t WHERE b = '4'",),)


def test_a_statement_that_auto_explain_has_logged_too_counts_once():
    text = line(1, "LOG:  duration: 5.000 ms  plan:\n\tQuery Text: SELECT 7;") + (
        "\tResult  (cost=0.00..0.01 rows=1 width=4)\n"
    )
    text += line(1, "LOG:  duration: 5.100 ms  statement: SELECT 7;")
    text += line(1, "LOG:  duration: 0.300 ms  statement: SELECT 8;")
    (unit,) = load.read(text).units
    assert (unit.calls, unit.milliseconds) == (2, pytest.approx(5.4))


def test_secrets_in_values_can_be_masked():
    statement = one(
        "UPDATE users SET password = 'hunter2', mail = 'me@example.org', name = 'me', "
        "card = '4111 1111 1111 1111' WHERE note = 'password'"
    )
    text, count = masked(statement)
    assert count == 3
    assert text == (
        "UPDATE users SET password = 'masked', mail = 'masked', name = 'me', "
        "card = 'masked' WHERE note = 'password'"
    )


LEFT_OUT = {
    "COPY t FROM stdin": "copy",
    "CREATE TABLE t (a integer)": "ddl",
    "CREATE TEMP TABLE t (a integer)": "temporary",
    "SELECT * INTO t FROM u": "ddl",
    "VACUUM t": "utility",
    "DO $$ BEGIN END $$": "utility",
    "SET work_mem = '1GB'": "session",
    "DECLARE c CURSOR FOR SELECT 1": "cursor",
    "FETCH 5 FROM c": "cursor",
    "EXECUTE p(1)": "prepared",
    "PREPARE p AS SELECT 1": "prepared",
    "SELECT $1": "no_values",
    "SAVEPOINT s": "control",
    "SELECT 1 \\gexec": "not_sql",
    "\\! touch /tmp/never": "not_sql",
}


@pytest.mark.parametrize(("text", "reason"), LEFT_OUT.items())
def test_what_cannot_be_run_is_named_with_its_line_and_why(text, reason):
    read = load.read(f"SELECT 1;\n{text};")
    assert [(row.line, row.reason) for row in read.left_out] == [(2, reason)]
    assert len(read.units) == 1


HOSTILE_LOADS = [
    ("", NoStatements),
    (" \n\t", NoStatements),
    ("-- nothing", NoStatements),
    ("\0" * 1_000_000, NoStatements),
    ("SELECT 'open", NotSql),
    ("SELECT $a$ open", NotSql),
    ('SELECT "open', NotSql),
    ("/* /* */ open", NotSql),
    ("{" * 100_000, NoStatements),
    ('[{"query":' * 50_000, NoStatements),
    ('{"error_severity": "LOG", "message": 5}', NoStatements),
    ('2026-01-01 00:00:00,"' + "x" * 1_000_000, NotSql),
    ("query,calls\n", NoStatements),
    ("query,calls\nSELECT 1,-5\n", NoStatements),
    ("query,calls\nSELECT 1,many\n", NoStatements),
]


@pytest.mark.parametrize(("text", "refusal"), HOSTILE_LOADS)
def test_a_text_that_is_no_load_is_refused(text, refusal):
    with pytest.raises(refusal):
        load.read(text)


EXECUTED = line(1, "LOG:  duration: 1.000 ms  execute S: SELECT $1")
NAMED = [
    (line(1, "LOG:  duration: 1.000 ms  statement: SELECT 'cut"), "not_sql"),
    (line(1, "LOG:  duration: 1.000 ms  statement: SELECT 1; DROP TABLE t"), "not_sql"),
    (EXECUTED, "no_values"),
    (EXECUTED + line(1, "DETAIL:  parameters: $1 = 'abc...'"), "cut_value"),
    (
        line(1, f"LOG:  duration: 1.000 ms  statement: SELECT '{'x' * 200_000}'"),
        "not_sql",
    ),
    (
        json.dumps({"error_severity": "LOG", "message": "statement: SELECT '\ud800'"}),
        "not_sql",
    ),
]


@pytest.mark.parametrize(("text", "reason"), NAMED)
def test_a_broken_line_of_a_log_is_left_out_and_named(text, reason):
    read = load.read(text)
    assert [row.reason for row in read.left_out] == [reason]
    assert read.units == ()


HOSTILE_DATA = {
    "\\! touch /tmp/never": "psql_command",
    "SELECT 1 \\gexec": "psql_command",
    "\\copy t FROM '/etc/passwd'": "psql_command",
    "\\i /etc/passwd": "psql_command",
    "\\o |sh": "psql_command",
    "\\connect other": "psql_command",
    "\\restrict x\n\\! sh": "psql_command",
    # The quote ends before the backslash, for psql and for us.
    "SELECT 'a\\'; \\! sh": "psql_command",
    "COPY t FROM stdin;\n\\.\n\\! sh": "psql_command",
    "COPY t FROM PROGRAM 'sh'": "copy_from_file",
    "COPY t FROM '/etc/passwd'": "copy_from_file",
    "COPY t TO '/tmp/t'": "copy_from_file",
    "COPY t FROM stdin;\n1\n2": "rows_not_ended",
    "COPY t FROM stdin WITH (FORMAT 'x');\n\\.\n": "copy_options",
    'COPY "a\nb" FROM stdin;\n\\.\n': "copy_options",
    "CREATE FUNCTION f() RETURNS integer LANGUAGE plpython3u AS 'x'": "language",
    "CREATE FUNCTION f() RETURNS integer AS '/lib/x.so', 'f' LANGUAGE c": "language",
    "CREATE OR REPLACE FUNCTION f() RETURNS integer LANGUAGE 'plperlu' AS 'x'": "language",
    "CREATE EXTENSION file_fdw": "extension",
    'CREATE EXTENSION IF NOT EXISTS "dblink" WITH SCHEMA public': "extension",
    "PGDMP\x01\x0f": "custom_format",
    "\0" * 1_000_000: "not_text",
    "-- nothing": "no_data",
    "GRANT ALL ON t TO PUBLIC": "no_data",
    "SELECT 'open": "not_sql",
    "/* open": "not_sql",
}


@pytest.mark.parametrize(("text", "code"), HOSTILE_DATA.items())
def test_data_that_reach_beyond_their_database_are_refused(text, code):
    with pytest.raises((DataRefused, NotSql)) as raised:
        data_script.read(text)
    assert raised.value.code == code


def test_nothing_of_the_data_is_read_by_psql_but_rows_and_names():
    script = data_script.read(
        "CREATE TABLE \"T\" (a text);\nINSERT INTO \"T\" VALUES (E'\\\\! x', ':HOME');\n"
        'COPY "T" (a) FROM stdin;\n\\\\! x\n\\.\n'
    ).script
    lines = script.splitlines()
    assert lines[2:] == ['COPY "T" ( a ) FROM stdin;', "\\\\! x", "\\."]
    for one_line in lines[:2]:
        head, _quote, rest = one_line.partition("decode('")
        assert "\\" not in head
        assert set(rest.partition("'")[0]) <= set("0123456789abcdef")


def test_twice_the_text_is_read_with_twice_the_work(monkeypatch):
    """No reader looks at what it has read again: tokens are counted, not seconds."""
    from runs.statements import tokens

    counted = [0]
    make = tokens._token

    def counting(sql, match):
        counted[0] += 1
        return make(sql, match)

    monkeypatch.setattr(tokens, "_token", counting)
    text = "".join(
        line(n, f"LOG:  duration: 1.000 ms  statement: SELECT a FROM t WHERE b = {n}")
        for n in range(200)
    )
    works = []
    for part in (text, text * 2):
        counted[0] = 0
        load.read(part)
        works.append(counted[0])
    assert works[1] <= 2.1 * works[0]
