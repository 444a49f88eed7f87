"""A Redis that accepts and does not answer: requests end, and what they brought is stored."""

import os
import signal
import time
from contextlib import contextmanager

import pytest
import redis
from django.conf import settings as django_settings

from benchlab.celery import app
from runs import dispatch
from runs.models import Campaign, Run
from runs.services.campaigns import scenarios
from tests import factories
from tests.api.upload_bodies import run

pytestmark = pytest.mark.django_db

DESIGN = {
    "title": "16 and 18",
    "scenario": "fixed-point-read",
    "server": "db1",
    "parameters": {"scale": 1, "duration": 2},
}
# The limit of requests waits for a second, the first message for two.
PATIENCE_S = 4.5


@pytest.fixture(autouse=True)
def own_memory(monkeypatch):
    """No test knows what the one before found of Redis."""
    monkeypatch.setattr(dispatch, "_silent", {"until": 0.0})
    monkeypatch.setattr(dispatch, "_sent", {})


@contextmanager
def silenced():
    """The tests' own Redis, stopped: its kernel still takes connections and what is sent."""
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        process = int(client.info("server")["process_id"])
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.fixture
def server(db):
    scenarios.sync()
    made = factories.server("db1")
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    return made


def test_an_upload_and_a_campaign_are_stored_while_redis_is_silent(
    client, bearer, server, settings, django_capture_on_commit_callbacks
):
    settings.RATE_TOKEN = 1000
    answers, began = [], time.monotonic()
    with silenced():
        for path, body in (("uploads/", run()), ("campaigns/", DESIGN)):
            with django_capture_on_commit_callbacks(execute=True) as callbacks:
                answers.append(
                    client.post(f"/api/v1/{path}", body, "application/json", headers=bearer)
                )
            assert callbacks
    took = time.monotonic() - began

    assert [answer.status_code for answer in answers] == [201, 201]
    assert Run.objects.filter(origin="uploaded").count() == 1
    assert Campaign.objects.get(origin="executed").runs.filter(state="queued").exists()
    assert 2 < took < 2 * PATIENCE_S


def test_a_silent_redis_is_waited_for_once_and_then_used_again(monkeypatch):
    took = []
    with silenced():
        for _ in range(3):
            began = time.monotonic()
            dispatch._send(dispatch.SEND_MAILS)
            took.append(time.monotonic() - began)
    assert took[0] > 1
    assert max(took[1:]) < 0.1

    monkeypatch.setitem(dispatch._silent, "until", 0.0)
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        before = client.llen("control")
        dispatch._send(dispatch.SEND_MAILS)
        assert client.llen("control") > before


def test_only_senders_are_impatient():
    """A worker waits for messages in BRPOP, as long as there are none."""
    with app.connection_for_read() as reading, app.connection_for_write() as writing:
        assert "socket_timeout" not in reading.transport_options
        assert writing.transport_options["socket_timeout"] == 2
