"""Pausing, prioritising and retrying campaigns, and maintaining servers, over the API."""

import pytest

from runs.models import Campaign, Run
from runs.services.access import projects
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    return factories.server("db1")


@pytest.fixture
def campaign(server):
    factors = {"version": ["16.14"], "clients": [1]}
    return factories.campaign("first", on=server, factors=factors, repeats=2)


@pytest.fixture
def post(client, make_token):
    header = {"Authorization": f"Bearer {make_token('read', 'queue', 'admin')}"}

    def sent(path, body=None):
        return client.post(f"/api/v1/{path}", body or {}, "application/json", headers=header)

    return sent


def test_a_campaign_is_paused_and_resumed(post, campaign):
    assert post("campaigns/first/pause/").json()["is_paused"] is True
    assert post("campaigns/first/resume/").json()["is_paused"] is False
    answer = post("campaigns/first/resume/")
    assert (answer.status_code, answer.json()["code"]) == (409, "campaign_not_paused")


def test_a_priority_is_changed_within_its_bounds(post, campaign):
    assert post("campaigns/first/priority/", {"priority": 7}).json()["priority"] == 7
    answer = post("campaigns/first/priority/", {"priority": 101})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/priority")


def test_all_that_failed_is_queued_again(post, campaign):
    Run.objects.update(state="failed", plan={})
    Campaign.objects.update(state="incomplete")
    body = post("campaigns/first/retry/").json()
    assert (body["state"], body["runs"]) == ("queued", {"queued": 2})
    assert post("campaigns/first/retry/").json()["code"] == "nothing_to_retry"


def test_a_server_is_maintained_and_released(post, server, client):
    given = {"reason": "new disks", "until": "2100-01-01T00:00:00Z"}
    assert post("servers/db1/maintain/", given).json()["maintenance"] == given
    assert client.get("/api/v1/servers/db1/").json()["maintenance"] == given
    assert post("servers/db1/release/").json()["maintenance"] is None


def test_a_maintenance_that_is_over_is_refused_at_its_field(post, server):
    answer = post("servers/db1/maintain/", {"until": "2000-01-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/until")


def test_a_misspelt_end_makes_no_endless_maintenance(post, server):
    answer = post("servers/db1/maintain/", {"reason": "disks", "untill": "2100-01-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "unknown_field")
    server.refresh_from_db()
    assert server.maintenance_since is None


@pytest.mark.parametrize("act", ["maintain", "release"])
def test_only_an_administrators_token_maintains_a_server(client, make_token, server, act):
    header = {"Authorization": f"Bearer {make_token('read', 'queue')}"}
    answer = client.post(f"/api/v1/servers/db1/{act}/", headers=header)
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    "path",
    [
        "campaigns/first/pause/",
        "campaigns/first/cancel/",
        "campaigns/first/retry/",
        "runs/{}/retry/",
    ],
)
def test_a_token_steers_nothing_of_another_project(client, make_token, campaign, path):
    other = projects.create(slug="other", is_public=False)
    header = {"Authorization": f"Bearer {make_token('queue', 'admin', of=other)}"}
    run = campaign.runs.first()

    answer = client.post(f"/api/v1/{path.format(run.pk)}", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "other_project")
    campaign.refresh_from_db()
    assert (campaign.state, campaign.paused_at) == ("queued", None)


def test_a_token_writes_no_note_beside_a_campaign_of_another_project(client, make_token, campaign):
    other = projects.create(slug="other", is_public=True)
    header = {"Authorization": f"Bearer {make_token(of=other)}"}
    path = "/api/v1/campaigns/first/annotations/"

    answer = client.post(path, {"text": "Mine."}, "application/json", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "other_project")
    assert client.get(path, headers=header).json() == []
