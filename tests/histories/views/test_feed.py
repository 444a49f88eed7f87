"""The Atom feed of a project: what is in it, and who sees it."""

import xml.etree.ElementTree as ET

import pytest

from runs.access.services import projects
from runs.histories.services import changes
from runs.models import Campaign, Change
from tests import factories
from tests.history_points import history, store

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"
FEED = "/projects/{}/feed.atom"


def entries(answer):
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/atom+xml")
    return ET.fromstring(answer.content).findall(f"{ATOM}entry")


def titles(answer):
    return [entry.find(f"{ATOM}title").text for entry in entries(answer)]


def slower(project=None):
    store(history([1000] * 40 + [900] * 20), project=project)
    campaign = Campaign.objects.order_by("-pk").first()
    changes.find(campaign_id=campaign.pk)
    return campaign


@pytest.fixture
def lab(project):
    campaign = factories.campaign(
        "lab",
        project=project,
        title="A & <b>\x1b",
        factors={"version": ["16.1", "17.1"]},
    )
    return factories.finish_all(campaign, gain={"17.1": 1.1})


def test_a_feed_has_changes_and_answers(client, lab):
    slower()

    found = titles(client.get(FEED.format("default")))

    assert any("% slower" in title for title in found)
    assert any(title.startswith("A & <b>\\x1b: ") for title in found)


def test_an_entry_keeps_its_name_and_leads_to_its_page(client, settings):
    settings.PUBLIC_URL = "https://lab.example/"
    slower()

    (before,) = entries(client.get(FEED.format("default")))
    Campaign.objects.update(title="Renamed")
    (after,) = entries(client.get(FEED.format("default")))

    assert before.find(f"{ATOM}id").text == after.find(f"{ATOM}id").text
    assert before.find(f"{ATOM}title").text != after.find(f"{ATOM}title").text
    link = before.find(f"{ATOM}link").get("href")
    assert link.startswith("https://lab.example/campaigns/nightly/history/")


def test_what_was_dismissed_is_no_news(client):
    slower()
    Change.objects.update(decision=Change.Decision.DISMISSED)

    assert entries(client.get(FEED.format("default"))) == []


def test_a_feed_is_of_its_project_alone(client, lab):
    other = projects.create(slug="other", is_public=True)
    slower(other)

    assert len(titles(client.get(FEED.format("other")))) == 1
    assert not any(
        "slower" in title for title in titles(client.get(FEED.format("default")))
    )


def test_a_private_feed_is_for_members_alone(client, lab, django_user_model):
    secret = projects.create(slug="secret", is_public=False)
    slower(secret)
    member, outsider = map(django_user_model.objects.create_user, ("jane", "ichiro"))
    secret.memberships.create(user=member, role="viewer")

    client.force_login(member)
    seen = client.get(FEED.format("secret"))
    client.force_login(outsider)
    hidden = client.get(FEED.format("secret")).status_code
    client.logout()

    assert len(entries(seen)) == 1
    assert set(seen.headers["Cache-Control"].split(", ")) == {"private", "no-store"}
    assert hidden == client.get(FEED.format("secret")).status_code == 404
    assert client.get(FEED.format("none")).status_code == 404
    assert not any(
        "slower" in title for title in titles(client.get(FEED.format("default")))
    )


def test_a_reader_asks_again_by_the_tag(client, lab):
    first = client.get(FEED.format("default"))

    again = client.get(
        FEED.format("default"), headers={"If-None-Match": first.headers["ETag"]}
    )

    assert again.status_code == 304
