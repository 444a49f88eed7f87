"""A campaign's treatment over the API."""

import pytest

from runs.models import Campaign
from runs.services.campaigns import scenarios
from tests import factories
from tests.api.campaigns.test_queueing import GIVEN

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(db):
    scenarios.sync()
    made = factories.server("db1")
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    return made


@pytest.fixture
def post(client, bearer):
    def sent(path, body):
        return client.post(f"/api/v1/{path}", body, "application/json", headers=bearer)

    return sent


@pytest.fixture
def permitting(server):
    server.privileges = ["drop_caches"]
    server.save()
    return server


def test_it_is_queued_and_told(post, permitting):
    given = {"cold_cache": True, "server_cpus": "0,1", "profile": True}
    answer = post("campaigns/", GIVEN | {"treatment": given})
    assert answer.status_code == 201, answer.content
    kept = {"cold_cache": True, "server_cpus": "0-1", "profile": True}
    assert answer.json()["treatment"] == kept
    assert Campaign.objects.get().runs.first().plan["treatment"]["cold_cache"] is True


def test_without_it_nothing_is_done(post, server):
    assert post("campaigns/", GIVEN).json()["treatment"] == {}


@pytest.mark.parametrize(
    ("treatment", "pointer", "code"),
    [
        ({"cold_cache": True}, "/treatment/cold_cache", "privilege_missing"),
        ({"server_cpus": "x"}, "/treatment/server_cpus", "not_a_cpu_list"),
        ({"governor": "performance"}, "/treatment/governor", "privilege_missing"),
        ({"governor": "turbo"}, "/treatment/governor", "invalid_choice"),
        ({"hot": True}, "/treatment/hot", "unknown_field"),
    ],
)
def test_what_cannot_be_done_is_refused_at_its_place(post, server, treatment, pointer, code):
    answer = post("campaigns/", GIVEN | {"treatment": treatment})
    assert answer.status_code in {400, 422}, answer.content
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
        (pointer, code)
    ]
    assert not Campaign.objects.exists()
