"""Public reads of the API: tags, caches, and who may read them from another site."""

import pytest

from runs.access.services import projects
from tests import factories

pytestmark = pytest.mark.django_db
ORIGIN = "https://grafana.example"


@pytest.fixture(autouse=True)
def origins(settings):
    settings.EMBED_ORIGINS = (ORIGIN,)
    settings.RATE_ANONYMOUS = 0


@pytest.fixture
def lab(project):
    return factories.finish_all(factories.campaign("lab", project=project))


def get(client, path, **headers):
    return client.get(f"/api/v1/{path}", headers={"Origin": ORIGIN, **headers})


READS = ("campaigns/", "campaigns/lab/", "measurements/?metric=tps", "runs/?format=csv")


@pytest.mark.parametrize("path", READS)
def test_what_anybody_may_read_named_sites_read(client, lab, path):
    headers = get(client, path).headers

    assert headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "Access-Control-Allow-Credentials" not in headers
    assert set(headers["Cache-Control"].split(", ")) == {"public", "max-age=0"}
    assert {"Cookie", "Authorization", "Origin"} <= set(headers["Vary"].split(", "))


def test_other_sites_read_nothing(client, lab):
    answer = client.get(
        "/api/v1/campaigns/", headers={"Origin": "https://evil.example"}
    )

    assert "Access-Control-Allow-Origin" not in answer.headers


def test_nothing_is_sent_again_that_did_not_change(client, lab):
    first = get(client, "campaigns/lab/")

    again = get(client, "campaigns/lab/", **{"If-None-Match": first.headers["ETag"]})
    lab.title = "Other"
    lab.save()
    changed = get(client, "campaigns/lab/", **{"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert (changed.status_code, changed.json()["title"]) == (200, "Other")


@pytest.mark.parametrize("path", READS)
def test_what_a_token_or_a_login_reads_is_for_nobody_else(
    client, admin_client, lab, make_token, path
):
    by_token = get(client, path, Authorization=f"Bearer {make_token('read')}").headers
    by_login = get(admin_client, path).headers

    for headers in (by_token, by_login):
        assert set(headers["Cache-Control"].split(", ")) == {"private", "no-store"}
        assert "Access-Control-Allow-Origin" not in headers
        assert "ETag" not in headers


def test_a_tag_of_a_member_opens_nothing(client, make_token):
    """Whoever knows the tag of a private answer gets no sign that it is right."""
    secret = projects.create(slug="secret", is_public=False)
    factories.finish_all(factories.campaign("hidden", project=secret))
    token = make_token("read", of=secret)

    seen = get(client, "campaigns/hidden/", Authorization=f"Bearer {token}")
    hidden = get(client, "campaigns/hidden/", **{"If-None-Match": "*"})

    assert seen.status_code == 200
    assert hidden.status_code == 404
    assert "Access-Control-Allow-Origin" not in hidden.headers


def test_a_write_is_read_by_no_other_site(client, make_token):
    answer = client.post(
        "/api/v1/campaigns/",
        "{}",
        "application/json",
        headers={"Origin": ORIGIN, "Authorization": f"Bearer {make_token('queue')}"},
    )

    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_page_asked_for_before_is_not_allowed_from_another_site(client):
    """A browser asks before it sends a token; it is told nothing."""
    answer = client.options(
        "/api/v1/campaigns/",
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "authorization",
        },
    )

    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Access-Control-Allow-Headers" not in answer.headers
