"""Measurements over the API."""

import pytest

from tests import factories

pytestmark = pytest.mark.django_db


def test_a_measurement_says_what_was_measured_under_which_levels(get):
    run = factories.finish(factories.run(repeat=2), tps=1234.5)

    (row,) = get("measurements/")["results"]

    assert row.pop("id")
    assert row == {
        "campaign": run.campaign.slug,
        "run": run.pk,
        "levels": {"version": "16.14", "clients": 1, "repeat": 2},
        "metric": "tps",
        "value": 1234.5,
        "unit": "tps",
        "n": 1,
        "statistic": "single",
        "origin": "executed",
        "source": None,
        "table": None,
        "printed": None,
        "remark": None,
        "place": None,
        "said_by": None,
        "exact": None,
        "conditions": None,
        "recomputed": None,
        "disputed": None,
    }


def test_measurements_are_filtered(get):
    factories.metric("latency", "lower", "ms")
    wanted = factories.campaign("wanted")
    for run in wanted.runs.all():
        factories.finish(run, tps=1, latency=2)
    uploaded = factories.campaign("uploaded", origin="uploaded", factors={"version": ["9.6.24"]})
    factories.finish(uploaded.runs.first(), tps=3)

    def count(**query):
        return len(get("measurements/", **query)["results"])

    assert count() == 37
    assert count(campaign="wanted") == 36
    assert count(campaign="wanted", metric="tps") == 18
    assert count(campaign="wanted", metric="tps", version="16") == 9
    assert count(metric="latency", version="18.4") == 9
    assert count(version="18.5") == 0
    assert count(version="1") == 0
    assert count(version="9.6", origin="uploaded") == 1
    assert count(origin="published") == 0
    assert count(run=str(uploaded.runs.first().pk)) == 1


@pytest.mark.parametrize("version", ["sixteen", "16.", "16%", "latest"])
def test_what_is_no_version_is_refused(get, version):
    (fault,) = get("measurements/", expect=400, version=version)["errors"]

    assert fault["pointer"] == "?version"


@pytest.mark.parametrize("repeats", [1, 8])
def test_the_list_takes_one_query_however_long(get, repeats, django_assert_num_queries):
    factories.finish_all(factories.campaign(repeats=repeats))

    with django_assert_num_queries(1):
        assert len(get("measurements/")["results"]) == 6 * repeats


def test_a_result_that_is_stored_but_not_yet_finished_is_not_told(get):
    run = factories.finish(factories.run(), tps=1000)
    assert len(get("measurements/")["results"]) == 1
    run.state = "collecting"
    run.save()
    assert get("measurements/")["results"] == []
