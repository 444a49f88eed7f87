"""A reader of the API: no login, JSON in return."""

import pytest

from runs.access.services import projects, tokens


@pytest.fixture
def get(client):
    """GET an address below /api/v1/ and give its body, after a look at the status."""

    def fetch(path, expect=200, **query):
        response = client.get(f"/api/v1/{path}", query)
        assert response.status_code == expect, response.content
        media_type = "application/json" if expect == 200 else "application/problem+json"
        assert response.headers["Content-Type"] == media_type
        return response.json()

    return fetch


@pytest.fixture(autouse=True)
def no_rate_limit(settings):
    """All tests together ask more often than anybody may; those of the limit set one."""
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0


@pytest.fixture
def project(db):
    """The public project."""
    return projects.default()


@pytest.fixture
def make_token(project):
    """A function that makes a token and gives its text."""

    def made(*scopes, of=None, **fields):
        scopes = scopes or ("read", "upload", "queue", "server")
        return tokens.create(name="test", scopes=scopes, project=of or project, **fields).text

    return made


@pytest.fixture
def bearer(make_token):
    """The header of a token with read, upload, queue and server."""
    return {"Authorization": f"Bearer {make_token()}"}


@pytest.fixture
def log_in_as(client, project, django_user_model):
    """A function that lets the client log in as somebody of that role in the public project."""

    def logged_in(role):
        user = django_user_model.objects.create_user("ichiro")
        project.memberships.create(user=user, role=role)
        client.force_login(user)

    return logged_in
