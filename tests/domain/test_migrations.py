"""Migrations: work goes on while they run, and an instance of 0.2 becomes one of today."""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from importlib import import_module

import psycopg
import pytest
from django.apps import apps
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.core.management.commands import migrate as djangos
from django.db import OperationalError, connection, models, transaction
from django.db.migrations import AddField, CreateModel, Migration, RunPython, RunSQL
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from psycopg import sql

from benchlab import gentle_migrations
from benchlab.gentle_migrations import AddCheck, InSteps, LockWaits, forget_steps
from runs.access.services import projects
from runs.analysis import certificate, monitoring
from runs.execution.plan import RunPlan
from runs.models import Metric
from runs.operations.services import backups
from runs.shared.database import is_wait
from tests import factories
from tests.migrated import ROOT, create_database

# Migrations wait in short tries, keep nobody waiting, and go on where they were cut off.


TABLE = "runs_gentle"
KEY = ("id", models.BigAutoField(primary_key=True))
NUMBER = models.IntegerField(db_default=0)
CHECK = models.CheckConstraint(condition=models.Q(number__gte=0), name="gentle_number")
INDEX = models.Index(fields=["number"], name="gentle_index")
ADD_COLUMN = AddField("gentle", "more", models.IntegerField(null=True))


@pytest.fixture
def table(monkeypatch):
    """A table with rows, and pauses that are short."""
    monkeypatch.setattr(gentle_migrations, "LONGEST_PAUSE_SECONDS", 0.1)
    statement(
        f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, number integer NOT NULL DEFAULT 0)"
    )
    statement(f"INSERT INTO {TABLE} SELECT n FROM generate_series(1, 100) n")
    yield
    statement(f"DROP TABLE {TABLE}")
    forget_steps(connection)


def statement(text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchone() if cursor.description else None


def state():
    """What Django knows of the table."""
    state = ProjectState()
    CreateModel("Gentle", [KEY, ("number", NUMBER)]).state_forwards("runs", state)
    return state


def migration(kind, *operations):
    made = kind("0001_gentle", "runs")
    made.operations = list(operations)
    return made


def apply(made):
    with connection.schema_editor(atomic=made.atomic) as editor:
        return made.apply(state(), editor)


@contextmanager
def other_session(**options):
    settings = connection.settings_dict
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST"}
    told = {name: settings[key] for name, key in names.items()}
    with psycopg.connect(port=settings["PORT"], **told, **options) as session:
        yield session


@contextmanager
def used_for(seconds):
    """Somebody has the table in a transaction that takes so long; how long others wait."""
    waits = []
    with (
        other_session(application_name="the export") as session,
        other_session() as reader,
    ):
        session.execute(f"INSERT INTO {TABLE} VALUES (-1)")
        reader.autocommit = True
        until = time.monotonic() + seconds

        def read():
            while time.monotonic() < until:
                began = time.monotonic()
                reader.execute(f"INSERT INTO {TABLE} SELECT max(id) + 1 FROM {TABLE}")
                waits.append(time.monotonic() - began)
                time.sleep(0.02)
            session.rollback()

        thread = threading.Thread(target=read)
        thread.start()
        yield waits
        thread.join()


def columns():
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, TABLE)
    return [each.name for each in described]


@pytest.mark.usefixtures("table")
@pytest.mark.django_db(transaction=True)
def test_a_change_of_a_table_waits_for_others_and_they_not_for_it(monkeypatch, capsys):
    """The command: its migration is rolled back, and done anew when the export has ended."""
    made = migration(Migration, ADD_COLUMN)

    def handle(self, *_args, **_options):
        self.verbosity = 1
        self.migration_progress_callback("apply_start", made)
        apply(made)

    monkeypatch.setattr(djangos.Command, "handle", handle)
    with used_for(1.5) as waits:
        call_command("migrate")
    assert "more" in columns()
    assert len(waits) > 10
    assert max(waits) < gentle_migrations.LOCK_SECONDS + 0.4
    said = capsys.readouterr().out
    assert "runs.0001_gentle waits for process" in said
    assert f"(the export), which has used {TABLE} for" in said


