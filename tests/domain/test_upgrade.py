"""A database of 0.1 with data, migrated to this version: nothing of it is lost.

`tests/samples/release-0.1.sql` was written by 0.1 itself: its services, and pg_dump.
"""

import itertools
import json
import os
import subprocess
import sys
import time

import psycopg
import pytest
from psycopg import sql

from runs.analysis import certificate, monitoring
from runs.execution.plan import RunPlan
from runs.services.operations import backups
from tests.migrated import ROOT, create_database

pytestmark = pytest.mark.slow

LAST_OF_0_1 = "0003_treatments_and_indexes"
# Members have roles now; a file without the name of a stored content is none.
# A step that 0.1 believed to have found among two runs.
CHANGE = """
INSERT INTO runs_change (cell_id, run_id, metric_id, kind, ratio, before, after, found_at, decision,
                         note)
SELECT r.cell_id, r.id, m.metric_id, 'step', 0.9, 1000, 900, now(), 'open', ''
FROM runs_run r JOIN runs_measurement m ON m.run_id = r.id
WHERE r.origin = 'uploaded' ORDER BY r.id LIMIT 1"""
MOVED = {"runs_project_members"}
NAMELESS = "nameless"


def manage(url, *words):
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def rows(url):
    """Each table's rows by their keys."""
    with psycopg.connect(url) as database:
        tables = [name for name, _columns in database.execute(backups.TABLES).fetchall()]
        query = sql.SQL("SELECT to_jsonb(t) FROM {} t")
        return {
            name: {
                row["id"]: row
                for (row,) in database.execute(query.format(sql.Identifier(name)))
                if "id" in row
            }
            for name in tables
            if name not in {"django_migrations", "django_content_type", "auth_permission"}
        }


@pytest.fixture(scope="module")
def upgraded(django_db_setup):
    """What was there before, what is there afterwards, and where."""
    name = f"upgraded_{os.getpid()}"
    url = create_database(os.environ["DATABASE_URL"], name)
    try:
        manage(url, "migrate", "--verbosity=0", "auth")
        manage(url, "migrate", "--verbosity=0", "runs", LAST_OF_0_1)
        with psycopg.connect(url) as database:
            database.execute((ROOT / "tests/samples/release-0.1.sql").read_text())
            database.execute(CHANGE)
        before = rows(url)
        manage(url, "migrate", "--verbosity=0")
        manage(url, "migrate", "--check")
        yield before, rows(url), url
    finally:
        drop(name)


def test_every_row_is_there_with_its_values(upgraded):
    before, after, _url = upgraded
    assert sum(map(len, before.values())) > 100
    assert set(before) - set(after) == MOVED
    changed = [
        f"{name} {key}: {column} {value} {after[name].get(key, {}).get(column)}"
        for name, kept in before.items()
        if name not in MOVED
        for key, row in kept.items()
        if row.get("name") != NAMELESS
        for column, value in row.items()
        if after[name].get(key, {}).get(column) != value
    ]
    assert changed == []


def test_what_is_new_is_made_of_what_was_there(upgraded):
    before, after, _url = upgraded
    names = {row["id"]: row["username"] for row in after["auth_user"].values()}
    slugs = {row["id"]: row["slug"] for row in after["runs_project"].values()}
    roles = {
        (names[row["user_id"]], slugs[row["project_id"]]): row["role"]
        for row in after["runs_membership"].values()
    }
    assert roles == {("ichiro", "secret"): "operator"}
    own = [row for row in before["runs_run"].values() if row["state"] == "finished"]
    assert {row["run"] for row in after["runs_sealrequest"].values()} == {row["id"] for row in own}
    # And what 0.1 stored meanwhile, later.
    assert [bool(row["unsealed_since"]) for row in after["runs_instance"].values()] == [True]
    cells = after["runs_cell"]
    runs = after["runs_run"].values()
    assert [row for row in runs if row["cell_version"] != cells[row["cell_id"]]["version"]] == []
    assert NAMELESS not in {row["name"] for row in after["runs_artifact"].values()}


