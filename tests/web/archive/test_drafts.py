"""A publication that is written, previewed and accepted in the browser."""

from pathlib import Path

import pytest

from runs.models import PublicationDraft, PublishedTable, Source
from runs.published import reading
from runs.services.access import projects
from runs.services.archive import publications

pytestmark = pytest.mark.django_db
TEXT = (Path(__file__).parents[2] / "samples/published/harbour-2020.yaml").read_text()
ADDRESS = "/archive/drafts/harbour-2020/"


def person(django_user_model, name, role):
    user = django_user_model.objects.create_user(name, password="secret")
    projects.default().memberships.create(user=user, role=role)
    return user


def text_of(response):
    assert response.status_code == 200
    return response.content.decode()


def sent(client, text, address=ADDRESS):
    return text_of(client.post(address, {"slug": "harbour-2020", "text": text}, follow=True))


def test_a_draft_is_checked_and_a_second_person_takes_it_into_the_archive(
    client, django_user_model, monkeypatch
):
    # Only what the browser brings: the repository's own files have their own tests.
    monkeypatch.setattr(reading, "files", list)
    writer = person(django_user_model, "writer", "maintainer")
    second = person(django_user_model, "second", "maintainer")
    third = person(django_user_model, "third", "operator")
    assert client.get("/archive/drafts/").status_code in (302, 403)

    client.force_login(writer)
    wrong = TEXT.replace("98.25 %", "98.25 ms")
    line = wrong.splitlines().index("      1 | 1,000.00 | 98.25 ms | 1050.00 | 105.00 %") + 1
    page = sent(client, wrong, "/archive/drafts/new/")
    assert f"harbour-2020.yaml:{line}: campaign harbour-reading: row 1" in page
    assert "has the unit “ms”" in page
    page = sent(client, TEXT)
    assert "103.82 %" not in page
    assert "105.00 %" in page
    assert "125" in page  # what BenchLab computes for a ratio that is printed as 120.00 %

    draft = PublicationDraft.objects.get()
    for user, told in [
        (writer, "Someone other than its author has to accept it"),
        (second, "It was changed since you looked"),
    ]:
        client.force_login(user)
        text = draft.text if user == writer else "older"
        answer = client.post(f"{ADDRESS}accept/", {"text": text}, follow=True)
        assert told in text_of(answer)
    client.force_login(third)
    assert client.post(f"{ADDRESS}accept/", {"text": draft.text}).status_code == 403
    assert not Source.objects.exists()

    client.force_login(second)
    page = text_of(client.post(f"{ADDRESS}accept/", {"text": draft.text}, follow=True))
    assert "Harbour report" in page
    assert text_of(client.get("/campaigns/harbour-reading/"))
    # Neither the next load of the repository nor further drafting removes any of it.
    sent(client, "source: [broken")
    assert publications.load_all().unchanged == ("harbour-2020",)
    assert PublishedTable.objects.filter(source__slug="harbour-2020").count() == 3


@pytest.mark.parametrize("slug", ["wg1-2013", "later"])
def test_a_name_of_the_archive_is_no_name_of_a_draft(member, slug):
    answer = member.post("/archive/drafts/new/", {"slug": slug, "text": "source: {}"})

    assert "is the name of another publication or page" in text_of(answer)


def test_what_later_reports_would_add_is_told_to_everybody(client):
    page = text_of(client.get("/archive/later/"))

    assert "PostgreSQL 9.3 → 9.4" in page
    assert "/archive/drafts/new/?slug=wg1-2014" in page
