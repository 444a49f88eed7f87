"""Servers over the API."""

import pytest
from django.utils import timezone

from tests import factories

pytestmark = pytest.mark.django_db


def test_a_server_has_hardware_environment_and_installations(get):
    server = factories.server("lab", name="Lab", versions=["18.4", "9.6.24"])
    factories.installation(server, "9.2.24", removed_at=timezone.now())

    (row,) = get("servers/")["results"]

    assert (row["slug"], row["name"], row["state"], row["problem"]) == ("lab", "Lab", "ready", None)
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
    factories.server("new", state="unconfirmed", host_key="", hardware=None, environment=None)

    body = get("servers/new/")

    assert body["host_key_fingerprint"] is None
    assert (body["hardware"], body["environment"], body["installations"]) == (None, None, [])


@pytest.mark.parametrize("number", [1, 5])
def test_the_list_takes_two_queries_however_long(get, number, django_assert_num_queries):
    for _ in range(number):
        factories.server(versions=["16.14", "18.4"])

    with django_assert_num_queries(2):
        assert len(get("servers/")["results"]) == number
