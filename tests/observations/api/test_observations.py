"""Observations by the API: made, begun, and what the newest edition says."""

import html

import pytest

from runs.models import Campaign
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
BODY = {
    "title": "Autumn",
    "server": "db1",
    "anchor": "17",
    "designs": [
        {
            "scenario": "fixed-point-read",
            "levels": {"clients": [1, 2]},
            "parameters": {"scale": 1, "duration": 5},
        }
    ],
}


@pytest.fixture
def server():
    scenarios.sync()
    on = {"hardware": factories.hardware(), "environment": factories.environment()}
    made = factories.server("db1", **on)
    for version in ("17.6", "18.4"):
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


def post(client, path, body):
    return client.post(
        f"/api/v1/observations/{path}", body, content_type="application/json"
    )


def test_an_observation_is_made_begun_and_told(admin_client, client, server):
    made = post(admin_client, "", BODY)
    assert made.status_code == 201, made.content
    assert made.json()["newest"] is None
    begun = post(admin_client, "autumn/begin/", {"edition": "2026"}).json()
    (slug,) = begun["newest"]["campaigns"]
    factories.finish_all(Campaign.objects.get(slug=slug), gain={"18.4": 1.1})
    Campaign.objects.get().runs.update(
        hardware=server.hardware, environment=server.environment
    )
    told = client.get("/api/v1/observations/autumn/").json()
    assert told["editions"] == ["2026"]
    assert "18.4" in told["summary"][0]
    assert "faster" in told["summary"][0]
    # Each sentence says of what it is: a pair of versions has one answer for each scenario.
    assert told["summary"][0].startswith("Fixed-point read: ")
    (part,) = told["answer"]["parts"]
    page = client.get("/observations/autumn/").content.decode()
    report = client.get(
        "/observations/autumn/report/?edition=2026&lang=en"
    ).content.decode()
    for sentence in (part["total"], *part["decided"], *part["others"]):
        for text in (page, report):
            assert html.escape(sentence) in text or sentence in text
    (question,) = part["open_questions"] or ["none"]
    assert question == "none" or html.escape(question) in report


@pytest.mark.parametrize(
    "changed",
    [
        {"designs": []},
        {"designs": [{"scenario": "nothing", "levels": {}, "parameters": {}}]},
        {"server": "nothing"},
        {"anchor": "9.3"},
        {"unknown": 1},
    ],
)
def test_what_is_wrong_is_refused(admin_client, client, server, changed):
    answer = post(admin_client, "", BODY | changed)
    assert answer.status_code in {400, 422}, answer.content
    assert client.get("/api/v1/observations/").json()["results"] == []


def test_nobody_may_begin_without_a_right(client, server):
    assert post(client, "", BODY).status_code in {401, 403}
