"""Partitions of measurements and series: made, used, dropped, and put back by a restore."""

from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from runs.archive import services
from runs.models import AuditEntry, Measurement, PrintedFigure, Run, Series
from runs.operations.services import backups, partitions
from runs.published import reading
from runs.seals.services import seals
from runs.shared.errors import ServiceError
from tests import factories

NOVEMBER = datetime(2026, 11, 3, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)
NEW = ("runs_measurement_2026_11", "runs_series_2026_11")
FIRST = ("runs_measurement_first", "runs_series_first")


def sql(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def measured(**values):
    run = factories.finish(factories.run(), **(values or {"tps": 1.0}))
    Series.objects.create(run=run, name="tps", interval=1, values=[1.0, 2.0])
    return run


def places(run):
    """The partitions that have the rows of a run."""
    return tuple(
        name
        for table in partitions.TABLES
        for (name,) in sql(
            f"SELECT DISTINCT tableoid::regclass::text FROM {table} WHERE run_id = %s",
            run.pk,
        )
    )


def names():
    return [
        each.name for table in partitions.TABLES for each in partitions.listed(table)
    ]


@pytest.mark.django_db
def test_runs_from_now_on_go_into_a_new_partition(client):
    before = measured()
    waiting = factories.run()

    made = partitions.make(at_least=0, now=NOVEMBER)
    after = measured()
    late = factories.finish(waiting, tps=3.0)

    assert [each.name for each in made] == list(NEW)
    assert all(each.first == waiting.pk + 1 for each in made)
    assert (places(before), places(after)) == (FIRST, NEW)
    assert places(late) == FIRST[:1], "a run stays where its number belongs"
    runs = [
        each["run"] for each in client.get("/api/v1/measurements/").json()["results"]
    ]
    assert runs == sorted((before.pk, waiting.pk, after.pk), reverse=True)
    of_one = Measurement.objects.get(run=after)
    assert client.get(f"/api/v1/measurements/{of_one.pk}/").json()["run"] == after.pk


@pytest.mark.django_db
def test_in_each_partition_a_figure_is_stored_once_of_a_run_that_is_there():
    before = measured()
    partitions.make(at_least=0, now=NOVEMBER)
    for run in (before, measured()):
        [figure] = Measurement.objects.filter(run=run)
        again = Measurement(run=run, metric=figure.metric, value=2.0)
        with pytest.raises(IntegrityError, match=r"_once|_key"), transaction.atomic():
            again.save()
    with pytest.raises(IntegrityError, match="foreign key"), transaction.atomic():
        sql(
            "SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO runs_measurement"
            " (run_id, metric_id, value, n, statistic)"
            f" VALUES (1000000, {figure.metric_id}, 1, 1, 'single')"
        )
    before.delete()
    assert places(before) == ()


@pytest.mark.django_db
def test_a_partition_is_begun_once_a_month_and_only_after_a_full_one():
    measured()
    sql("ANALYZE runs_measurement, runs_series")
    assert partitions.make(at_least=2, now=NOVEMBER) == []
    assert len(partitions.make(at_least=1, now=NOVEMBER)) == 2
    assert partitions.make(at_least=0, now=NOVEMBER) == []
    measured()
    assert len(partitions.make(at_least=0, now=DECEMBER)) == 2
    assert len(names()) == 6


@pytest.mark.django_db
def test_printed_figures_keep_their_measurements():
    services.load(files=reading.files()[:1])
    partitions.make(at_least=0, now=NOVEMBER)
    figure = PrintedFigure.objects.exclude(measured_run=None).first()
    assert figure.measurement.printed == figure
    with (
        pytest.raises(IntegrityError, match="figure_has_measurement"),
        transaction.atomic(),
    ):
        sql(
            "SET CONSTRAINTS ALL IMMEDIATE;"
            f" DELETE FROM runs_measurement WHERE id = {figure.measurement.pk}"
        )


@pytest.mark.django_db
def test_an_empty_partition_is_dropped_and_the_next_takes_its_runs(capsys):
    before, other = measured(), measured()
    partitions.make(at_least=0, now=NOVEMBER)
    measured()
    partitions.make(at_least=0, now=DECEMBER)
    Series.objects.filter(run__in=(before, other)).delete()

    call_command("partitions")
    assert "runs_series_first is empty: --drop drops it" in capsys.readouterr().out
    assert len(names()) == 6
    call_command("partitions", "--drop")
    told = capsys.readouterr().out
    assert "runs_series_first dropped" in told
    assert AuditEntry.objects.filter(action="partition_dropped").count() == 1
    assert f"runs_series_2026_11: runs 1 to {other.pk + 1}, some" in told
    assert names() == [
        FIRST[0],
        NEW[0],
        "runs_measurement_2026_12",
        NEW[1],
        "runs_series_2026_12",
    ]
    Series.objects.create(run=before, name="late", interval=1, values=[1.0])
    assert places(before) == (FIRST[0], NEW[1])
    assert partitions.drop(is_rehearsal=False) == []


@pytest.mark.django_db
def test_neighbours_that_are_empty_go_together():
    measured()
    assert len(partitions.make(at_least=0, now=NOVEMBER)) == 2
    assert partitions.make(at_least=0, now=DECEMBER) == [], "there was no run since"
    measured()
    assert len(partitions.make(at_least=0, now=DECEMBER)) == 2
    Measurement.objects.all().delete()
    Series.objects.all().delete()
    assert len(partitions.drop()) == 4
    assert len(partitions.drop(is_rehearsal=False)) == 4
    [left] = partitions.listed("runs_series")
    assert (left.name, left.first, left.end) == ("runs_series_2026_12", None, None)


@contextmanager
def locked(mode):
    """Somebody else uses the measurements."""
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password) as other:
        other.execute(f"LOCK TABLE runs_measurement IN {mode} MODE")
        yield


