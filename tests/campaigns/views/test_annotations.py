"""Notes, conclusions and discussion: written, changed and deleted by those who may."""

import json
import re

import pytest
from django.contrib.auth.models import User

from runs.access.services import projects
from runs.campaigns.services import annotations
from runs.models import Annotation, Membership, Project
from runs.shared.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def author(django_user_model):
    user = django_user_model.objects.create_user("hanako")
    projects.default().memberships.create(user=user, role="operator")
    return user


@pytest.fixture
def note(finished_campaign, author):
    cell = finished_campaign.cells.first()
    return annotations.add(
        campaign=finished_campaign, text="A dip <here>", by=author, cell=cell
    )


def add(client, **fields):
    return client.post(
        "/campaigns/finished/annotations/", {"text": "Seen.", "kind": "note", **fields}
    )


def test_a_visitor_is_asked_to_log_in(client, finished_campaign):
    assert add(client).url.startswith("/login/")
    assert Annotation.objects.count() == 0


@pytest.mark.parametrize("kind", Annotation.Kind.values)
def test_a_member_writes_and_is_named_as_the_author(member, finished_campaign, kind):
    assert add(member, kind=kind).url == "/campaigns/finished/#annotations"
    (made,) = Annotation.objects.all()
    assert (made.kind, made.text, made.author.username) == (kind, "Seen.", "ichiro")
    page = member.get("/campaigns/finished/").content.decode()
    assert "Seen." in page
    assert "ichiro ·" in page


def test_htmx_gets_the_part_of_the_page(member, finished_campaign):
    answer = member.post(
        "/campaigns/finished/annotations/",
        {"text": "Seen.", "kind": "note"},
        headers=HTMX,
    )
    assert answer.status_code == 200
    assert answer.content.decode().lstrip().startswith('<div id="annotations">')
    assert "Seen." in answer.content.decode()


def test_what_was_typed_stays_when_it_is_refused(member, finished_campaign):
    other = factories.campaign("other").cells.first()
    cell = finished_campaign.cells.first()
    answer = member.post(
        "/campaigns/finished/annotations/",
        {"text": "Typed.", "kind": "conclusion", "cell": cell.pk},
        headers=HTMX,
    )
    assert "Typed.</textarea>" in answer.content.decode()
    assert "not_a_note" in answer.content.decode()
    assert add(member, cell=other.pk).status_code == 404


def test_only_the_author_changes_a_note(member, note):
    Membership.objects.filter(user__username="ichiro").update(role="operator")
    member.post(f"/annotations/{note.pk}/change/", {"text": "Mine now"})
    member.post(f"/annotations/{note.pk}/delete/")
    note.refresh_from_db()
    assert note.text == "A dip <here>"


def test_the_author_changes_and_deletes(client, note, author):
    client.force_login(author)
    client.post(f"/annotations/{note.pk}/change/", {"text": "Explained"})
    note.refresh_from_db()
    assert note.text == "Explained"
    client.post(f"/annotations/{note.pk}/delete/")
    assert Annotation.objects.count() == 0


def test_an_administrator_deletes_everything(client, note):
    client.force_login(User.objects.create_superuser("root"))
    client.post(f"/annotations/{note.pk}/delete/")
    assert Annotation.objects.count() == 0


def test_a_note_is_a_mark_in_the_chart_that_leads_to_its_text(client, note):
    page = client.get("/campaigns/finished/").content.decode()
    figure = json.loads(
        re.search(r'<script type="application/json">(.*?)</script>', page)[1]
    )
    (mark,) = [trace for trace in figure["data"] if trace["name"] == "Notes"]
    assert mark["x"] == [1]
    assert mark["text"] == ["A dip &lt;here&gt;"]
    assert mark["meta"]["urls"] == [f"#annotation-{note.pk}"]
    assert f'id="annotation-{note.pk}"' in page
    assert "A dip &lt;here&gt;" in page


def test_a_note_is_a_mark_at_its_bar_where_versions_have_one_level(
    client, ready_server, author
):
    campaign = factories.campaign(
        "line", on=ready_server, factors={"version": ["16.14", "18.4"], "clients": [1]}
    )
    factories.finish_all(campaign)
    cell = campaign.cells.get(version="18.4")
    annotations.add(campaign=campaign, text="A dip", by=author, cell=cell)
    page = client.get("/campaigns/line/").content.decode()
    figure = json.loads(
        re.search(r'<script type="application/json">(.*?)</script>', page)[1]
    )
    (mark,) = [trace for trace in figure["data"] if trace["name"] == "Notes"]
    (bars,) = [trace for trace in figure["data"] if trace["type"] == "bar"]
    assert mark["x"] == ["18.4"]
    assert mark["y"] == [bars["y"][bars["x"].index("18.4")]]


def test_a_private_campaign_takes_no_notes_from_others(member, finished_campaign, note):
    finished_campaign.project = Project.objects.create(
        slug="p", name="p", is_public=False
    )
    finished_campaign.save()
    assert add(member).status_code == 404
    assert member.post(f"/annotations/{note.pk}/delete/").status_code == 404


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        (" \n ", "note", "empty_text"),
        ("x" * (annotations.MOST_CHARACTERS + 1), "note", "text_too_long"),
        ("x", "shout", "unknown_kind"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_code(
    finished_campaign, author, text, kind, code
):
    with pytest.raises(ServiceError) as refused:
        annotations.add(campaign=finished_campaign, text=text, by=author, kind=kind)
    assert refused.value.code == code


def test_a_cell_of_another_campaign_is_refused(finished_campaign, author):
    other = factories.campaign("other").cells.first()
    with pytest.raises(ServiceError) as refused:
        annotations.add(campaign=finished_campaign, text="x", by=author, cell=other)
    assert refused.value.code == "cell_of_another_campaign"


@pytest.mark.parametrize(
    ("fields", "kept"),
    [({"text": "a\0b"}, ["ab"]), ({"text": "\0"}, []), ({"cell": "²"}, ["Seen."])],
)
def test_characters_that_cannot_be_stored_or_read_are_no_fault_of_ours(
    member, finished_campaign, fields, kept
):
    assert add(member, **fields).status_code == 302
    assert [each.text for each in Annotation.objects.all()] == kept
