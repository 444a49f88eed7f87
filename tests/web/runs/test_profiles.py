"""The page of a run's profile: search, zoom, and the difference to another run's."""

import pytest

from runs.execution.profiling import FOLDED
from runs.execution.reporter import ArtifactData
from runs.models import Project
from runs.services.runs import artifacts
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def profiled(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    campaign = factories.campaign("Profiles", factors={"version": ["14.19", "18.4"]}, repeats=1)
    runs = list(campaign.runs.order_by("cell__ordinal"))
    texts = (
        "postgres;read 500\npostgres;<b>write</b> 500\n",
        "postgres;read 900\npostgres;x 100\n",
    )
    for run, text in zip(runs, texts, strict=True):
        artifacts.store(run=run, data=ArtifactData(FOLDED, text.encode()))
    return runs


def test_a_profile_is_searched_and_zoomed_by_its_address(client, profiled):
    page = client.get(f"/runs/{profiled[0].pk}/profile/?q=READ&zoom=0").content.decode()
    assert "50 %" in page
    assert "all</a>" in page
    assert "&lt;b&gt;write" in page
    assert "<b>write" not in page


def test_two_profiles_of_a_campaign_become_a_difference(client, profiled):
    old, new = profiled
    assert f'value="{old.pk}"' in client.get(f"/runs/{new.pk}/profile/").content.decode()
    response = client.get(f"/runs/{new.pk}/profile/?against={old.pk}")
    differing = {each.name: round(each.points) for each in response.context["functions"]}
    assert differing == {"read": 40, "<b>write</b>": -50, "x": 10}
    assert "red has grown" in response.content.decode()


def test_a_profile_that_is_not_there_or_private_is_not_found(client, profiled):
    assert client.get(f"/runs/{factories.run().pk}/profile/").status_code == 404
    assert client.get(f"/runs/{profiled[0].pk}/profile/?against=999999").status_code == 404
    profiled[0].campaign.project = Project.objects.create(slug="own", name="Own", is_public=False)
    profiled[0].campaign.save()
    assert client.get(f"/runs/{profiled[0].pk}/profile/").status_code == 404
