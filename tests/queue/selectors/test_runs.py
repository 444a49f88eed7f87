"""Runs: whole ones, and lists of them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.campaigns.selectors.report_parts import recorded_commands as recorded
from runs.models import Command, Run
from runs.queue.selectors import runs
from runs.reports.load_machines import RecordedGenerator
from runs.reports.shell_script import shell_script
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_run_comes_with_everything_that_its_page_shows(django_assert_num_queries):
    run = factories.finish(
        factories.story(factories.run(server=factories.server())), tps=5
    )

    with django_assert_num_queries(6):
        found = runs.detail(run.pk)
        assert found.campaign.scenario.slug
        assert found.cell.levels["clients"] == 1
        assert found.server.name
        assert found.settings.settings["work_mem"]["setting"] == "4096"
        assert [event.code for event in found.events.all()] == ["claimed"]
        assert [command.step for command in found.commands.all()] == ["measure"]
        assert [(m.metric.name, m.value) for m in found.measurements.all()] == [
            ("tps", 5)
        ]
        assert [series.values for series in found.series.all()] == [[1.0, None]]
        assert list(found.artifacts.all()) == []


def test_findings_give_the_length_of_a_series_in_place_of_its_values():
    run = factories.story(factories.run())

    (series,) = runs.select_findings().get(pk=run.pk).series.all()

    assert series.length == 2
    assert "values" in series.get_deferred_fields()


def test_a_run_that_is_not_there_is_said_so():
    with pytest.raises(Run.DoesNotExist):
        runs.detail(1)


def test_runs_in_progress_are_those_that_a_worker_has_the_longest_first():
    campaign = factories.campaign()
    short, long, *_ = campaign.runs.all()
    now = timezone.now()
    for run, minutes in ((short, 1), (long, 9)):
        run.state, run.server = Run.State.MEASURING, factories.server()
        run.started_at = now - timedelta(minutes=minutes)
        run.save()

    assert runs.now_and_latest(2)[0] == [long, short]


def test_the_latest_runs_are_those_that_ended_last_whatever_their_outcome():
    first, second, third, *_ = factories.campaign().runs.order_by("pk")
    factories.finish(third)
    factories.finish(first)
    now = timezone.now()
    Run.objects.filter(pk=second.pk).update(state=Run.State.FAILED, finished_at=now)

    assert list(runs.latest(2)) == [second, first]


def test_the_first_page_has_the_runs_in_progress_and_the_latest_by_two_queries(
    django_assert_num_queries,
):
    campaign = factories.campaign(on=factories.server(name="Lab 1"))
    first, second, third, short, long, waiting, *_ = campaign.runs.order_by("pk")
    now = timezone.now()
    for run, minutes in ((first, 3), (second, 1), (third, 2)):
        factories.finish(run)
        Run.objects.filter(pk=run.pk).update(
            finished_at=now - timedelta(minutes=minutes)
        )
    for run, began in (
        (short, now),
        (long, now - timedelta(minutes=9)),
        (waiting, None),
    ):
        server = factories.server()
        Run.objects.filter(pk=run.pk).update(
            state="measuring", started_at=began, server=server
        )
    Run.objects.filter(pk=second.pk).update(validity="doubtful")

    with django_assert_num_queries(2):
        running, latest = runs.now_and_latest(2)

    assert [run.pk for run in running] == [long.pk, short.pk, waiting.pk]
    words = [(run.pk, run.judgement) for run in latest]
    assert words == [(second.pk, "doubtful"), (third.pk, "unknown")]
    run = latest[0]
    assert (run.cell.levels, run.repeat) == (second.cell.levels, second.repeat)
    assert (run.campaign, run.server.name, run.cell.revision) == (
        campaign,
        "Lab 1",
        None,
    )


GENERATOR = {
    "name": "load1",
    "server_id": 2,
    "host": "192.0.2.2",
    "port": 2222,
    "username": "bench",
    "base_dir": "/srv/load",
    "client_bindir": "/usr/lib/pg18",
    "client_version_num": 180004,
    "address_of_database": "10.0.0.1",
}


def test_the_machines_of_the_load_come_from_the_plan():
    plan = {
        "base_dir": "/srv/bl",
        "version_num": 160014,
        "bindir": "/usr/lib/pg16",
        "generators": [GENERATOR],
    }
    run = factories.run(plan=plan, state=Run.State.FINISHED)
    argv = [
        "env",
        "PGPASSFILE=/srv/load/runs/7-1/pgpass",
        "/usr/lib/pg18/pgbench",
        "-h",
        "10.0.0.1",
    ]
    Command.objects.create(
        run=run,
        attempt=1,
        ordinal=1,
        step="pgbench-load1",
        host="load server",
        argv=argv,
    )
    [found] = recorded.read_run(Run.objects.select_related("cell", "cluster").get())

    assert found.generators == (
        RecordedGenerator("load1", "/srv/load", "/usr/lib/pg18", "10.0.0.1"),
    )
    script = shell_script("run", "A run", [found])
    assert "LOAD1=${LOAD1:?set it to user@host of load1}" in script
    assert "bench@" not in script
    assert "2222" not in script
    assert 'PGPASSFILE="$BASE"/runs/7-1/pgpass "$PG"/pgbench -h "$DB_HOST"' in script
    assert "BENCHLAB_ONE_MACHINE" not in script
