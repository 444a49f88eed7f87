"""The database refuses states that no model knows, even from raw SQL."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Count

from runs.management.commands.setup_instance import Command
from runs.models import Campaign, Change, Run, Server
from runs.operations.services import static_files
from runs.servers.services import servers, ssh_keys
from runs.shared import slugs
from runs.workloads.services import scenarios
from tests import factories
from tests.each import check_each

pytestmark = pytest.mark.django_db

FIELDS = [
    (model, field)
    for model in apps.get_app_config("runs").get_models()
    for field in model._meta.fields
]
CHOICES = [(model, field) for model, field in FIELDS if field.choices]
# Columns of states that no form shows: their words are those of runs and campaigns.
STATES = [
    (model, field)
    for model, field in FIELDS
    if not field.choices
    and isinstance(field, models.CharField)
    and (field.name in {"state", "decision", "origin"} or field.name.endswith("_state"))
]


def allowed(model: type[models.Model], field: models.Field) -> list[set]:
    """The values that each check of a column allows."""
    checks = [
        each
        for each in model._meta.constraints
        if isinstance(each, models.CheckConstraint)
    ]
    parts = [
        part for each in checks for part in getattr(each.condition, "children", ())
    ]
    named = [part for part in parts if isinstance(part, tuple)]
    return [set(values) for name, values in named if name == f"{field.name}__in"]


def test_every_column_with_choices_is_constrained_to_them():
    def check(column: tuple[type[models.Model], models.Field]) -> None:
        model, field = column
        known = {value for value, _label in field.flatchoices} | (
            {""} if field.blank else set()
        )
        assert known in allowed(model, field)

    assert len(CHOICES) == 31
    check_each(CHOICES, check)


def test_every_column_of_states_is_constrained():
    def check(column: tuple[type[models.Model], models.Field]) -> None:
        assert allowed(*column)

    assert len(STATES) == 4
    check_each(STATES, check)


def test_raw_sql_cannot_write_an_unknown_state():
    run = factories.campaign("one").runs.first()

    with (
        pytest.raises(IntegrityError, match="run_state_is_known"),
        transaction.atomic(),
    ):
        connection.cursor().execute(
            "UPDATE runs_run SET state = 'done' WHERE id = %s", [run.pk]
        )

    assert Run.objects.get(pk=run.pk).state == Run.State.QUEUED


def test_copy_cannot_write_an_unknown_statistic():
    run, tps = factories.campaign("one").runs.first(), factories.metric("tps")
    into = "COPY runs_measurement (run_id, metric_id, value, n, statistic) FROM STDIN"

    def store() -> None:
        with connection.wrap_database_errors, connection.cursor().copy(into) as copied:
            copied.write_row([run.pk, tps.pk, 1.0, 1, "best"])

    with (
        pytest.raises(IntegrityError, match="statistic_is_known"),
        transaction.atomic(),
    ):
        store()
    assert not run.measurements.exists()


@pytest.mark.django_db
def test_the_database_has_every_constraint_and_index_that_the_models_name():
    """A migration can drop one that Django takes for another: models and migrations then agree."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint UNION SELECT indexname FROM pg_indexes"
            " WHERE schemaname = current_schema()"
        )
        there = {name for (name,) in cursor.fetchall()}
    named = {
        each.name
        for model in apps.get_app_config("runs").get_models()
        for each in (*model._meta.constraints, *model._meta.indexes)
    }

    assert len(named) > 30
    assert sorted(named - there) == []


# Several statements in one message, and how their values are sent.


def named(title: str, scenario) -> str:
    row = Campaign(title=title, scenario=scenario)
    return slugs.store(row, called=title, otherwise="campaign", taken=("new",)).slug


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Nightly run", ["nightly-run", "nightly-run-2", "nightly-run-3"]),
        ("測定", ["campaign", "campaign-2", "campaign-3"]),
        ("New", ["new-2", "new-3", "new-4"]),
        ("x" * 200, ["x" * 120, "x" * 118 + "-2", "x" * 118 + "-3"]),
        (
            "x" * 117 + " " + "y" * 80,
            ["x" * 117 + "-yy", "x" * 117 + "-2", "x" * 117 + "-3"],
        ),
    ],
)
def test_the_same_name_gets_numbers_and_a_long_one_is_cut(title, expected):
    scenario = factories.scenario()
    assert [named(title, scenario) for _time in expected] == expected


@pytest.mark.django_db
def test_what_else_is_wrong_with_a_row_is_not_taken_for_its_slug():
    with pytest.raises(IntegrityError):
        slugs.store(Campaign(title="x"), called="x", otherwise="campaign")


@pytest.mark.django_db(transaction=True)
def test_of_two_that_take_one_slug_at_once_the_later_takes_the_next():
    scenario = factories.scenario()

    def other() -> str:
        try:
            with transaction.atomic():
                return named("same", scenario)
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        with transaction.atomic():
            first = named("same", scenario)
            second = threads.submit(other)
            _until_somebody_waits()
        assert (first, second.result(timeout=10)) == ("same", "same-2")


def _until_somebody_waits() -> None:
    until = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            if cursor.fetchone():
                return
            time.sleep(0.01)
    raise AssertionError("the other one does not wait")


