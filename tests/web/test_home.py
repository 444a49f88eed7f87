"""The first page."""

import pytest
from django.contrib.auth.models import AnonymousUser

from runs.models import Bisection, Campaign, Run
from runs.selectors.campaigns import factor_names
from runs.selectors.compare.ratios import ratios
from runs.web import home
from runs.web.campaigns import page
from tests import factories

pytestmark = pytest.mark.django_db


def test_an_empty_lab_says_what_to_do(client):
    page = client.get("/").content.decode()
    assert "No servers yet" in page
    assert "/servers/new/" in page
    assert "/campaigns/new/" in page


def test_it_shows_what_runs_now_and_asks_again(client, ready_server):
    campaign = factories.campaign("live", title="Live one", on=ready_server)
    campaign.runs.filter(position=1).update(state=Run.State.MEASURING)
    page = client.get("/").content.decode()
    assert "Live one" in page
    assert 'hx-trigger="every 2s"' in page


def test_an_idle_lab_is_not_polled(client, finished_campaign):
    assert "hx-trigger" not in client.get("/").content.decode()


def test_htmx_gets_the_live_part_only(client, finished_campaign):
    response = client.get("/", headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert "PostgreSQL 16 and 18" in response.content.decode()
    assert "HX-Request" in response["Vary"]


def test_its_queries_do_not_grow_with_the_campaigns(
    client, ready_server, django_assert_max_num_queries
):
    for number in range(5):
        factories.campaign(f"campaign-{number}", on=ready_server)
    Campaign.objects.update(state="queued")
    with django_assert_max_num_queries(15):
        client.get("/")


def test_steps_of_a_bisection_are_none_of_the_newest_findings(client, finished_campaign):
    assert "Newest findings" in client.get("/").content.decode()
    bisection = Bisection.objects.create(
        campaign=finished_campaign, server=finished_campaign.runs.first().server,
        asked={}, draft={}, builds=[], high=1,
    )  # fmt: skip
    bisection.steps.create(campaign=finished_campaign, low=0, high=1)
    assert "Newest findings" not in client.get("/").content.decode()


def test_its_queries_do_not_grow_with_what_finished(
    client, ready_server, django_assert_max_num_queries
):
    for number in range(5):
        campaign = factories.campaign(f"lab-{number}", on=ready_server, parameters={"duration": 60})
        factories.finish_all(campaign, gain={"18.4": 1 + number / 10})
    with django_assert_max_num_queries(24):
        page = client.get("/").content.decode()
    assert page.count("lab-4") > 2


def test_a_finding_says_what_its_campaign_says(client, ready_server):
    """The first page judges the newest campaigns together, a campaign's own page each alone."""
    for number, gain in enumerate((0.8, 1.0, 1.3)):
        campaign = factories.campaign(f"lab-{number}", on=ready_server)
        factories.finish_all(campaign, gain={"18.4": gain})
    found = dict(home._findings(list(home._newest(AnonymousUser()))))
    assert len(found) == 3
    for campaign, findings in found.items():
        alone = page.findings(ratios(campaign, "tps"), factor_names.words(campaign))
        assert findings == alone
