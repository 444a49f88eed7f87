"""The grid of a campaign's cells."""

from datetime import timedelta

import pytest

from runs.models import Campaign
from runs.selectors.campaigns import campaigns
from runs.services.uploads import GivenRevision
from tests import factories
from tests.histories import START, commit, repeats, store

pytestmark = pytest.mark.django_db


def test_versions_are_rows_and_clients_are_columns():
    factories.metric()
    campaign = factories.campaign(factors={"version": ["18.4", "9.6.24"], "clients": [4, 1, 16]})

    grid = campaigns.grid(campaign)

    assert grid.factor == "clients"
    assert grid.columns == (1, 4, 16)
    assert [(row.label, row.major) for row in grid.rows] == [("9.6.24", "9.6"), ("18.4", "18")]
    assert grid.rows[0].cells[2].levels == {"version": "9.6.24", "clients": 16}
    assert grid.metric.name == "tps"


def test_a_cell_shows_its_runs_by_repeat_and_their_median():
    campaign = factories.campaign(factors={"version": ["16.14"], "clients": [1]})
    first, second, third = campaign.runs.order_by("repeat")
    factories.finish(first, tps=100)
    factories.finish(third, tps=300)

    (cell,) = campaigns.grid(campaign).rows[0].cells

    assert [(run.id, run.repeat, run.state) for run in cell.runs] == [
        (first.pk, 1, "finished"),
        (second.pk, 2, "queued"),
        (third.pk, 3, "finished"),
    ]
    assert (cell.summary.median, cell.summary.n) == (200, 2)


def test_a_cell_without_finished_runs_has_no_summary():
    grid = campaigns.grid(factories.campaign())

    assert {cell.summary for row in grid.rows for cell in row.cells} == {None}
    assert grid.metric is None


def test_other_factors_make_rows_and_a_combination_that_was_not_asked_for_is_empty():
    campaign = factories.campaign(factors={"version": []})
    factories.cell(campaign, {"version": "16.14", "clients": 1, "fillfactor": 80})
    factories.cell(campaign, {"version": "16.14", "clients": 2, "fillfactor": 100})

    grid = campaigns.grid(campaign)

    assert [row.label for row in grid.rows] == ["16.14 · fillfactor 80", "16.14 · fillfactor 100"]
    assert [[cell is None for cell in row.cells] for row in grid.rows] == [
        [False, True],
        [True, False],
    ]


def test_without_clients_the_most_varied_factor_goes_across():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "workers": [0, 1, 2, 4], "query": ["Q10", "Q11"]}
    )

    grid = campaigns.grid(campaign)

    assert grid.factor == "workers"
    assert [row.label for row in grid.rows] == ["16.14 · query Q10", "16.14 · query Q11"]


def test_a_campaign_that_varies_the_version_only_has_one_column():
    grid = campaigns.grid(factories.campaign(factors={"version": ["16.14", "18.4"]}))

    assert (grid.factor, grid.columns) == (None, (None,))
    assert [row.cells[0].cell.version for row in grid.rows] == ["16.14", "18.4"]


def test_a_scenario_that_is_only_data_shows_tps_before_other_metrics():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "clients": [1]}, scenario=factories.scenario("published")
    )
    factories.metric("elapsed", "lower")
    factories.finish(campaign.runs.first(), elapsed=2, tps=5)

    assert campaigns.grid(campaign).metric.name == "tps"


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_a_grid_takes_four_queries_however_many_cells(clients, django_assert_num_queries):
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": clients})
    factories.finish_all(campaign)

    with django_assert_num_queries(4):
        campaigns.grid(campaign)


def test_of_uploads_the_newest_revision_is_shown_and_compared_with_no_other_revision():
    store(
        repeats(commit(2), tps=[900, 910], levels={"clients": 8, "version": "16.4"}),
        repeats(commit(2), tps=[990, 991], levels={"clients": 8, "version": "18.1"}),
        # What was measured later need not have been made later.
        repeats(commit(1), tps=[1000, 1010], levels={"clients": 8, "version": "16.4"}),
    )
    campaign = Campaign.objects.get()

    old, new = campaigns.grid(campaign).rows

    assert [row.cells[0].summary.median for row in (old, new)] == [905, 990.5]
    assert [len(row.cells[0].runs) for row in (old, new)] == [2, 2]
    (row,) = campaigns.ratios(campaign, "tps")
    assert (row.base_label, row.head_label) == ("16.4", "18.1")
    assert [point.median for line in campaigns.lines(campaign, "tps") for point in line.points] == [
        905,
        990.5,
    ]


def test_a_revision_without_a_date_stands_where_its_first_run_began():
    store(repeats(GivenRevision("feed", ref="main"), at=START + timedelta(days=9), tps=[500]))
    store(repeats(commit(1), tps=[1000]))

    (row,) = campaigns.grid(Campaign.objects.get()).rows

    assert row.cells[0].summary.median == 500


def test_an_upload_without_a_revision_is_left_out_where_its_series_has_revisions():
    store(
        repeats(tps=[500]), repeats(commit(1), tps=[1000]), repeats(tps=[5], levels={"clients": 1})
    )

    (row,) = campaigns.grid(Campaign.objects.get()).rows

    assert [cell.summary.median for cell in row.cells] == [5, 1000]
