"""What belongs to a private project is not there for who is no member."""

import pytest
from django.contrib.auth.models import User

from runs.execution.reporter import ArtifactData
from runs.services.access import projects
from runs.services.campaigns import topologies
from runs.services.runs import artifacts
from runs.web import urls as web_urls
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def hidden():
    """A finished run of a private project, with a file."""
    project = projects.create(slug="secret", is_public=False)
    server = factories.server(versions=["16.14", "18.4"])
    topology = topologies.topology_of(server=server)
    campaign = factories.campaign(
        "hidden", title="Hidden", project=project, on=server, topology=topology
    )
    campaign.runs.update(hardware=server.hardware)
    run = factories.finish(campaign.runs.first(), tps=1)
    artifacts.store(run=run, data=ArtifactData("out", b"x"))
    return run


def addresses(run):
    return ["/campaigns/hidden/", f"/runs/{run.pk}/", f"/runs/{run.pk}/artifacts/out/"]


def test_strangers_find_nothing(client, hidden):
    for address in addresses(hidden):
        assert client.get(address).status_code == 404, address
    for address in ("/", "/campaigns/"):
        assert "Hidden" not in client.get(address).content.decode(), address


def pages(run):
    """Every page without a campaign's object in its address, and those of what the run uses."""
    plain = [f"/{each.pattern}" for each in web_urls.urlpatterns if not each.pattern.converters]
    scenario, server = run.campaign.scenario, run.server
    return [
        *plain,
        f"/scenarios/{scenario.slug}/",
        f"/servers/{server.slug}/",
        f"/hardware/{run.hardware_id}/",
        f"/topologies/{run.campaign.topology.slug}/",
    ]


def test_no_other_page_tells_of_it(member, hidden):
    seen = [(address, member.get(address)) for address in pages(hidden)]
    shown = [(address, page) for address, page in seen if page.status_code == 200]
    assert len(shown) > 20
    assert f"/hardware/{hidden.hardware_id}/" in dict(shown)
    for address, page in shown:
        told = page.getvalue().decode(errors="replace")
        assert "Hidden" not in told, address
        assert f"/runs/{hidden.pk}/" not in told, address


def test_somebody_else_cancels_nothing(member, hidden):
    assert member.post("/campaigns/hidden/cancel/").status_code == 404
    assert member.post(f"/runs/{hidden.pk}/cancel/").status_code == 404


def test_members_find_it(member, hidden):
    hidden.campaign.project.members.add(User.objects.get(username="ichiro"))

    for address in addresses(hidden):
        answer = member.get(address)
        assert answer.status_code == 200, address
        for close in answer._resource_closers:  # of the download
            close()
    assert "Hidden" in member.get("/campaigns/").content.decode()


@pytest.mark.parametrize("key", ["abc", "1e3"])
def test_a_key_that_is_no_number_is_not_found(member, key):
    for address in (f"/api/v1/runs/{key}/retry/", f"/api/v1/schedules/{key}/pause/"):
        assert member.post(address).status_code == 404, address
