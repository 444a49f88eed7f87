"""Servers over the API."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from runs.access.services import projects
from runs.archive import services
from runs.models import Campaign, HardwareProfile
from runs.servers.selectors import hardware
from runs.servers.services import ssh_keys
from runs.workloads.services import scenarios
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db


def test_a_server_has_hardware_environment_and_installations(get):
    server = factories.server("lab", name="Lab", versions=["18.4", "9.6.24"])
    factories.installation(server, "9.2.24", removed_at=timezone.now())

    (row,) = get("servers/")["results"]

    assert (row["slug"], row["name"], row["state"], row["problem"]) == (
        "lab",
        "Lab",
        "ready",
        None,
    )
    assert row["hardware"]["cpu_model"] == "EPYC"
    assert row["hardware"]["sockets"] is None
    assert row["environment"]["os_name"] == "Debian 13"
    assert [(i["version"], i["major"]) for i in row["installations"]] == [
        ("9.6.24", "9.6"),
        ("18.4", "18"),
    ]


def test_the_fingerprint_of_the_host_key_is_told_as_ssh_prints_it(get):
    factories.server("lab")

    fingerprint = get("servers/lab/")["host_key_fingerprint"]

    assert fingerprint == "SHA256:ngNXkM/zshJi/uVByx9gEAkRFJf9XHz/XeQHHQL8PA8"


def test_neither_address_nor_keys_are_told(client):
    factories.server("lab", address="192.0.2.77", username="secretive")

    text = client.get("/api/v1/servers/").content.decode()

    assert "lab" in text
    for secret in ("192.0.2.77", "secretive", "AAAA", "private", "/srv/benchlab"):
        assert secret not in text


def test_a_problem_comes_with_its_remedy(get):
    factories.server(
        "down",
        state="unreachable",
        problem_code="host_unreachable",
        problem="Nobody answers.\nReally.",
        problem_remedy="Check the port.",
    )

    assert get("servers/down/")["problem"] == {
        "code": "host_unreachable",
        "message": "Nobody answers.\nReally.",
        "remedy": "Check the port.",
    }


def test_a_server_that_was_not_confirmed_yet_has_nothing_but_a_name(get):
    factories.server(
        "new", state="unconfirmed", host_key="", hardware=None, environment=None
    )

    body = get("servers/new/")

    assert body["host_key_fingerprint"] is None
    assert (body["hardware"], body["environment"], body["installations"]) == (
        None,
        None,
        [],
    )


@pytest.mark.parametrize("number", [1, 5])
def test_the_list_takes_two_queries_however_long(
    get, number, django_assert_num_queries
):
    for _ in range(number):
        factories.server(versions=["16.14", "18.4"])

    with django_assert_num_queries(2):
        assert len(get("servers/")["results"]) == number


SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"


def measured(slug="lab", *, on, **fields):
    """A finished campaign of six runs on that hardware."""
    campaign = factories.finish_all(factories.campaign(slug, repeats=1, **fields))
    campaign.runs.update(hardware=on)
    return campaign


def test_a_profile_says_what_it_is_and_what_was_measured_on_it(get):
    server = factories.server("lab")
    measured(on=server.hardware)
    factories.run(hardware=server.hardware)  # still queued

    (row,) = get("hardware/")["results"]

    address = row.pop("url")
    assert get(address.partition("/api/v1/")[2]) == {**row, "url": address}
    assert row == {
        "id": server.hardware_id,
        "fingerprint": "two-core",
        "slug": "",
        "name": "two-core",
        "cpu_model": "EPYC",
        "sockets": None,
        "cores": 2,
        "threads": None,
        "memory_bytes": 8 * 2**30,
        "virtualization": "",
        "facts": {},
        "servers": ["lab"],
        "runs": 6,
        "published": 0,
    }


def test_a_publications_machine_is_told_with_its_campaigns(get):
    services.load(files=[SAMPLE])

    rows = get("hardware/", source="harbour-2020")["results"]

    assert {row["slug"] for row in rows} == set(
        HardwareProfile.objects.values_list("slug", flat=True)
    )
    assert max(row["published"] for row in rows) > 1
    assert {row["runs"] for row in rows} == {0}


def test_profiles_are_filtered(get):
    factories.server("a")
    other = factories.hardware("other")
    HardwareProfile.objects.filter(pk=other.pk).update(
        cpu_model="Xeon Gold", virtualization="KVM"
    )
    factories.server("b", hardware=other)

    def names(**query):
        return [row["name"] for row in get("hardware/", **query)["results"]]

    assert names() == ["other", "two-core"]
    assert names(cpu_model="xeon") == ["other"]
    assert names(virtualization="kvm") == ["other"]
    assert names(server="a") == ["two-core"]
    assert names(page_size=1) == ["other"]


def test_what_only_a_private_project_measured_on_is_its_own(client, get, make_token):
    project = projects.create(slug="secret", is_public=False)
    own = factories.hardware("own")
    measured("hidden", on=own, project=project)
    shared = factories.server("lab").hardware
    measured("hidden-too", on=shared, project=project)

    (row,) = get("hardware/")["results"]

    assert (row["name"], row["runs"]) == ("two-core", 0)
    get(f"hardware/{own.pk}/", expect=404)
    token = {"Authorization": f"Bearer {make_token('read', of=project)}"}
    rows = client.get("/api/v1/hardware/", headers=token).json()["results"]
    assert {row["name"]: row["runs"] for row in rows} == {"own": 6, "two-core": 6}
    project.members.add(User.objects.create_user("ichiro"))
    client.force_login(User.objects.get(username="ichiro"))
    assert client.get(f"/api/v1/hardware/{own.pk}/").status_code == 200


def test_no_more_runs_are_counted_than_a_list_can_bear(get, monkeypatch):
    measured(on=factories.server().hardware)
    monkeypatch.setattr(hardware, "MOST_COUNTED", 5)

    (row,) = get("hardware/")["results"]

    assert row["runs"] == 5


def test_runs_and_servers_are_found_by_the_hardware(get):
    server = factories.server("a")
    factories.server("b", hardware=factories.hardware("other"))
    measured("there", on=server.hardware)
    measured("elsewhere", on=factories.hardware("other"))

    assert [row["slug"] for row in get("servers/", hardware="two-core")["results"]] == [
        "a"
    ]
    rows = get("runs/", hardware="two-core")["results"]
    assert {row["campaign"] for row in rows} == {"there"}
    assert len(rows) == 6


@pytest.mark.parametrize("number", [1, 5])
def test_the_list_takes_four_queries_however_long(
    get, number, django_assert_num_queries
):
    for each in range(number):
        measured(
            f"c{each}",
            on=factories.server(hardware=factories.hardware(f"h{each}")).hardware,
        )

    with django_assert_num_queries(4):
        assert len(get("hardware/")["results"]) == number


@pytest.fixture
def body(db):
    scenarios.sync()
    server = factories.server(
        "db1",
        address="127.0.0.1",
        port=1,
        ssh_key=ssh_keys.default(),
        free_bytes=10**12,
    )
    number = factories.version_num("18.4")
    factories.installation(server, "18.4", has_psql=True, pgbench_version_num=number)
    return {"title": "x", "scenario": "fixed-point-read", "server": "db1"}


def post(client, body):
    return client.post("/api/v1/preflight/", body, content_type="application/json")


def test_a_stranger_may_not_ask(client, body):
    assert post(client, body).status_code == 401


def test_what_is_known_and_what_the_machine_says_come_together(client, body, log_in_as):
    log_in_as("operator")
    asked = post(client, body | {"levels": {"clients": [0]}})
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    assert asked.headers["Location"] == asked.json()["url"]
    assert client.get(asked.json()["url"]).headers["Retry-After"] == "1"
    carry_out()
    done = client.get(asked.json()["url"])
    assert (done.json()["state"], done.json()["problem"]) == ("done", None)
    assert "Retry-After" not in done.headers
    told = done.json()["answer"]
    assert (told["clear"], told["answered"]) == (False, False)
    found = {each["code"]: each for each in told["findings"]}
    assert {"out_of_range", "host_unreachable"} <= set(found)
    assert found["host_unreachable"]["server"] == "db1"
    assert found["host_unreachable"]["level"] == "error"
    assert found["host_unreachable"]["remedy"]
    assert not Campaign.objects.exists()


def test_a_body_that_is_none_is_refused(client, body, log_in_as):
    log_in_as("operator")
    assert post(client, {"nonsense": 1}).status_code == 400


def test_nobody_else_reads_it(client, body, log_in_as, django_user_model):
    log_in_as("operator")
    address = post(client, body).json()["url"]
    assert client.get(address).status_code == 200
    client.force_login(django_user_model.objects.create_superuser("jiro"))
    assert client.get(address).status_code == 404
