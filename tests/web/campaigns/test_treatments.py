"""What is done to the machines of a campaign: in its form, and on the pages of its results."""

import re

import pytest

from runs.models import Artifact, Campaign
from tests.web.campaigns.test_campaigns import draft

pytestmark = pytest.mark.django_db

PAGE = "/campaigns/new/"


@pytest.fixture
def permitting(ready_server):
    """The server lets BenchLab do what needs root, and has a governor."""
    ready_server.privileges = ["drop_caches", "governor"]
    ready_server.environment.facts = {"governor": "powersave"}
    ready_server.environment.save()
    ready_server.save()
    return ready_server


def test_what_is_not_ticked_is_not_offered(member, ready_server):
    page = member.get(PAGE).content.decode()
    assert 'name="cold_cache"' not in page
    assert 'name="governor"' not in page
    assert f"/servers/{ready_server.slug}/edit/" in page
    assert 'name="server_cpus"' in page
    assert 'name="profile"' in page


def test_what_is_ticked_is_offered(member, permitting):
    page = member.get(PAGE).content.decode()
    assert 'name="cold_cache"' in page
    assert 'name="governor"' in page
    assert "need root" not in page


def test_what_is_not_ticked_is_not_accepted_either(member, ready_server):
    response = member.post(PAGE, draft(ready_server, cold_cache="on"))
    assert "Tick it on" in response.context["form"].errors["cold_cache"][0]
    assert "Tick it on" in response.content.decode()
    assert not Campaign.objects.exists()


def test_the_estimate_says_what_stands_against_it(member, ready_server):
    data = draft(ready_server, governor="performance")
    page = member.get("/campaigns/new/estimate/", data).content.decode()
    assert "privilege_missing" in page


def test_what_is_asked_for_is_queued_and_shown(member, permitting):
    asked = draft(
        permitting,
        cold_cache="on",
        governor="performance",
        server_cpus="1, 0",
        pgbench_cpus="1",
        profile="on",
    )
    response = member.post(PAGE, asked)
    campaign = Campaign.objects.get()
    assert campaign.treatment == {
        "cold_cache": True,
        "governor": "performance",
        "server_cpus": "0-1",
        "pgbench_cpus": "1",
        "profile": True,
    }
    for address in (response.url, f"/runs/{campaign.runs.first().pk}/"):
        page = member.get(address).content.decode()
        assert "emptied before each measurement" in page
        assert "by perf, while the load is on" in page


@pytest.mark.parametrize("field", ["server_cpus", "pgbench_cpus"])
def test_a_list_of_cpus_that_is_none_is_said_at_its_field(member, ready_server, field):
    response = member.post(PAGE, draft(ready_server, **{field: "0-3; reboot"}))
    assert "is not a list of CPUs" in response.context["form"].errors[field][0]
    assert not Campaign.objects.exists()


def test_another_choice_of_server_keeps_what_was_typed(member, permitting):
    page = member.get(f"{PAGE}?server=db1&server_cpus=0-1&profile=on").content.decode()
    assert 'value="0-1"' in page
    assert re.search(r'<input type="checkbox" name="profile"[^>]* checked', page)


def test_a_flame_graph_is_shown_on_the_page_of_its_run(client, finished_campaign):
    run = finished_campaign.runs.first()
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "flame-graph" not in page
    Artifact.objects.create(
        run=run, name="flame-graph.svg", media_type="image/svg+xml", size=5, sha256="0" * 64
    )
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert re.search(r'<img class="flame-graph"\s+src="[^"]*flame-graph.svg/"', page)


def test_a_campaign_without_any_shows_nothing_of_it(client, finished_campaign):
    page = client.get(f"/campaigns/{finished_campaign.slug}/").content.decode()
    assert "CPU governor" not in page


def test_reports_tell_what_was_done(client, finished_campaign):
    finished_campaign.treatment = {"cold_cache": True}
    finished_campaign.save()
    page = client.get(f"/campaigns/{finished_campaign.slug}/report/").content.decode()
    assert "emptied before each measurement" in page