def test_queued_runs_have_plans_that_this_version_follows(upgraded):
    _before, after, _url = upgraded
    queued = [row for row in after["runs_run"].values() if row["plan"]]
    assert len(queued) == 2
    for row in queued:
        assert row["state"] == "queued"
        plan = RunPlan.from_json(row["plan"])
        stored = json.loads(json.dumps(plan.as_json()))
        treatment = row["plan"].pop("treatment")
        assert {name: stored[name] for name in row["plan"]} == row["plan"]
        assert treatment.items() <= stored["treatment"].items()


def test_what_was_judged_by_older_rules_is_judged_again(upgraded):
    """As the workers do by themselves, 100 at a time."""
    before, after, url = upgraded
    executed = {
        key
        for key, row in after["runs_run"].items()
        if (row["origin"], row["state"]) == ("executed", "finished")
    }
    assert executed
    assert [row["rules"] for row in after["runs_change"].values()] == [1]
    assert {after["runs_run"][key]["certificate"].get("rules") for key in executed} == {None}

    manage(url, "judge_runs")

    judged = rows(url)
    (change,) = judged["runs_change"].values()
    assert (change["rules"], change["decision"]) == (monitoring.RULES, "refuted")
    certified = {judged["runs_run"][key]["certificate"]["rules"] for key in executed}
    assert certified == {certificate.RULES_VERSION}
    assert before["runs_measurement"].keys() == judged["runs_measurement"].keys()


# What decides whether two databases have the same tables.
SCHEMA = """
SELECT 'column', attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid),
       convalidated
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'index', indrelid::regclass::text, indexrelid::regclass::text,
       pg_get_indexdef(indexrelid), indisvalid
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'default', adrelid::regclass::text, attname, pg_get_expr(adbin, adrelid), true
FROM pg_attrdef d JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.adrelid, d.adnum)"""
WITHOUT_STEPS = """
import django; django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
executor = MigrationExecutor(connection)
executor.loader.replace_migrations = False
executor.loader.build_graph()
executor.migrate([("runs", "0014_seals")])
"""


def schema(url):
    with psycopg.connect(url) as database:
        return set(database.execute(SCHEMA).fetchall())


def drop(name):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as cluster:
        cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


# A release that does not know these columns leaves them out.
KEPT_DEFAULTS = {("runs_campaign", "looks"), ("runs_campaign", "reproduces")}


def test_migrations_in_steps_make_the_tables_of_those_that_they_replace(upgraded):
    """A database that stopped between goes on, and has the same tables then."""
    _before, _after, url = upgraded
    name = f"without_steps_{os.getpid()}"
    other = create_database(os.environ["DATABASE_URL"], name)
    try:
        environment = os.environ | {"DATABASE_URL": other}
        subprocess.run([sys.executable, "-c", WITHOUT_STEPS], cwd=ROOT, env=environment, check=True)
        manage(other, "migrate", "--verbosity=0")
        steps, plain = schema(url), schema(other)
        assert plain - steps == set()
        assert {row[1:3] for row in steps - plain} == KEPT_DEFAULTS
    finally:
        drop(name)


def test_an_update_that_is_killed_again_and_again_goes_on(upgraded):
    """Wherever it is: nothing is done twice, and nothing is left out."""
    _before, _after, url = upgraded
    name = f"killed_{os.getpid()}"
    other = create_database(os.environ["DATABASE_URL"], name)
    kills = 0
    try:
        manage(other, "migrate", "--verbosity=0", "auth")
        manage(other, "migrate", "--verbosity=0", "runs", LAST_OF_0_1)
        command = [sys.executable, "manage.py", "migrate", "--noinput"]
        environment = os.environ | {"DATABASE_URL": other, "PYTHONUNBUFFERED": "1"}
        while not _has_ended(command, environment, kills):
            kills += 1
        assert kills > 15
        assert schema(other) == schema(url)
    finally:
        drop(name)


def _has_ended(command, environment, kills):
    """Whether it ended by itself; it is killed after two migrations, in the third or next to it."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        started = (line for line in process.stdout if "Applying" in line)
        if len(list(itertools.islice(started, 2))) == 2:
            time.sleep(0.02 * (kills % 5))
            process.kill()
        process.stdout.read()
    return process.returncode == 0
