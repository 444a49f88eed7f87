"""A reader of the API: no login, JSON in return."""

import pytest


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
