"""Queueing a campaign on several servers over the API."""

import pytest

from runs.models import Campaign
from runs.services.campaigns import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

GIVEN = {
    "title": "Two machines",
    "scenario": "fixed-point-read",
    "servers": ["db1", "db2"],
    "levels": {"clients": [1, 2]},
    "parameters": {"scale": 1, "duration": 2},
    "repeats": 2,
}


def machine(slug, versions):
    made = factories.server(slug, name=slug.upper(), address=f"{slug}.example.org")
    for version in versions:
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def servers(db):
    scenarios.sync()
    return machine("db1", ("16.14", "18.4")), machine("db2", ("17.2", "16.14", "18.4"))


@pytest.fixture
def post(client, bearer):
    def sent(path, body=None):
        return client.post(f"/api/v1/{path}", body or {}, "application/json", headers=bearer)

    return sent


def test_a_campaign_is_queued_on_both_with_the_releases_that_both_have(post, servers):
    answer = post("campaigns/", GIVEN)

    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["factors"]["server"] == ["db1", "db2"]
    assert body["factors"]["version"] == ["16.14", "18.4"]
    assert body["runs"] == {"queued": 16}
    assert body["cells"][0]["levels"] == {"version": "16.14", "server": "db1", "clients": 1}


def test_one_server_in_a_list_is_one_server(post, servers):
    body = post("campaigns/", GIVEN | {"servers": ["db1", "db1"]}).json()

    assert "server" not in body["factors"]


def test_versions_are_chosen_for_all(post, servers):
    body = post("campaigns/", GIVEN | {"versions": ["18"]}).json()

    assert body["factors"]["version"] == ["18.4"]


@pytest.mark.parametrize(
    ("changes", "status", "pointer", "code"),
    [
        ({"servers": ["db1", "none"]}, 400, "/servers/1", "does_not_exist"),
        ({"servers": []}, 400, "/servers", "min_length"),
        ({"server": "db1"}, 400, "/servers", "contradicts"),
        ({"versions": ["9.2"]}, 422, "/versions/0", "installation_missing"),
        ({"versions": ["17.2"]}, 422, "/versions", "version_missing"),
    ],
)
def test_what_is_wrong_is_pointed_at(post, servers, changes, status, pointer, code):
    answer = post("campaigns/", GIVEN | changes)

    assert answer.status_code == status, answer.content
    found = [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    assert (pointer, code) in found
    assert not Campaign.objects.exists()


def test_a_server_must_be_given(post, servers):
    given = {name: value for name, value in GIVEN.items() if name != "servers"}
    answer = post("campaigns/", given)

    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/server"]


def test_a_server_that_is_not_ready_is_told_at_the_servers(post, servers):
    servers[1].state = "unreachable"
    servers[1].save()
    answer = post("campaigns/", GIVEN)

    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["pointer"] == "/servers"
    assert "DB2" in fault["message"]


def test_the_verdict_between_servers_says_that_the_hardware_differs(client, post, servers):
    servers[1].hardware = factories.hardware("other")
    servers[1].save()
    slug = post("campaigns/", GIVEN).json()["slug"]
    for run in Campaign.objects.get().runs.select_related("cell"):
        factories.finish(run, tps=1000 + run.repeat)
    sides = f"base=campaign:{slug}~server%3Ddb1&head=campaign:{slug}~server%3Ddb2"

    rows = client.get(f"/api/v1/compare/?{sides}").json()["rows"]
    assert {row["verdict"] for row in rows} == {"same"}
    assert {row["despite"][0]["code"] for row in rows} == {"hardware_differs"}
    assert len(rows) == 4
