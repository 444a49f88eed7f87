"""Scenarios over the API."""

import pytest

from runs.scenarios import registry
from runs.services.access import projects
from runs.services.campaigns import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def known(db):
    scenarios.sync()


def test_a_scenario_that_runs_says_what_a_draft_may_say(get):
    factories.campaign(repeats=0)

    body = get("scenarios/fixed-point-read/")

    definition = registry.get("fixed-point-read")
    assert (body["runnable"], body["campaigns"], body["writes"]) == (True, 1, False)
    assert [each["name"] for each in body["factors"]] == [each.name for each in definition.factors]
    assert {each["name"] for each in body["parameters"]} >= {"scale", "duration"}
    assert body["primary_metric"] in [each["name"] for each in body["metrics"]]
    assert body["source"]
    clients = next(each for each in body["factors"] if each["name"] == "clients")
    assert clients["minimum"] == 1
    assert clients["choices"] == []
    assert clients["default"]
    assert body["quick"]["parameters"].items() <= definition.quick.parameters.items()
    assert body["quick"]["parameters"]["duration"] < 60


def test_a_factor_without_numbers_has_choices(get):
    factors = get("scenarios/page-checksums/")["factors"]

    checksums = next(each for each in factors if each["choices"])
    assert (checksums["minimum"], checksums["maximum"]) == (None, None)
    assert set(checksums["default"]) <= set(checksums["choices"])


def test_what_is_data_only_has_neither_factors_nor_metrics(get):
    factories.campaign(scenario=factories.scenario("tpcb-like"), repeats=0)

    body = get("scenarios/tpcb-like/")

    assert (body["runnable"], body["campaigns"], body["source"]) == (False, 1, None)
    assert body["factors"] == body["parameters"] == body["metrics"] == []


def test_scenarios_are_filtered(get):
    runnable = {row["slug"] for row in get("scenarios/", runnable="true")["results"]}

    assert runnable == {each.slug for each in registry.every()}
    others = get("scenarios/", runnable="false")["results"]
    assert others
    assert runnable.isdisjoint(row["slug"] for row in others)


def test_what_only_a_private_project_has_made_is_its_own(get, client, make_token):
    project = projects.create(slug="secret", is_public=False)
    factories.campaign("c", scenario=factories.scenario("ours"), project=project, repeats=0)
    factories.campaign("d", project=project, repeats=0)

    rows = {row["slug"]: row["campaigns"] for row in get("scenarios/")["results"]}

    assert "ours" not in rows
    assert rows["fixed-point-read"] == 0
    get("scenarios/ours/", expect=404)
    token = {"Authorization": f"Bearer {make_token('read', of=project)}"}
    assert client.get("/api/v1/scenarios/ours/", headers=token).json()["campaigns"] == 1


def test_an_unknown_scenario_is_not_found(get):
    get("scenarios/none/", expect=404)


def test_the_list_takes_two_queries(get, django_assert_num_queries):
    with django_assert_num_queries(2):
        assert len(get("scenarios/", page_size=1000)["results"]) > 10
