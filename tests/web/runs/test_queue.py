"""Steering the queue from the pages."""

from datetime import UTC, datetime

import pytest

from runs.models import Campaign, Lease, Run, Server
from runs.services.campaigns import topologies
from tests import factories

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(ready_server):
    factors = {"version": ["16.14"], "clients": [1]}
    return factories.campaign("first", on=ready_server, factors=factors, repeats=2)


def shown(client, path):
    return client.get(path).content.decode()


def test_a_campaign_is_paused_and_says_so(member, campaign):
    member.post("/campaigns/first/pause/")
    page = shown(member, "/campaigns/first/")
    assert "no further run begins" in page
    assert "/campaigns/first/resume/" in page
    assert "paused" in shown(member, "/campaigns/")
    member.post("/campaigns/first/resume/")
    assert "no further run begins" not in shown(member, "/campaigns/first/")


def test_a_priority_is_changed(member, campaign):
    member.post("/campaigns/first/priority/", {"priority": "5"})
    assert 'value="5"' in shown(member, "/campaigns/first/")
    page = member.post("/campaigns/first/priority/", {"priority": "500"}, follow=True)
    assert "from -100 to 100" in page.content.decode()
    page = member.post("/campaigns/first/priority/", {"priority": "high"}, follow=True)
    assert "whole number" in page.content.decode()
    assert Campaign.objects.get().priority == 5


def test_what_did_not_finish_is_queued_again(member, campaign):
    assert "/campaigns/first/retry/" not in shown(member, "/campaigns/first/")
    Run.objects.update(state="failed", plan={})
    assert "/campaigns/first/retry/" in shown(member, "/campaigns/first/")
    member.post("/campaigns/first/retry/")
    assert set(Run.objects.values_list("state", flat=True)) == {"queued"}


def test_a_single_run_is_queued_again(member, campaign):
    run = campaign.runs.first()
    assert f"/runs/{run.pk}/retry/" not in shown(member, f"/runs/{run.pk}/")
    Run.objects.filter(pk=run.pk).update(state="cancelled", plan={})
    assert f"/runs/{run.pk}/retry/" in shown(member, f"/runs/{run.pk}/")
    member.post(f"/runs/{run.pk}/retry/")
    assert Run.objects.get(pk=run.pk).attempt == 2


def test_maintenance_is_told_where_it_matters(member, campaign, ready_server):
    path = f"/servers/{ready_server.slug}/"
    member.post(f"{path}maintain/", {"reason": "new disks", "until": "2100-01-01T12:00"})
    assert "until 2100-01-01 12:00 UTC: new disks" in shown(member, path)
    assert "new disks" in shown(member, "/campaigns/first/")
    assert "maintenance" in shown(member, "/servers/")
    member.post(f"{path}release/")
    assert "new disks" not in shown(member, path)
    assert not Server.objects.get().is_maintained


def test_an_end_that_is_no_time_is_refused_in_words(member, ready_server):
    path = f"/servers/{ready_server.slug}/maintain/"
    page = member.post(path, {"until": "tomorrow"}, follow=True)
    assert "such as 2026-07-01 18:00" in page.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "campaigns/first/pause",
        "campaigns/first/resume",
        "campaigns/first/retry",
        "campaigns/first/priority",
        "servers/db1/maintain",
        "servers/db1/release",
    ],
)
def test_a_visitor_steers_nothing(client, campaign, path):
    assert client.post(f"/{path}/").url.startswith("/login/")
    assert f"/{path}/" not in shown(client, "/campaigns/first/")
    assert f"/{path}/" not in shown(client, "/servers/db1/")


def test_a_servers_page_and_the_form_say_what_repeats_can_show(member, finished_campaign):
    Run.objects.update(hardware=Server.objects.get().hardware)
    assert "3 repeats can show" in shown(member, "/servers/db1/")
    assert "3 repeats on this server can show" in shown(member, "/campaigns/new/?server=db1")


def test_a_server_that_has_measured_nothing_says_how_to_learn_its_noise(member, ready_server):
    assert "An A/A campaign tells it best" in shown(member, "/servers/db1/")


def test_the_form_tells_the_least_and_the_most_runs(member, ready_server):
    path = "/campaigns/new/estimate/"
    given = {
        "title": "x",
        "scenario": "fixed-point-read",
        "server": "db1",
        "installations": [each.pk for each in ready_server.installations.all()],
        "clients": "1",
        "repeats": "3",
        "scale": "1",
        "duration": "5",
        "wanted_percent": "2",
    }
    assert "Say when to stop, too" in member.get(path, given).content.decode()
    page = member.get(path, given | {"most_repeats": "10"}).content.decode()
    assert "up to 20" in page


@pytest.fixture
def generator(campaign, ready_server):
    """Another server, from which the load of the campaign is to come."""
    made = factories.server("load1", name="load1")
    campaign.topology = topologies.topology_of(server=ready_server, generators=[made])
    campaign.save()
    campaign.runs.update(plan={"generators": [{"server_id": made.pk}]})
    return made


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"maintenance_since": NOON, "maintenance_reason": "fan"},
            "load1 is being maintained: fan",
        ),
        ({"state": "unreachable", "problem": "No route."}, "load1 is not ready: No route."),
        ({"state": "unconfirmed"}, "load1 is not ready: host key not confirmed"),
        ({"needs_sweep": True}, "load1 is being cleaned up, or will be soon"),
        (
            {"needs_sweep": True, "sweep_after": "2999-01-01T00:00Z"},
            "load1 could not be cleaned up yet",
        ),
    ],
)
def test_a_generator_that_cannot_be_had_is_told_where_runs_wait_for_it(
    client, campaign, generator, fields, told
):
    Server.objects.filter(pk=generator.pk).update(**fields)
    run = campaign.runs.first()
    assert told in shown(client, "/campaigns/first/")
    assert told in shown(client, f"/runs/{run.pk}/")
    Run.objects.update(state="finished")
    assert told not in shown(client, f"/runs/{run.pk}/")


def test_a_generator_that_another_run_has_is_told_on_the_page_of_a_run_that_waits(
    client, campaign, generator
):
    path = f"/runs/{campaign.runs.first().pk}/"
    assert "busy with another run" not in shown(client, path)
    Lease.objects.create(server=generator, run=factories.campaign("other").runs.first())
    assert "load1 is busy with another run" in shown(client, path)


@pytest.mark.parametrize("fields", [{"maintenance_since": NOON}, {"needs_sweep": True}])
def test_a_run_that_lost_its_worker_does_not_wait_for_the_end_of_a_maintenance_or_sweep(
    client, campaign, generator, fields
):
    Server.objects.filter(pk=generator.pk).update(**fields)
    run = campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(state="lost")
    page = shown(client, f"/runs/{run.pk}/")
    assert "being maintained" not in page
    assert "being cleaned up" not in page
