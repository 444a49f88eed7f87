"""Migrations wait in short tries, keep nobody waiting, and go on where they were cut off."""

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import CommandError, call_command
from django.core.management.commands import migrate as djangos
from django.db import OperationalError, connection, models, transaction
from django.db.migrations import AddField, CreateModel, Migration, RunPython, RunSQL
from django.db.migrations.state import ProjectState

from benchlab import gentle_migrations
from benchlab.gentle_migrations import AddCheck, InSteps, LockWaits, forget_steps, is_wait

pytestmark = pytest.mark.django_db(transaction=True)
TABLE = "runs_gentle"
KEY = ("id", models.BigAutoField(primary_key=True))
NUMBER = models.IntegerField(db_default=0)
CHECK = models.CheckConstraint(condition=models.Q(number__gte=0), name="gentle_number")
INDEX = models.Index(fields=["number"], name="gentle_index")
ADD_COLUMN = AddField("gentle", "more", models.IntegerField(null=True))


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """A table with rows, and pauses that are short."""
    monkeypatch.setattr(gentle_migrations, "LONGEST_PAUSE_SECONDS", 0.1)
    statement(f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, number integer NOT NULL DEFAULT 0)")
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
    with other_session(application_name="the export") as session, other_session() as reader:
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


def test_an_index_is_built_while_rows_are_stored_and_an_invalid_one_goes_first():
    """What a cut leaves of an index is not used, and would be in the way of the next try."""
    waits = LockWaits(connection, lambda _line: None)
    made = migration(InSteps, AddIndexConcurrently("gentle", INDEX))
    with used_for(0.6) as delays, other_session(autocommit=True) as session:
        session.execute("SET lock_timeout = '0.2s'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            session.execute(f"CREATE INDEX CONCURRENTLY gentle_index ON {TABLE} (number)")
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


def test_a_check_is_validated_without_keeping_anybody_waiting():
    """Added in a moment; the rows are read while others are stored."""
    statements = []

    def listen(proceed, sql, *rest):
        statements.append((str(sql), connection.in_atomic_block))
        return proceed(sql, *rest)

    with connection.execute_wrapper(listen):
        apply(migration(InSteps, AddCheck("gentle", CHECK)))
    changes = [each for each in statements if "ALTER TABLE" in each[0] and "ADD" in each[0]]
    assert [text.endswith("NOT VALID") for text, _inside in changes] == [True]
    assert [inside for text, inside in statements if "VALIDATE CONSTRAINT" in text] == [False]
