"""Runs: whole ones, and lists of them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run
from runs.selectors.runs import runs
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_run_comes_with_everything_that_its_page_shows(django_assert_num_queries):
    run = factories.finish(factories.story(factories.run(server=factories.server())), tps=5)

    with django_assert_num_queries(6):
        found = runs.detail(run.pk)
        assert found.campaign.scenario.slug
        assert found.cell.levels["clients"] == 1
        assert found.server.name
        assert found.settings.settings["work_mem"]["setting"] == "4096"
        assert [event.code for event in found.events.all()] == ["claimed"]
        assert [command.step for command in found.commands.all()] == ["measure"]
        assert [(m.metric.name, m.value) for m in found.measurements.all()] == [("tps", 5)]
        assert [series.values for series in found.series.all()] == [[1.0, None]]
        assert list(found.artifacts.all()) == []


def test_findings_give_the_length_of_a_series_in_place_of_its_values():
    run = factories.story(factories.run())

    (series,) = runs.with_findings().get(pk=run.pk).series.all()

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

    assert list(runs.running_now()) == [long, short]


def test_the_latest_runs_are_those_that_ended_last_whatever_their_outcome():
    first, second, third, *_ = factories.campaign().runs.order_by("pk")
    factories.finish(third)
    factories.finish(first)
    now = timezone.now()
    Run.objects.filter(pk=second.pk).update(state=Run.State.FAILED, finished_at=now)

    assert list(runs.latest(2)) == [second, first]


@pytest.mark.parametrize("number", [1, 4])
def test_lists_take_one_query_however_long(number, django_assert_num_queries):
    for _ in range(number):
        run = factories.run(server=factories.server())
        Run.objects.filter(pk=run.pk).update(state=Run.State.MEASURING)
        factories.finish(factories.run())

    with django_assert_num_queries(1):
        assert [run.campaign.scenario.slug + run.server.name for run in runs.running_now()]
    with django_assert_num_queries(1):
        assert [run.campaign.scenario.slug for run in runs.latest(10)]