@pytest.mark.usefixtures("table")
@pytest.mark.django_db(transaction=True)
def test_it_gives_up_with_one_line_that_says_who_is_in_the_way(monkeypatch):
    monkeypatch.setattr(gentle_migrations, "GIVE_UP_SECONDS", 0.6)
    waits = LockWaits(connection, lambda _line: None)
    waits.begin(migration(Migration))
    with (
        used_for(3),
        connection.execute_wrapper(waits.execute),
        pytest.raises(CommandError) as gave_up,
    ):
        statement(f"ALTER TABLE {TABLE} ADD COLUMN more integer")
    text = str(gave_up.value)
    assert "\n" not in text
    assert "(the export)" in text
    assert "start it again" in text
    assert "SELECT pg_terminate_backend(" in text
    assert "more" not in columns()


@pytest.mark.usefixtures("table")
@pytest.mark.django_db(transaction=True)
def test_a_deadlock_ends_the_migration_and_not_the_upload():
    """Each has what the other wants."""
    statement("CREATE TABLE runs_gentle_other ()")
    waits, done = LockWaits(connection, lambda _line: None), []

    def upload(session):
        session.execute("LOCK TABLE runs_gentle_other IN ROW EXCLUSIVE MODE")
        is_in.set()
        time.sleep(0.2)
        session.execute(f"INSERT INTO {TABLE} VALUES (0)")
        session.commit()
        done.append(True)

    @transaction.atomic
    def lock_both():
        statement(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")
        statement("LOCK TABLE runs_gentle_other IN ACCESS EXCLUSIVE MODE")

    is_in = threading.Event()
    try:
        with other_session() as session, connection.execute_wrapper(waits.execute):
            thread = threading.Thread(target=upload, args=(session,))
            thread.start()
            is_in.wait()
            with pytest.raises(OperationalError) as ended:
                lock_both()
            assert is_wait(ended.value)
            thread.join()
    finally:
        statement("DROP TABLE runs_gentle_other")
    assert done == [True]


@pytest.mark.usefixtures("table")
@pytest.mark.django_db(transaction=True)
def test_an_index_is_built_while_rows_are_stored_and_an_invalid_one_goes_first():
    """What a cut leaves of an index is not used, and would be in the way of the next try."""
    waits = LockWaits(connection, lambda _line: None)
    made = migration(InSteps, AddIndexConcurrently("gentle", INDEX))
    with used_for(0.6) as delays, other_session(autocommit=True) as session:
        session.execute("SET lock_timeout = '0.2s'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            session.execute(
                f"CREATE INDEX CONCURRENTLY gentle_index ON {TABLE} (number)"
            )
        assert valid() == [False]
        with connection.execute_wrapper(waits.execute):
            apply(made)
    assert valid() == [True]
    assert max(delays) < 0.4
    forget_steps(connection)
    with connection.execute_wrapper(waits.execute):
        apply(made)  # cut off straight after it
    assert statement("SHOW lock_timeout") == ("0",)


def valid():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('gentle_index')"
        )
        return [each for (each,) in cursor.fetchall()]


@pytest.mark.usefixtures("table")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cut", range(4))
def test_a_migration_in_steps_goes_on_where_it_was_cut_off(cut):
    """Whatever was done is not done again."""
    calls = []

    def fill(number):
        def step(_apps, _editor):
            calls.append(number)
            if calls.count(number) == 1 and number == cut:
                raise KeyboardInterrupt

        return step

    made = migration(
        InSteps,
        RunPython(fill(0)),
        ADD_COLUMN,
        RunPython(fill(1)),
        AddCheck("gentle", CHECK),
        RunPython(fill(2), atomic=False),
        RunSQL(f"INSERT INTO {TABLE} VALUES (0)"),
        RunPython(fill(3)),
    )
    with pytest.raises(KeyboardInterrupt):
        apply(made)
    apply(made)
    assert calls == sorted([*range(4), cut])
    assert statement(f"SELECT count(*) FROM {TABLE}") == (101,)
    assert statement(
        f"SELECT convalidated FROM pg_constraint WHERE conrelid = '{TABLE}'::regclass"
        " AND conname = 'gentle_number'"
    ) == (True,)


