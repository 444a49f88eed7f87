"""The search for everything."""

import pytest
from django.core.management import call_command

from runs.access.services import projects
from runs.models import Campaign, HardwareProfile, Run, Server
from tests import factories

pytestmark = pytest.mark.django_db


def found(client, words: str) -> str:
    answer = client.get("/search/", {"q": words})
    assert answer.status_code == 200
    return answer.content.decode().partition("<main")[2].partition("</main>")[0]


def test_each_kind_of_thing_is_found_and_leads_to_its_page(client):
    call_command("sync_scenarios", verbosity=0)
    run = factories.run(server=factories.server("lab-nine"))
    Campaign.objects.filter(pk=run.campaign_id).update(title="Checkpoints of the night")
    machine = HardwareProfile.objects.create(slug="big", name="Big", cpu_model="EPYC 9754")
    Server.objects.update(hardware=machine)
    for words, address in (
        ("checkpoints night", f"/campaigns/{run.campaign.slug}/"),
        (f"{run.pk}", f"/runs/{run.pk}/"),
        (f"run {run.pk}", f"/runs/{run.pk}/"),
        ("lab-nine", "/servers/lab-nine/"),
        ("9754", f"/hardware/{machine.pk}/"),
        ("standby", "/scenarios/replication/"),
    ):
        assert f'href="{address}"' in found(client, words), words
        assert client.get(address).status_code == 200
    assert "Nothing has all of these words" in found(client, "checkpoints nobody")


def test_what_is_private_is_found_by_its_members_alone(client, admin_client):
    run = factories.run()
    hidden = projects.create(slug="hidden", name="Hidden", is_public=False)
    Campaign.objects.filter(pk=run.campaign_id).update(project=hidden, title="Secret thing")
    for words in ("secret", f"{run.pk}", f"#{run.pk}"):
        assert f"/{run.pk}/" not in found(client, words)
        assert run.campaign.slug not in found(client, words)
    assert run.campaign.slug in found(admin_client, "secret")
    assert f'href="/runs/{run.pk}/"' in found(admin_client, f"{run.pk}")


@pytest.mark.parametrize("words", ["", "   ", "9" * 40, "%", "' OR 1=1 --", "x " * 150])
def test_odd_words_find_nothing_and_break_nothing(client, words):
    factories.run()
    page = found(client, words)
    assert f"/runs/{Run.objects.get().pk}/" not in page
