"""Campaigns with the states of their runs, their lines and their progress."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run
from runs.selectors.campaigns import campaigns
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_newest_campaign_comes_first_with_its_runs_counted_by_state():
    factories.campaign("old", repeats=1)
    new = factories.campaign("new", repeats=1)
    first, second, *_ = new.runs.order_by("pk")
    factories.finish(first, tps=1)
    Run.objects.filter(pk=second.pk).update(state=Run.State.LOST)

    rows = campaigns.recent(limit=5)

    assert [row.campaign.slug for row in rows] == ["new", "old"]
    assert rows[0].run_counts == {"finished": 1, "lost": 1, "queued": 4}
    assert (rows[0].runs_total, rows[0].ended) == (6, 1)


def test_a_list_can_be_limited_and_of_one_origin():
    for number in range(3):
        factories.campaign(f"executed-{number}")
    factories.campaign("uploaded", origin="uploaded")

    assert len(campaigns.recent(limit=2)) == 2
    assert [row.campaign.slug for row in campaigns.recent(limit=9, origin="uploaded")] == [
        "uploaded"
    ]


@pytest.mark.parametrize("number", [1, 5])
def test_a_list_takes_two_queries_however_long(number, django_assert_num_queries):
    for _ in range(number):
        factories.campaign()

    with django_assert_num_queries(2):
        for row in campaigns.recent(limit=50):
            assert row.campaign.scenario.slug


def test_a_campaign_without_runs_has_no_counts():
    campaign = factories.campaign(repeats=0)

    assert campaigns.run_counts([campaign.pk]) == {campaign.pk: {}}


def test_each_version_is_a_line_of_its_cells_medians():
    campaign = factories.finish_all(factories.campaign(), gain={"18.4": 1.1})

    old, new = campaigns.lines(campaign, "tps")

    assert (old.label, old.major, old.version) == ("16.14", "16", "16.14")
    assert [point.x for point in old.points] == [1, 2, 4]
    assert [point.median for point in old.points] == pytest.approx([1000, 2000, 4000])
    assert [point.median for point in new.points] == pytest.approx([1100, 2200, 4400])
    assert (new.points[0].minimum, new.points[0].maximum) == pytest.approx((1097.8, 1102.2))
    assert new.points[0].n == 3


def test_a_version_without_results_yet_is_a_line_without_points():
    campaign = factories.campaign()
    factories.finish(campaign.runs.filter(cell__version="16.14").first(), tps=1000)

    assert [len(line.points) for line in campaigns.lines(campaign, "tps")] == [1, 0]


def test_another_factor_makes_lines_of_its_own():
    campaign = factories.campaign(
        factors={"version": ["16.14", "18.4"], "fillfactor": [80, 100], "clients": [1, 2, 4]}
    )

    assert [line.label for line in campaigns.lines(campaign, "tps")] == [
        "16.14 · fillfactor 80",
        "18.4 · fillfactor 80",
        "16.14 · fillfactor 100",
        "18.4 · fillfactor 100",
    ]


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_lines_take_three_queries_however_many_cells(clients, django_assert_num_queries):
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": clients})
    factories.finish_all(campaign)

    with django_assert_num_queries(3):
        campaigns.lines(campaign, "tps")


def test_the_time_left_is_unknown_before_a_run_has_finished():
    progress = campaigns.progress(factories.campaign())

    assert (progress.done, progress.total, progress.seconds_left) == (0, 18, None)


def test_the_time_left_is_the_mean_time_of_the_finished_runs_for_each_that_remains():
    campaign = factories.campaign()
    first, second, third, *_ = campaign.runs.order_by("pk")
    factories.finish(first, seconds=10)
    factories.finish(second, seconds=20)
    factories.finish(third, seconds=9000)
    Run.objects.filter(pk=third.pk).update(state=Run.State.FAILED)

    progress = campaigns.progress(campaign)

    assert (progress.done, progress.total) == (3, 18)
    assert progress.seconds_left == pytest.approx(15 * 15)


def test_what_the_run_in_progress_has_had_is_taken_off_but_no_more_than_one_runs_time():
    campaign = factories.campaign(factors={"version": ["16.14"], "clients": [1]}, repeats=3)
    first, second, _third = campaign.runs.order_by("pk")
    factories.finish(first, seconds=100)
    second.state, second.started_at = Run.State.MEASURING, timezone.now() - timedelta(seconds=40)
    second.server = factories.server()
    second.save()
    assert campaigns.progress(campaign).seconds_left == pytest.approx(160, abs=5)

    second.started_at = timezone.now() - timedelta(hours=5)
    second.save()
    assert campaigns.progress(campaign).seconds_left == pytest.approx(100, abs=5)


def test_nothing_is_left_of_a_campaign_whose_runs_have_all_ended():
    campaign = factories.finish_all(factories.campaign())

    assert campaigns.progress(campaign) == campaigns.Progress(18, 18, 0.0)


def test_cells_of_one_ordinal_are_in_the_order_of_their_keys():
    """Uploads at the same time give two cells one ordinal: a page must neither repeat nor skip."""
    of = factories.campaign(factors={"clients": [1, 2, 4]}, repeats=0)
    first, *others = of.cells.order_by("pk")
    of.cells.update(ordinal=1)
    # PostgreSQL now finds the first one last.
    of.cells.filter(pk=first.pk).update(version="18.4")
    assert list(of.cells.all()) == [first, *others]
