"""Export and import of projects over the API."""

import pytest

from runs.models import Campaign, Run
from runs.services.access import projects
from tests import factories

pytestmark = pytest.mark.django_db
NDJSON = "application/x-ndjson"


@pytest.fixture
def private(db):
    made = projects.create(slug="secret", is_public=False)
    factories.finish_all(factories.campaign("hidden", project=made))
    return made


@pytest.fixture
def member(client, django_user_model):
    """Somebody who has logged in, and is no administrator."""
    client.force_login(django_user_model.objects.create_user("ichiro", password="secret"))
    return client


def header(token):
    return {"Authorization": f"Bearer {token}"}


def exported(client, slug, token=None):
    answer = client.get(
        f"/api/v1/projects/{slug}/export/", headers=header(token) if token else None
    )
    if answer.status_code != 200:
        return answer.status_code
    assert answer.headers["Content-Type"] == NDJSON
    return b"".join(answer.streaming_content)


def imported(client, slug, content, token, media_type=NDJSON):
    path = f"/api/v1/projects/{slug}/import/"
    return client.generic("POST", path, content, media_type, headers=header(token))


def test_an_export_is_imported_elsewhere(client, project, private, make_token):
    reader = make_token("read", of=private)
    content = exported(client, "secret", reader)
    Campaign.objects.all().delete()

    answer = imported(client, "default", content, make_token("admin"))

    assert answer.status_code == 200, answer.content
    assert answer.json() == {"project": "default", "campaigns": 1, "runs": 18, "there": 0}
    assert Run.objects.count() == 18


def test_anybody_exports_what_is_public(client, project):
    factories.finish_all(factories.campaign("open"))

    assert b'"slug": "open"' in exported(client, "default")


def test_a_private_project_is_not_there_for_others(client, private, make_token, member):
    assert exported(client, "secret") == 404
    assert exported(client, "secret", make_token("read")) == 404
    assert exported(member, "secret") == 404


def test_a_token_of_an_administrator_stays_bound_to_its_project(
    client, private, project, admin_user, make_token
):
    assert exported(client, "secret", make_token("read", by=admin_user)) == 404


@pytest.mark.parametrize("scopes", [("read", "upload", "queue")])
def test_an_import_needs_the_scope(client, make_token, scopes):
    answer = imported(client, "default", b"", make_token(*scopes))

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


def test_an_import_goes_only_into_the_tokens_project(client, private, make_token):
    assert imported(client, "secret", b"", make_token("admin")).status_code == 404


def test_who_is_no_administrator_imports_nothing(member, project):
    answer = member.post("/api/v1/projects/default/import/", b"", NDJSON)

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [(b"\n", NDJSON, 400), (b"{}\n", NDJSON, 400), (b"{}\n", "application/json", 415)],
)
def test_what_is_no_export_is_refused(client, make_token, project, content, media_type, status):
    answer = imported(client, "default", content, make_token("admin"), media_type)

    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
