"""Campaigns with the states of their runs, their lines and their progress."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.access.selectors.projects import NOBODY
from runs.campaigns.selectors import campaigns, grids
from runs.cells.selectors import factor_names
from runs.compare.selectors.judge import ratios
from runs.models import Campaign, Metric, Run
from runs.uploads.services import GivenRevision
from tests import factories
from tests.history_points import START, commit, repeats, store

pytestmark = pytest.mark.django_db


def lines(campaign):
    """The lines of tps over the factor across."""
    among = grids.measured(campaign, Metric(name="tps"))
    rows = grids.rows(among.cells, factor_names.words(campaign))
    return campaigns.lines_of(rows, grids.across(among.cells), among.summaries, {})


def test_the_newest_campaign_comes_first_with_its_runs_counted_by_state():
    factories.campaign("old", repeats=1)
    new = factories.campaign("new", repeats=1)
    first, second, *_ = new.runs.order_by("pk")
    factories.finish(first, tps=1)
    Run.objects.filter(pk=second.pk).update(state=Run.State.LOST)

    rows = campaigns.rows(campaigns.unpublished())

    assert [row.campaign.slug for row in rows] == ["new", "old"]
    assert rows[0].run_counts == {"finished": 1, "lost": 1, "queued": 4}


def test_the_newest_campaigns_are_those_that_are_not_published():
    for number in range(3):
        factories.campaign(f"executed-{number}")
    factories.campaign("uploaded", origin="uploaded")
    factories.campaign("printed", origin="published")

    newest, _finished = campaigns.recent_and_finished(limit=2, to=NOBODY)
    assert [row.campaign.slug for row in newest] == ["uploaded", "executed-2"]


@pytest.mark.parametrize("number", [1, 5])
def test_a_list_takes_two_queries_however_long(number, django_assert_num_queries):
    for _ in range(number):
        factories.campaign()

    with django_assert_num_queries(2):
        newest, _finished = campaigns.recent_and_finished(limit=50, to=NOBODY)
        assert [row.campaign.scenario.title for row in newest] == [
            "fixed-point-read"
        ] * number
    with django_assert_num_queries(2):
        rows = campaigns.rows(campaigns.unpublished())
        assert [row.campaign.scenario.slug for row in rows] == [
            "fixed-point-read"
        ] * number


def test_a_campaign_without_runs_has_no_counts():
    campaign = factories.campaign(repeats=0)

    assert campaigns.run_counts([campaign.pk]) == {campaign.pk: {}}


def test_each_version_is_a_line_of_its_cells_medians():
    campaign = factories.finish_all(factories.campaign(), gain={"18.4": 1.1})

    old, new = lines(campaign)

    assert (old.label, old.major, old.version) == ("16.14", "16", "16.14")
    assert [point.x for point in old.points] == [1, 2, 4]
    assert [point.value for point in old.points] == pytest.approx([1000, 2000, 4000])
    assert [point.value for point in new.points] == pytest.approx([1100, 2200, 4400])
    assert (new.points[0].low, new.points[0].high) == pytest.approx((1097.8, 1102.2))
    assert new.points[0].n == 3


def test_a_version_without_results_yet_is_a_line_without_points():
    campaign = factories.campaign()
    factories.finish(campaign.runs.filter(cell__version="16.14").first(), tps=1000)

    assert [len(line.points) for line in lines(campaign)] == [1, 0]


def test_another_factor_makes_lines_of_its_own():
    campaign = factories.campaign(
        factors={
            "version": ["16.14", "18.4"],
            "fillfactor": [80, 100],
            "clients": [1, 2, 4],
        }
    )

    assert [line.label for line in lines(campaign)] == [
        "16.14 · Fill factor 80",
        "18.4 · Fill factor 80",
        "16.14 · Fill factor 100",
        "18.4 · Fill factor 100",
    ]


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_lines_take_three_queries_however_many_cells(
    clients, django_assert_num_queries
):
    campaign = factories.campaign(
        factors={"version": ["16.14", "18.4"], "clients": clients}
    )
    factories.finish_all(campaign)

    with django_assert_num_queries(3):
        lines(campaign)


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
    campaign = factories.campaign(
        factors={"version": ["16.14"], "clients": [1]}, repeats=3
    )
    first, second, _third = campaign.runs.order_by("pk")
    factories.finish(first, seconds=100)
    second.state, second.started_at = (
        Run.State.MEASURING,
        timezone.now() - timedelta(seconds=40),
    )
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


def test_versions_are_rows_and_clients_are_columns():
    factories.metric()
    campaign = factories.campaign(
        factors={"version": ["18.4", "9.6.24"], "clients": [4, 1, 16]}
    )

    grid = grids.grid(campaign)

    assert grid.factor == "clients"
    assert grid.columns == (1, 4, 16)
    assert [(row.label, row.major) for row in grid.rows] == [
        ("9.6.24", "9.6"),
        ("18.4", "18"),
    ]
    assert grid.rows[0].cells[2].cell.levels == {"version": "9.6.24", "clients": 16}
    assert grid.metric.name == "tps"


def test_a_cell_shows_its_runs_by_repeat_and_their_median():
    campaign = factories.campaign(factors={"version": ["16.14"], "clients": [1]})
    first, second, third = campaign.runs.order_by("repeat")
    factories.finish(first, tps=100)
    factories.finish(third, tps=300)

    (cell,) = grids.grid(campaign).rows[0].cells

    assert [(run.id, run.repeat, run.state) for run in cell.runs] == [
        (first.pk, 1, "finished"),
        (second.pk, 2, "queued"),
        (third.pk, 3, "finished"),
    ]
    assert (cell.summary.median, cell.summary.n) == (200, 2)


def test_a_repeat_far_from_the_others_is_an_outlier_and_counts():
    campaign = factories.campaign(factors={"version": ["16.14"], "clients": [1]})
    for run, tps in zip(campaign.runs.order_by("repeat"), (100, 60, 101), strict=True):
        factories.finish(run, tps=tps)

    (cell,) = grids.grid(campaign).rows[0].cells

    assert [run.outlier for run in cell.runs] == [None, pytest.approx(0.6), None]
    assert cell.runs[1].words == "finished, unknown, an outlier, -40.0 %"
    assert (cell.outliers, cell.summary.minimum, cell.summary.n) == (1, 60, 3)


def test_a_cell_without_finished_runs_has_no_summary():
    grid = grids.grid(factories.campaign())

    assert {cell.summary for row in grid.rows for cell in row.cells} == {None}
    assert grid.metric is None


def test_other_factors_make_rows_and_a_combination_that_was_not_asked_for_is_empty():
    campaign = factories.campaign(factors={"version": []})
    factories.cell(campaign, {"version": "16.14", "clients": 1, "fillfactor": 80})
    factories.cell(campaign, {"version": "16.14", "clients": 2, "fillfactor": 100})

    grid = grids.grid(campaign)

    assert [row.label for row in grid.rows] == [
        "16.14 · Fill factor 80",
        "16.14 · Fill factor 100",
    ]
    assert [[cell is None for cell in row.cells] for row in grid.rows] == [
        [False, True],
        [True, False],
    ]


def test_without_clients_the_most_varied_factor_goes_across():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "workers": [0, 1, 2, 4], "query": ["Q10", "Q11"]}
    )

    grid = grids.grid(campaign)

    assert grid.factor == "workers"
    assert [row.label for row in grid.rows] == [
        "16.14 · Query Q10",
        "16.14 · Query Q11",
    ]


def test_a_campaign_that_varies_the_version_only_has_one_column():
    grid = grids.grid(factories.campaign(factors={"version": ["16.14", "18.4"]}))

    assert (grid.factor, grid.columns) == (None, (None,))
    assert [row.cells[0].cell.version for row in grid.rows] == ["16.14", "18.4"]


def test_a_scenario_that_is_only_data_shows_tps_before_other_metrics():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "clients": [1]},
        scenario=factories.scenario("published"),
    )
    factories.metric("elapsed", "lower")
    factories.finish(campaign.runs.first(), elapsed=2, tps=5)

    assert grids.grid(campaign).metric.name == "tps"


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_a_grid_takes_five_queries_however_many_cells(
    clients, django_assert_num_queries
):
    campaign = factories.campaign(
        factors={"version": ["16.14", "18.4"], "clients": clients}
    )
    factories.finish_all(campaign)

    with django_assert_num_queries(5):
        grids.grid(campaign)


def test_of_uploads_the_newest_revision_is_shown_and_compared_with_no_other_revision():
    store(
        repeats(commit(2), tps=[900, 910], levels={"clients": 8, "version": "16.4"}),
        repeats(commit(2), tps=[990, 991], levels={"clients": 8, "version": "18.1"}),
        # What was measured later need not have been made later.
        repeats(commit(1), tps=[1000, 1010], levels={"clients": 8, "version": "16.4"}),
    )
    campaign = Campaign.objects.get()

    old, new = grids.grid(campaign).rows

    assert [row.cells[0].summary.median for row in (old, new)] == [905, 990.5]
    assert [len(row.cells[0].runs) for row in (old, new)] == [2, 2]
    (row,) = ratios.ratios(campaign, "tps")
    assert (row.base_label, row.head_label) == ("16.4", "18.1")
    assert [point.value for line in lines(campaign) for point in line.points] == [
        905,
        990.5,
    ]


def test_a_revision_without_a_date_stands_where_its_first_run_began():
    store(
        repeats(
            GivenRevision("feed", ref="main"), at=START + timedelta(days=9), tps=[500]
        )
    )
    store(repeats(commit(1), tps=[1000]))

    (row,) = grids.grid(Campaign.objects.get()).rows

    assert row.cells[0].summary.median == 500


def test_an_upload_without_a_revision_is_left_out_where_its_series_has_revisions():
    store(
        repeats(tps=[500]),
        repeats(commit(1), tps=[1000]),
        repeats(tps=[5], levels={"clients": 1}),
    )

    (row,) = grids.grid(Campaign.objects.get()).rows

    assert [cell.summary.median for cell in row.cells] == [5, 1000]
