"""The ratio table of a campaign."""

import pytest

from runs.selectors.campaigns import campaigns
from tests import factories

pytestmark = pytest.mark.django_db


def test_each_level_compares_the_newer_version_with_the_older():
    campaign = factories.finish_all(factories.campaign(), gain={"18.4": 1.1})

    rows = campaigns.ratios(campaign, "tps")

    assert [row.levels for row in rows] == [{"clients": 1}, {"clients": 2}, {"clients": 4}]
    assert {(row.base_label, row.head_label) for row in rows} == {("16.14", "18.4")}
    for row in rows:
        assert row.comparison.ratio == pytest.approx(1.1)
        assert row.comparison.low < 1.1 < row.comparison.high
        assert row.comparison.verdict == "faster"
    assert (rows[0].base.median, rows[0].head.median) == pytest.approx((1000, 1100))


def test_the_lowest_version_is_the_baseline_whatever_its_text():
    campaign = factories.campaign(factors={"version": ["10.1", "9.6.24"], "clients": [1]})
    factories.finish_all(campaign)

    (row,) = campaigns.ratios(campaign, "tps")

    assert (row.base_label, row.head_label) == ("9.6.24", "10.1")


def test_another_baseline_can_be_asked_for():
    campaign = factories.campaign(factors={"version": ["16.14", "17.1", "18.4"], "clients": [1]})
    factories.finish_all(campaign)

    rows = campaigns.ratios(campaign, "tps", baseline_version="17.1")

    assert [(row.base_label, row.head_label) for row in rows] == [
        ("17.1", "16.14"),
        ("17.1", "18.4"),
    ]


def test_a_baseline_that_was_not_measured_compares_nothing():
    campaign = factories.finish_all(factories.campaign())

    assert campaigns.ratios(campaign, "tps", baseline_version="9.2") == []


def test_a_pair_waits_until_both_sides_have_a_result():
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": [1]})
    old, new = (campaign.runs.filter(cell__version=version) for version in ("16.14", "18.4"))
    factories.finish(old[0], tps=100)
    assert campaigns.ratios(campaign, "tps") == []

    factories.finish(new[0], tps=110)
    (row,) = campaigns.ratios(campaign, "tps")
    assert row.comparison.verdict == "too_few_runs"
    assert row.comparison.ratio == pytest.approx(1.1)


def test_for_a_latency_less_is_faster():
    factories.metric("latency_average", "lower", "ms")
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": [1]})
    for run in campaign.runs.all():
        latency = 10 if run.cell.version == "16.14" else 8
        factories.finish(run, latency_average=latency * (1 + run.repeat / 1000))

    (row,) = campaigns.ratios(campaign, "latency_average")

    assert row.comparison.verdict == "faster"
    assert row.comparison.ratio == pytest.approx(0.8)


def test_two_builds_of_one_version_are_compared_under_their_folders():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "bindir": ["/opt/a", "/opt/b"], "clients": [1]}
    )
    factories.finish_all(campaign)

    (row,) = campaigns.ratios(campaign, "tps")

    assert (row.base_label, row.head_label) == ("16.14 · /opt/a", "16.14 · /opt/b")
    assert row.levels == {"clients": 1}


def test_a_metric_that_nobody_measured_has_no_rows():
    assert campaigns.ratios(factories.campaign(), "tpz") == []


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_ratios_take_nine_queries_however_many_cells(clients, django_assert_num_queries):
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": clients})
    factories.finish_all(campaign)

    with django_assert_num_queries(9):
        campaigns.ratios(campaign, "tps")


def test_levels_that_have_names_are_compared_within_each_version():
    factors = {"version": ["16.14", "18.4"], "checksums": ["off", "on"], "clients": [1, 2]}
    campaign = factories.finish_all(factories.campaign(factors=factors))

    rows = campaigns.ratios(campaign, "tps")

    assert {(row.subject, row.base_label, row.head_label) for row in rows} == {
        ("checksums", "off", "on")
    }
    assert [row.levels for row in rows] == [
        {"version": version, "clients": clients}
        for version in ("16.14", "18.4")
        for clients in (1, 2)
    ]
