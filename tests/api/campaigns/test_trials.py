"""Trials of own scripts over the API: faults at once, or what a server says of them."""

import pytest

from runs.models import Workload
from runs.services.campaigns import scenarios, trials
from runs.services.errors import Fault
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db

GOOD = {"name": "insert", "text": "\\set aid random(1, 10)\nSELECT :aid;\n", "weight": 3}


@pytest.fixture
def body(db):
    scenarios.sync()
    factories.server("db1", versions=["18.4"])
    return {"server": "db1", "scripts": [GOOD], "variables": {"most": "7"}}


def post(client, body):
    return client.post("/api/v1/trials/", body, content_type="application/json")


def test_what_the_server_says_comes_later_and_nothing_is_stored(
    client, body, log_in_as, monkeypatch
):
    log_in_as("operator")
    tried = []

    def said(**given):
        tried.append(given["content"])
        return [Fault("/scripts/0", "sql_error", "Line 2: no such table")]

    monkeypatch.setattr(trials, "tried", said)
    asked = post(client, body)
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    assert asked.headers["Location"] == asked.json()["url"]
    carry_out()
    done = client.get(asked.json()["url"]).json()
    assert (done["state"], done["problem"]) == ("done", None)
    assert done["answer"] == {"faults": ["insert: Line 2: no such table"]}
    (content,) = tried
    assert (content.scripts[0].weight, content.variables) == (3, {"most": "7"})
    assert not Workload.objects.exists()
    address = asked.json()["url"].replace("/trials/", "/preflight/")
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"scripts": [GOOD | {"text": "SELECT :nothing;"}]}, "/scripts/0"),
        ({"scripts": [GOOD | {"weight": 0}]}, "/scripts/0"),
        ({"scripts": [GOOD | {"text": "\\shell ls\nSELECT 1;"}]}, "/scripts/0"),
        ({"scripts": []}, "/scripts"),
        ({"init_sql": "\\! ls"}, "/init_sql"),
        ({"server": "nowhere"}, "/server"),
        ({"script": "x"}, "/script"),
    ],
)
def test_what_needs_no_server_is_refused_at_once(client, body, log_in_as, changed, pointer):
    log_in_as("operator")
    answer = post(client, body | changed)
    assert answer.status_code == 400
    pointers = [each["pointer"] for each in answer.json()["errors"]]
    assert any(each.startswith(pointer) for each in pointers), answer.json()


def test_others_neither_try_nor_read(client, body, log_in_as, django_user_model):
    assert post(client, body).status_code == 401
    log_in_as("operator")
    address = post(client, body).json()["url"]
    client.force_login(django_user_model.objects.create_superuser("jiro"))
    assert client.get(address).status_code == 404


def test_who_may_only_look_tries_nothing(client, body, log_in_as):
    log_in_as("viewer")
    assert post(client, body).status_code == 403
