"""Reports and annotations over the API."""

import pytest

from runs.models import Annotation
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(project):
    made = factories.campaign("first", project=project)
    return factories.finish_all(made)


@pytest.fixture
def post(client, bearer):
    def sent(body, headers=bearer):
        return client.post(
            "/api/v1/campaigns/first/annotations/", body, "application/json", headers=headers
        )

    return sent


@pytest.mark.parametrize(
    ("query", "media_type", "name"),
    [
        ("", "text/html; charset=utf-8", "first-en.html"),
        ("?format=md&lang=ja", "application/zip", "first-ja.md.zip"),
        ("?format=rst", "application/zip", "first-en.rst.zip"),
    ],
)
def test_a_report_is_a_file(client, campaign, query, media_type, name):
    answer = client.get(f"/api/v1/campaigns/first/report/{query}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == media_type
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize(
    ("query", "status"), [("?lang=fr", 400), ("?colour=red", 400), ("?format=docx", 400)]
)
def test_what_a_report_does_not_know_is_refused(client, campaign, query, status):
    assert client.get(f"/api/v1/campaigns/first/report/{query}").status_code == status


def test_an_annotation_is_created_and_listed(post, get, campaign):
    levels = campaign.cells.first().levels
    made = post({"text": "A dip.", "levels": levels})
    assert made.status_code == 201, made.content
    (listed,) = get("campaigns/first/annotations/")
    assert listed == made.json()
    assert (listed["kind"], listed["text"], listed["levels"]) == ("note", "A dip.", levels)


def test_of_several_revisions_the_newest_is_annotated(post, campaign):
    first = campaign.cells.first()
    newest = factories.cell(campaign, {"clients": 99})
    type(newest).objects.filter(pk=newest.pk).update(levels=first.levels)
    assert post({"text": "A dip.", "levels": first.levels}).status_code == 201
    assert Annotation.objects.get().cell == newest


def test_a_conclusion_is_of_the_whole_campaign(post, campaign):
    assert post({"text": "18 wins.", "kind": "conclusion"}).json()["levels"] is None
    refused = post({"text": "x", "kind": "conclusion", "levels": campaign.cells.first().levels})
    assert refused.status_code == 422
    assert Annotation.objects.count() == 1


def test_unknown_levels_are_refused(post, campaign):
    answer = post({"text": "x", "levels": {"clients": 99}})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/levels"


def test_writing_needs_the_scope(post, campaign, make_token):
    reading = {"Authorization": f"Bearer {make_token('read')}"}
    assert post({"text": "x"}, headers=reading).status_code == 403
    assert post({"text": "x"}, headers={}).status_code == 401
