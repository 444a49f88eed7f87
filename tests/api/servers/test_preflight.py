"""Preflight over the API: the body of a new campaign, and every problem in the answer."""

import pytest

from runs.models import Campaign
from runs.services.campaigns import scenarios
from runs.services.servers import ssh_keys
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db


@pytest.fixture
def body(db):
    scenarios.sync()
    server = factories.server(
        "db1", address="127.0.0.1", port=1, ssh_key=ssh_keys.default(), free_bytes=10**12
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
