"""Topics on an instance that has no publications."""

import pytest

from runs.topics.catalogue import TOPICS
from runs.workloads.services import scenarios

pytestmark = pytest.mark.django_db


def test_nobody_has_measured_it(client):
    scenarios.sync()
    page = client.get("/topics/page-checksums/").content.decode()

    assert "<h1>Nobody has measured this yet</h1>" in page
    assert TOPICS[0].sentence not in client.get("/topics/").content.decode()


def test_a_search_finds_a_topic_without_a_sentence(client):
    page = client.get("/search/", {"q": "pgvector"}).content.decode()

    assert 'href="/topics/vectors/"' in page
    assert "250 s" not in page