@pytest.mark.usefixtures("table")
@pytest.mark.django_db(transaction=True)
def test_a_check_is_validated_without_keeping_anybody_waiting():
    """Added in a moment; the rows are read while others are stored."""
    statements = []

    def listen(proceed, sql, *rest):
        statements.append((str(sql), connection.in_atomic_block))
        return proceed(sql, *rest)

    with connection.execute_wrapper(listen):
        apply(migration(InSteps, AddCheck("gentle", CHECK)))
    changes = [
        each for each in statements if "ALTER TABLE" in each[0] and "ADD" in each[0]
    ]
    assert [text.endswith("NOT VALID") for text, _inside in changes] == [True]
    assert [inside for text, inside in statements if "VALIDATE CONSTRAINT" in text] == [
        False
    ]


# A new database gets its tables at once, and others go on with migrations.


def test_migrate_without_a_key_makes_nothing(settings):
    """It looks at what a database needs, and loads no pages for it."""
    settings.ENCRYPTION_KEY = "lost"
    with pytest.raises(SystemCheckError, match=r"runs\.E002"):
        call_command("migrate", "--check", skip_checks=False)


@pytest.mark.django_db
def test_a_database_of_an_older_release_is_updated_to_0_2_first():
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(app="runs").delete()
    recorder.record_applied("runs", "0003_treatments_and_indexes")
    with pytest.raises(CommandError, match=r"older than 0\.2.*Update to 0\.2 first"):
        call_command("migrate")


@contextmanager
def drafts(*rows):
    """The table as it was with these rows; then what removes it runs."""
    loader = MigrationLoader(connection)
    removal = loader.get_migration("runs", "0056_no_publication_drafts")
    before = loader.project_state(removal.dependencies)
    with connection.schema_editor() as editor:
        removal.unapply(before.clone(), editor)
    table = before.apps.get_model("runs", "PublicationDraft").objects
    for slug, text, accepted in rows:
        table.create(slug=slug, text=text, accepted=accepted)
    connection.check_constraints()
    yield
    with connection.schema_editor() as editor:
        removal.apply(before.clone(), editor)


def test_what_has_landed_since_the_last_squash_stays():
    """An instance may stand at each: it could not go on if one went into a squash."""
    names = sorted(path.stem for path in (ROOT / "runs" / "migrations").glob("0*.py"))
    assert names[0] == "0001_squashed_0054_reads_by_campaign"
    numbers = [int(name.partition("_")[0]) for name in names[1:]]
    assert numbers == list(range(55, 55 + len(numbers)))
    assert len(numbers) >= 26


@pytest.mark.django_db
def test_drafts_of_publications_become_files_before_their_table_goes(
    settings, tmp_path
):
    settings.VAR_DIR = tmp_path / "var"
    rows = [
        ("harbour-2020", "source: {slug: 港}\r\n", "source: {slug: 港}\r\n"),
        ("harbour-2021", "newer", "older"),
        ("../elsewhere", "[" * 10, ""),
    ]
    with drafts(*rows):
        pass
    folder = settings.VAR_DIR / "publication-drafts"
    found = {path.name: path.read_bytes().decode() for path in folder.iterdir()}
    assert found == {
        "harbour-2020.yaml": "source: {slug: 港}\r\n",
        "harbour-2021.yaml": "newer",
        "harbour-2021.accepted.yaml": "older",
        "..-elsewhere.yaml": "[" * 10,
    }
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert "runs_publicationdraft" not in connection.introspection.table_names()


@pytest.mark.django_db
def test_drafts_that_cannot_be_written_stay_in_their_table(settings, tmp_path):
    settings.VAR_DIR = tmp_path / "var"
    settings.VAR_DIR.write_text("no folder")
    with pytest.raises(NotADirectoryError), drafts(("harbour-2020", "source: {}", "")):
        pass
    assert statement("SELECT slug FROM runs_publicationdraft") == ("harbour-2020",)


