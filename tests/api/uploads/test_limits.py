"""Uploads at their limits: what is too much, or comes from who may not, leaves nothing behind."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Campaign, Metric, Run, Scenario, Token, Upload
from tests.api.upload_bodies import run

pytestmark = pytest.mark.django_db


def post(client, token, body, path="uploads/"):
    header = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
    data = json.dumps(body)
    return client.generic("POST", f"/api/v1/{path}", data, "application/json", headers=header)


def numbers(count):
    return [
        {"metric": f"m{number}", "value": number, "unit": "", "direction": "higher"}
        for number in range(count)
    ]


def assert_nothing_is_stored():
    for model in (Run, Campaign, Scenario, Metric, Upload):
        assert not model.objects.exists(), model


def test_a_run_with_a_hundred_thousand_measurements_is_refused(client, make_token):
    answer = post(client, make_token(), run(measurements=numbers(100_000)))

    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "too_many")
    assert_nothing_is_stored()


def test_a_batch_with_a_hundred_thousand_measurements_is_stored(client, make_token):
    few = [{"metric": f"m{number}", "value": 1.5} for number in range(100)]
    known = post(client, make_token(), run(measurements=numbers(100)))
    assert known.status_code == 201
    body = {"runs": [run(measurements=few, levels={"clients": 8 + each}) for each in range(1000)]}

    header = {"Authorization": f"Bearer {make_token()}"}
    answer = client.post("/api/v1/uploads/batch/", body, "application/json", headers=header)

    assert answer.status_code == 201, answer.content[:500]
    assert Run.objects.count() == 1001


def test_an_expired_token_stores_nothing(client, make_token):
    token = make_token("upload")
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    answer = post(client, token, run())

    assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")
    assert_nothing_is_stored()


@pytest.mark.parametrize("path", ["uploads/", "uploads/batch/"])
def test_a_token_without_the_scope_stores_nothing(client, make_token, path):
    body = run() if path == "uploads/" else {"runs": [run()]}

    answer = post(client, make_token("read", "queue"), body, path)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert_nothing_is_stored()


def test_a_clock_that_is_two_days_ahead_stores_nothing(client, make_token):
    ahead = (timezone.now() + timedelta(days=2)).isoformat()

    answer = post(client, make_token(), run(started_at=ahead))

    assert answer.json()["errors"][0]["code"] == "in_the_future"
    assert_nothing_is_stored()
