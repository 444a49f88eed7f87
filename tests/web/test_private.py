"""What belongs to a private project is not there for who is no member."""

import pytest
from django.contrib.auth.models import User

from runs.execution.reporter import ArtifactData
from runs.services import artifacts, projects
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def hidden():
    """A finished run of a private project, with a file."""
    project = projects.create(slug="secret", is_public=False)
    campaign = factories.campaign("hidden", title="Hidden", project=project)
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


def test_somebody_else_cancels_nothing(member, hidden):
    assert member.post("/campaigns/hidden/cancel/").status_code == 404
    assert member.post(f"/runs/{hidden.pk}/cancel/").status_code == 404


def test_members_find_it(member, hidden):
    hidden.campaign.project.members.add(User.objects.get(username="ichiro"))

    for address in addresses(hidden):
        assert member.get(address).status_code == 200, address
    assert "Hidden" in member.get("/campaigns/").content.decode()