# What `script/server` prepares at each start, without losing a user's changes.


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts an instance whose SSH target nobody answers for; gives its server and what it said."""
    target = {
        "ADDRESS": "127.0.0.1",
        "PORT": "1",
        "USER": "nobody",
        "BASE_DIR": str(tmp_path / "target"),
        "BINDIRS": "/embedded/pg16:/embedded/pg18",
        "AUTHORIZED_KEYS": str(tmp_path / "authorized_keys"),
        "HOST_KEY": factories.HOST_KEY,
    }
    for name, value in target.items():
        monkeypatch.setenv(f"BENCHLAB_TARGET_{name}", value)

    def started():
        said = StringIO()
        return Command(stderr=said)._register_this_machine(), said.getvalue()

    return started


@pytest.fixture
def server(tmp_path):
    """This machine, with a folder and a key that a user has chosen."""
    own = tmp_path / "own"
    own.mkdir()
    return factories.server(
        "this-machine",
        port=2222,
        base_dir=str(own),
        bindirs=["/opt/mine/bin", "/embedded/pg18"],
        ssh_key=ssh_keys.generate(name="mine"),
    )


def test_folders_that_a_user_added_stay(start, server):
    found, _said = start()

    assert found.bindirs == ["/opt/mine/bin", "/embedded/pg18", "/embedded/pg16"]
    assert found.base_dir == server.base_dir
    assert (found.address, found.port, found.username) == ("127.0.0.1", 1, "nobody")


def test_a_base_directory_that_is_gone_is_replaced(start, server, tmp_path):
    Server.objects.update(base_dir="/no/such/folder")

    assert start()[0].base_dir == str(tmp_path / "target")


def test_a_key_that_a_user_chose_is_let_in(start, server, tmp_path):
    start()

    let_in = (tmp_path / "authorized_keys").read_text().splitlines()
    assert let_in == [servers.public_key(), server.ssh_key.public_key]


def test_a_machine_that_is_not_ready_does_not_stop_the_site(start, server):
    found, said = start()

    assert found.state == Server.State.UNREACHABLE
    assert "cannot be reached over SSH" in said
    assert "/servers/this-machine/" in said


def test_a_key_that_cannot_be_read_does_not_stop_the_site(start, server, settings):
    settings.ENCRYPTION_KEY = "tsTTZWOiUq2kJCvIJUQhhe2JLkIIKJZbZ5l2yrFwqHo="

    assert "BENCHLAB_ENCRYPTION_KEY" in start()[1]


def test_the_first_campaign_takes_two_minutes_or_as_long_as_is_asked(monkeypatch):
    scenarios.sync()
    server = factories.server()
    for version in ("16.14", "18.4"):
        factories.installation(
            server, version, has_psql=True, pgbench_version_num=180004
        )
    for asked, seconds in (("", 6), ("1", 1), ("0", None)):
        monkeypatch.setenv("BENCHLAB_FIRST_RUN_SECONDS", asked)
        Campaign.objects.all().delete()
        Command(stdout=StringIO())._queue_first_campaign(server)
        queued = Campaign.objects.values_list("parameters__duration", Count("runs"))
        assert list(queued) == ([] if seconds is None else [(seconds, 12)])

    monkeypatch.delenv("BENCHLAB_FIRST_RUN_SECONDS")
    monkeypatch.setenv("BENCHLAB_FIRST_REPEATS", "1")
    Command(stdout=StringIO())._queue_first_campaign(server)
    assert Campaign.objects.get().runs.count() == 4


def test_static_files_are_collected_when_they_have_changed_or_are_gone(
    settings, tmp_path
):
    source = tmp_path / "source"
    source.mkdir()
    (source / "bench.css").write_text("a {}")
    settings.STATICFILES_DIRS, settings.STATIC_ROOT = [source], tmp_path / "static"
    storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
    settings.INSTALLED_APPS = ["benchlab.static_files.StaticFiles"]

    assert static_files.collect()
    assert not static_files.collect()
    (source / "bench.css").write_text("a { color: red }")
    os.utime(
        source / "bench.css", (2_000_000_000,) * 2
    )  # Django looks at whole seconds
    assert static_files.collect()
    assert "red" in (tmp_path / "static" / "bench.css").read_text()
    (tmp_path / "static" / "staticfiles.json").unlink()
    assert static_files.collect()


def test_a_change_has_the_campaign_of_its_cell_whatever_is_written():
    one, other = (factories.campaign(slug) for slug in ("one", "other"))
    cells = [each.cells.first() for each in (one, other)]
    change = Change.objects.create(
        cell=cells[0],
        run=cells[0].runs.first(),
        metric=factories.metric(),
        kind="step",
        ratio=1,
        before=1,
        after=1,
    )

    def campaigns() -> list[str]:
        return list(Change.objects.values_list("campaign__slug", flat=True))

    assert campaigns() == ["one"]
    Change.objects.filter(pk=change.pk).update(cell=cells[1])
    assert campaigns() == ["other"]
    Change.objects.filter(pk=change.pk).update(campaign=one)
    assert campaigns() == ["other"]
    other.delete()
    assert campaigns() == []