@pytest.mark.django_db
def test_a_table_in_use_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(partitions, "LOCK_SECONDS", 0.05)
    measured()
    with (
        locked("ACCESS SHARE"),
        pytest.raises(CommandError, match="in use: no lock of it in 6"),
    ):
        call_command("partitions", "--make", "--rows", "0")
    assert names() == list(FIRST)


@pytest.mark.django_db
def test_an_account_that_does_not_own_a_table_is_told():
    with pytest.raises(ServiceError, match="does not own pg_class") as refused:
        partitions._rearrange("pg_class", lambda _cursor: None)
    assert (refused.value.code, names()) == ("not_owner", list(FIRST))


@pytest.mark.django_db
def test_what_control_looks_after_gives_way_to_a_vacuum(monkeypatch):
    monkeypatch.setattr(partitions, "LOCK_SECONDS", 0.05)
    with locked("SHARE UPDATE EXCLUSIVE"):
        partitions.look_after()
    with locked("ROW EXCLUSIVE"):
        partitions.look_after()


@pytest.mark.django_db
def test_what_joins_are_planned_by_is_renewed_when_a_table_has_grown():
    assert partitions.analyse_grown() == []
    many = [factories.metric(f"m{number}") for number in range(200)]
    for _time in range(6):
        run = factories.run()
        Measurement.objects.bulk_create(
            Measurement(run=run, metric=each, value=1.0) for each in many
        )
    sql("ANALYZE runs_measurement_first")

    assert partitions.analyse_grown() == ["runs_measurement"]
    [(known,)] = sql(
        "SELECT reltuples FROM pg_class WHERE relname = 'runs_measurement'"
    )
    assert known == 1200
    assert partitions.analyse_grown() == []


@pytest.fixture
def _as_migrated():
    """One partition a table again, as other tests of this process have it."""
    yield
    Measurement.objects.all().delete()
    Series.objects.all().delete()
    partitions.drop(is_rehearsal=False)
    for table in partitions.TABLES:
        [left] = partitions.listed(table)
        sql(f"ALTER TABLE {left.name} RENAME TO {table}_first")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_as_migrated")
def test_a_backup_of_two_partitions_is_restored_into_any_number(settings, tmp_path):
    settings.BACKUP_PASSPHRASE = "correct horse"
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    before = measured(tps=1.0)
    partitions.make(at_least=0, now=NOVEMBER)
    after = measured(tps=2.0)
    for run in (before, after):
        seals.request(run=run.pk)
    assert seals.seal() == 2
    made = backups.make(folder=tmp_path / "kept", passphrase="correct horse")
    sql("TRUNCATE runs_run, runs_measurement, runs_series CASCADE")
    partitions.drop(is_rehearsal=False)
    assert names() == list(NEW)

    call_command("restore", made)

    values = Measurement.objects.order_by("run").values_list("run", "value")
    assert list(values) == [(before.pk, 1.0), (after.pk, 2.0)]
    assert [each.values for each in Series.objects.all()] == [[1.0, 2.0]] * 2
    assert places(before) == places(after) == NEW
    newest = Measurement.objects.create(
        run=after, metric=factories.metric("mips"), value=1.0
    )
    assert newest.pk == Measurement.objects.order_by("-pk").first().pk
    assert Run.objects.count() == 2
