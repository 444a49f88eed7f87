"""A BenchLab that answers over HTTP, with what anybody may see and what a project alone may."""

from dataclasses import dataclass

import pytest

from runs.access.services import projects, tokens
from runs.histories.services import changes
from runs.models import Campaign, Project
from runs.workloads.services import scenarios
from tests import factories
from tests.history_points import history, store


@dataclass(frozen=True)
class Lab:
    """Its address, the private project, and tokens that may read."""

    url: str
    secret: Project
    members_token: str
    strangers_token: str


@pytest.fixture
def lab(live_server, settings):
    """Campaigns `lab` and `nightly`, which are public, and `hidden` of the project `secret`."""
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0
    scenarios.sync()
    public, secret = projects.default(), projects.create(slug="secret", is_public=False)
    measured = factories.campaign(
        "lab",
        project=public,
        title="Checksums",
        factors={"version": ["16.14", "17.9"], "clients": [1, 8]},
    )
    factories.finish_all(measured, gain={"17.9": 1.1})
    hidden = factories.campaign("hidden", project=secret, title="Hidden checksums")
    factories.finish_all(hidden)
    store(history([1000] * 40 + [900] * 20))
    changes.find(campaign_id=Campaign.objects.get(slug="nightly").pk)

    def token(project):
        return tokens.create(name="read", scopes=["read"], project=project).text

    return Lab(live_server.url, secret, token(secret), token(public))
