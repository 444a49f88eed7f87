"""The page of the tokens."""

import re

import pytest
from django.utils import timezone

from runs.models import Token
from runs.services.access import projects, tokens

pytestmark = pytest.mark.django_db

GIVEN = {"name": "nightly", "scopes": ["read", "upload"], "project": "default", "last_day": ""}


@pytest.fixture
def own(member, django_user_model):
    """A token of the one who has logged in."""
    owner = django_user_model.objects.get(username="ichiro")
    made = tokens.create(name="mine", scopes=["read"], project=projects.default(), by=owner)
    return made.token


def test_a_visitor_is_sent_to_log_in(client):
    assert client.get("/tokens/").status_code == 302
    assert client.post("/tokens/1/revoke/").status_code == 302


def test_a_token_is_shown_once_and_works(member, client):
    page = member.get("/tokens/")
    assert page.status_code == 200
    answer = member.post("/tokens/", GIVEN)

    (text,) = set(re.findall(r"blab_[0-9a-f]{12}_[\w-]{43}", answer.content.decode()))
    assert "no-store" in answer.headers["Cache-Control"]
    assert text not in member.get("/tokens/").content.decode()
    header = {"Authorization": f"Bearer {text}"}
    assert client.get("/api/v1/runs/", headers=header).status_code == 200


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "This field is required."),
        ({"scopes": []}, "This field is required."),
        ({"scopes": ["root"]}, "root is not one of the available choices."),
        ({"project": "nowhere"}, "Select a valid choice."),
        ({"last_day": "2001-01-01"}, "That day has passed."),
    ],
)
def test_a_fault_is_told_at_its_field(member, changed, message):
    answer = member.post("/tokens/", GIVEN | changed)

    assert message in answer.content.decode()
    assert not Token.objects.exists()


def test_a_token_is_good_to_the_end_of_its_last_day(member):
    today = timezone.localdate()

    member.post("/tokens/", GIVEN | {"last_day": today.isoformat()})

    token = Token.objects.get()
    assert token.state == "good"
    assert timezone.localtime(token.expires_at).date() == today


def test_a_private_project_is_offered_to_its_members_only(member):
    projects.create(slug="secret", name="Secret", is_public=False)

    assert "Secret" not in member.get("/tokens/").content.decode()
    assert (
        "Select a valid choice."
        in member.post("/tokens/", GIVEN | {"project": "secret"}).content.decode()
    )


def test_a_token_is_revoked_by_its_owner(member, own):
    page = member.post(f"/tokens/{own.pk}/revoke/", follow=True).content.decode()

    own.refresh_from_db()
    assert own.state == "revoked"
    assert "was revoked" in page


def test_others_neither_see_nor_revoke_it(client, own, django_user_model):
    client.force_login(django_user_model.objects.create_user("jiro"))

    assert "mine" not in client.get("/tokens/").content.decode()
    assert client.post(f"/tokens/{own.pk}/revoke/").status_code == 404
    own.refresh_from_db()
    assert own.state == "good"


def test_an_administrator_sees_all_of_them(own, admin_client):
    assert "mine" in admin_client.get("/tokens/").content.decode()
