"""Campaigns over the API."""

import pytest

from runs.models import Run, Topology
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_campaign_in_the_list_says_what_it_is_and_how_far(get):
    campaign = factories.campaign("first", title="16 and 18")
    factories.finish(campaign.runs.first(), tps=1)

    body = get("campaigns/")

    assert body["next"] is None
    (row,) = body["results"]
    assert row.pop("created_at").endswith("Z")
    assert row == {
        "slug": "first",
        "title": "16 and 18",
        "origin": "executed",
        "state": "queued",
        "is_paused": False,
        "priority": 0,
        "scenario": "fixed-point-read",
        "runs": {"finished": 1, "queued": 17},
        "url": "http://testserver/api/v1/campaigns/first/",
    }


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ({}, ["uploaded", "finished", "plain"]),
        ({"origin": "uploaded"}, ["uploaded"]),
        ({"state": "finished"}, ["finished"]),
        ({"scenario": "other"}, ["finished"]),
        ({"scenario": "no-such"}, []),
        ({"origin": "executed", "state": "queued"}, ["plain"]),
    ],
)
def test_campaigns_are_filtered_newest_first(get, query, slugs):
    factories.campaign("plain", repeats=0)
    factories.campaign(
        "finished", repeats=0, state="finished", scenario=factories.scenario("other")
    )
    factories.campaign("uploaded", repeats=0, origin="uploaded")

    assert [row["slug"] for row in get("campaigns/", **query)["results"]] == slugs


def test_a_campaign_has_its_cells_with_levels_and_summaries(get):
    campaign = factories.campaign(
        "first", factors={"version": ["16.14"], "clients": [1, 2]}, parameters={"scale": 10}, seed=7
    )
    campaign.configuration = factories.configuration("tuned")
    campaign.topology = Topology.objects.create(slug="single", name="s", kind="single")
    campaign.save()
    for run in campaign.runs.filter(cell__levels__clients=2):
        factories.finish(run, tps=1000 + run.repeat)

    body = get("campaigns/first/")

    assert body["factors"] == {"version": ["16.14"], "clients": [1, 2]}
    assert body["parameters"] == {"scale": 10}
    assert (body["repeats"], body["seed"], body["question"]) == (3, 7, "")
    assert (body["topology"], body["configuration"]) == ("single", "tuned")
    assert body["runs"] == {"finished": 3, "queued": 3}
    empty, measured = body["cells"]
    assert (empty["levels"], empty["summaries"]) == ({"version": "16.14", "clients": 1}, [])
    assert measured["version"] == "16.14"
    assert measured["summaries"] == [
        {
            "metric": "tps",
            "unit": "tps",
            "direction": "higher",
            "n": 3,
            "median": 1002,
            "minimum": 1001,
            "maximum": 1003,
            "mean": 1002,
        }
    ]


def test_a_campaign_of_published_figures_has_no_topology_and_no_configuration(get):
    factories.campaign("published", origin="published")

    body = get("campaigns/published/")

    assert (body["topology"], body["configuration"]) == (None, None)


@pytest.mark.parametrize("number", [1, 6])
def test_the_list_takes_two_queries_however_long(get, number, django_assert_num_queries):
    for _ in range(number):
        campaign = factories.campaign(repeats=1)
        Run.objects.filter(pk=campaign.runs.first().pk).update(state="failed")

    with django_assert_num_queries(2):
        assert len(get("campaigns/")["results"]) == number


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8]])
def test_a_campaign_takes_four_queries_however_many_cells(get, clients, django_assert_num_queries):
    campaign = factories.campaign("one", factors={"version": ["16.14"], "clients": clients})
    factories.finish_all(campaign)

    with django_assert_num_queries(4):
        get("campaigns/one/")
