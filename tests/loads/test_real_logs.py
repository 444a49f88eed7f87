"""Logs that a real server has written, in four formats and languages, against its own counters."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from runs.statements import load
from runs.statements.tokens import fingerprint, one

BIN = Path("/usr/lib/postgresql/15/bin")
TRANSLATED = Path("/usr/share/locale/ja/LC_MESSAGES/postgres-15.mo")
pytestmark = pytest.mark.skipif(
    not (BIN / "postgres").exists() or os.getuid() != 0,
    reason="needs Debian's PostgreSQL 15, root",
)

SETTINGS = """
logging_collector = on
log_filename = 'postgresql.log'
log_destination = 'stderr,csvlog,jsonlog'
log_line_prefix = '%m [%p] %q%u@%d '
log_min_duration_statement = 0
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = top
pg_stat_statements.track_utility = off
fsync = off
"""
TABLES = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE orders AS SELECT n AS id, 'it''s ' || n AS note, n % 7 AS kind
FROM generate_series(1, 500) AS n;
"""
STATEMENTS = """
SELECT * FROM orders WHERE id = 5;
SELECT * FROM orders WHERE id = 6;
SELECT count(*) FROM orders WHERE kind IN (1, 2, 3) AND note <> 'x''y';
SELECT count(*)
  FROM orders -- a comment
 WHERE note LIKE E'it\\'s%' AND kind = -1;
UPDATE orders SET note = 'new' WHERE id = 9;
INSERT INTO orders VALUES (1001, 'a', 1), (1002, 'b', 2);
SELECT $tag$ a ' b $tag$, 1.5e3, TRUE, NULL FROM orders LIMIT 2;
DELETE FROM orders WHERE id BETWEEN 1001 AND 1002;
SELECT note FROM orders WHERE id = 7 FOR UPDATE;
WITH part AS (SELECT kind, count(*) AS number FROM orders GROUP BY kind)
SELECT max(number) FROM part;
"""
# pgbench sends these by the extended protocol, whose values are in DETAIL.
SCRIPT = (
    "\\set id random(1, 500)\n"
    "SELECT note, kind FROM orders WHERE id = :id AND kind >= :zero;\n"
)
TIMES = 20


@dataclass(frozen=True)
class Written:
    """What the server has written: its logs by format, and its counters by fingerprint."""

    logs: dict[str, str]
    counted: dict[str, int]
    counters: dict[str, str]


def kind_of(shown):
    """The fingerprint of a statement by what is shown of it."""
    return fingerprint(one(shown.replace(", ...", "")))


def run(*argv, text=""):
    """What a program prints."""
    return subprocess.run(
        argv, input=text.encode(), check=True, capture_output=True
    ).stdout


@pytest.fixture(scope="module", params=["C", "ja", "de", "fr", "ru", "zh_CN"])
def written(request, tmp_path_factory):
    if request.param != "C" and not TRANSLATED.exists():
        pytest.skip("needs PostgreSQL's translations")
    folder = Path("/tmp") / f"benchlab-logs-{os.getpid()}-{request.param}"
    folder.mkdir()
    shutil.chown(folder, "nobody")
    as_nobody = ("setpriv", "--reuid=nobody", "--clear-groups")
    data, options = folder / "data", f"-k {folder} -p 5996 -h ''"
    initdb = [
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--lc-messages=C.utf8",
    ]
    env = {**os.environ, "LC_ALL": "C.utf8", "LANGUAGE": request.param}
    run(*as_nobody, BIN / "initdb", "-D", data, *initdb)
    with (data / "postgresql.conf").open("a") as conf:
        conf.write(SETTINGS)
    start = [
        BIN / "pg_ctl",
        "-w",
        "-D",
        data,
        "-o",
        options,
        "-l",
        folder / "log",
        "start",
    ]
    subprocess.run([*as_nobody, *start], env=env, check=True, stdout=subprocess.DEVNULL)
    try:
        at = ["-h", folder, "-p", "5996", "-U", "postgres"]
        psql = [BIN / "psql", "-X", "-q", "-A", "-t", *at, "postgres"]
        run(*psql, text=TABLES)
        run(*psql, "-c", "SELECT pg_stat_statements_reset()")
        (folder / "script.sql").write_text(SCRIPT)
        pgbench = [
            BIN / "pgbench",
            "-n",
            "-M",
            "prepared",
            "-t",
            str(TIMES),
            "-D",
            "zero=0",
        ]
        run(*pgbench, *at, "-f", folder / "script.sql", "postgres")
        run(*psql, text=STATEMENTS)
        plain = [BIN / "psql", "-X", "-q", *at, "postgres"]
        rows = "SELECT * FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"
        counters = {
            "lines": run(
                *psql, "-c", f"SELECT row_to_json(s) FROM ({rows}) AS s"
            ).decode(),
            "list": run(*psql, "-c", f"SELECT json_agg(s) FROM ({rows}) AS s").decode(),
            "csv": run(*plain, "--csv", "-c", rows).decode(),
            "table": run(*plain, "-c", rows).decode(),
            "blocks": run(*plain, "-x", "-c", rows).decode(),
        }
    finally:
        run(*as_nobody, BIN / "pg_ctl", "-D", data, "-m", "fast", "stop")
    logs = {
        name: (data / "log" / f"postgresql.{suffix}").read_text()
        for name, suffix in (("stderr", "log"), ("csvlog", "csv"), ("jsonlog", "json"))
    }
    shutil.rmtree(folder)
    return Written(logs, _counted(counters["lines"]), counters)


def _counted(counters):
    """Calls by our fingerprint of the server's own text."""
    counted = {}
    for line in counters.splitlines():
        row = json.loads(line)
        key = fingerprint(one(row["query"]))
        counted[key] = counted.get(key, 0) + row["calls"]
    return counted


@pytest.mark.parametrize("name", ["stderr", "csvlog", "jsonlog"])
def test_a_log_has_the_calls_that_the_server_has_counted(written, name):
    read = load.read(written.logs[name])
    assert read.format == name
    calls = {
        kind_of(unit.text): unit.calls
        for unit in read.units
        if "pg_stat_statements" not in unit.text
    }
    assert calls == written.counted
    assert read.milliseconds is not None
    prepared = next(
        unit for unit in read.units if unit.text.startswith("SELECT note, kind")
    )
    assert prepared.calls == TIMES
    for (sample,) in prepared.samples:
        assert "$" not in sample
        assert sample.endswith("kind >= '0'")
    assert {row.reason for row in read.left_out} <= {"ddl", "copy"}


@pytest.mark.parametrize("form", ["lines", "list", "csv", "table", "blocks"])
def test_counters_are_read_in_each_form_that_psql_prints(written, form):
    read = load.read(written.counters[form])
    assert read.format == "pg_stat_statements"
    calls = {}
    for row in (*read.units, *read.left_out):
        key = kind_of(row.text)
        calls[key] = calls.get(key, 0) + row.calls
    assert calls == written.counted