@pytest.mark.django_db
def test_the_storage_scenarios_bandwidths_give_their_names_to_fio():
    renaming = import_module("runs.migrations.0064_storage_metrics").rename
    units = {"read_bandwidth": "MB/s", "write_bandwidth": "MB/s", "bandwidth": "MB/s"}
    shared = {name: factories.metric(name, unit=unit) for name, unit in units.items()}
    of_project = factories.own_metric(projects.default(), "read_bandwidth", unit="MB/s")
    run = factories.run()
    run.measurements.create(metric=shared["read_bandwidth"], value=512)

    renaming(apps, None)
    renaming(apps, None)  # after a migration that was cut off

    assert run.measurements.get().metric.name == "storage_read_bandwidth"
    assert run.measurements.get().value == 512
    assert set(Metric.objects.filter(project=None).values_list("name", flat=True)) >= {
        "storage_read_bandwidth",
        "storage_write_bandwidth",
        "bandwidth",
    }
    of_project.refresh_from_db()
    assert of_project.name == "read_bandwidth"


@pytest.mark.django_db
def test_a_bandwidth_of_fio_keeps_its_name():
    renaming = import_module("runs.migrations.0064_storage_metrics").rename
    of_fio = factories.metric("read_bandwidth", unit="MiB/s")

    renaming(apps, None)

    of_fio.refresh_from_db()
    assert of_fio.name == "read_bandwidth"


@pytest.mark.django_db
def test_without_drafts_no_folder_is_made(settings, tmp_path):
    settings.VAR_DIR = tmp_path
    with drafts():
        pass
    assert list(tmp_path.iterdir()) == []


# A database of 0.2 with data, migrated to this version: nothing of it is lost.
#
# `tests/samples/release-0.2.sql` was written by 0.2 itself, after an update from 0.1, and pg_dump.


LAST_OF_0_2 = "0055_partitions"
OTHERS = ("auth", "account", "mfa", "sessions", "socialaccount", "usersessions")
# Runs that 0.2 stored before it was replaced are sealed by today's rules.
SET_ANEW = frozenset({"unsealed_since"})


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
        tables = [
            name for name, _columns in database.execute(backups.TABLES).fetchall()
        ]
        query = sql.SQL("SELECT to_jsonb(t) FROM {} t")
        return {
            name: {
                row["id"]: row
                for (row,) in database.execute(query.format(sql.Identifier(name)))
                if "id" in row
            }
            for name in tables
            if name
            not in {"django_migrations", "django_content_type", "auth_permission"}
        }


@pytest.fixture(scope="module")
def upgraded(django_db_setup):
    """What was there before, what is there afterwards, and where."""
    name = f"upgraded_{os.getpid()}"
    url = create_database(os.environ["DATABASE_URL"], name)
    try:
        for application in OTHERS:
            manage(url, "migrate", "--verbosity=0", application)
        manage(url, "migrate", "--verbosity=0", "runs", LAST_OF_0_2)
        with psycopg.connect(url) as database:
            database.execute("TRUNCATE django_migrations")
            # The rows are those that triggers have made.
            database.execute("SET session_replication_role = replica")
            database.execute((ROOT / "tests/samples/release-0.2.sql").read_text())
        before = rows(url)
        manage(url, "migrate", "--verbosity=0")
        manage(url, "migrate", "--check")
        yield before, rows(url), url
    finally:
        drop(name)


@pytest.mark.slow
def test_every_row_is_there_with_its_values(upgraded):
    before, after, _url = upgraded
    assert sum(map(len, before.values())) > 100
    changed = [
        f"{name} {key}: {column} {value} {after[name].get(key, {}).get(column)}"
        for name, kept in before.items()
        for key, row in kept.items()
        for column, value in row.items()
        if column not in SET_ANEW and after[name].get(key, {}).get(column) != value
    ]
    assert changed == []


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert {after["runs_run"][key]["certificate"].get("rules") for key in executed} == {
        None
    }

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


def schema(url):
    with psycopg.connect(url) as database:
        return set(database.execute(SCHEMA).fetchall())


def drop(name):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as cluster:
        cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow
def test_an_update_that_is_killed_again_and_again_goes_on(upgraded):
    """Wherever it is: nothing is done twice, and nothing is left out."""
    _before, _after, url = upgraded
    name = f"killed_{os.getpid()}"
    other = create_database(os.environ["DATABASE_URL"], name)
    kills = 0
    try:
        command = [sys.executable, "manage.py", "migrate", "--noinput"]
        environment = os.environ | {"DATABASE_URL": other, "PYTHONUNBUFFERED": "1"}
        while not _has_ended(command, environment, kills):
            kills += 1
        assert kills > 5
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
