"""Scenarios that are not executed any more: their campaigns are read, and no new ones queued."""

import pytest

from runs.models import Scenario
from runs.scenarios import registry
from runs.scenarios.withdrawn import DUET
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


def test_it_is_offered_nowhere(client, admin_client, ready_server):
    scenarios.sync()

    assert not Scenario.objects.get(slug=DUET.slug).runnable
    assert DUET not in registry.every()
    assert "/scenarios/duet/" not in client.get("/scenarios/").content.decode()
    form = admin_client.get(f"/campaigns/new/?server={ready_server.slug}")
    assert 'value="duet"' not in form.content.decode()


def test_what_was_measured_is_read_as_before(client, ready_server):
    scenarios.sync()
    campaign = factories.campaign(
        "beside",
        scenario=Scenario.objects.get(slug=DUET.slug),
        on=ready_server,
        factors={"version": ["16.14", "18.4"], "clients": [1, 4]},
    )
    factories.finish_all(campaign, duet_ratio=1.0)

    for address in (
        "/scenarios/duet/",
        "/campaigns/beside/",
        "/campaigns/beside/report/",
        "/api/v1/campaigns/beside/",
        f"/runs/{campaign.runs.first().pk}/",
        "/compare/?s=beside",
    ):
        answer = client.get(address)
        assert answer.status_code == 200, address
    assert "Duet (withdrawn)" in client.get("/campaigns/beside/").content.decode()


def test_no_new_one_is_queued(client, bearer, ready_server):
    scenarios.sync()
    body = {"title": "Again", "scenario": "duet", "server": ready_server.slug}
    answer = client.post("/api/v1/campaigns/", body, "application/json", headers=bearer)

    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/scenario"]
