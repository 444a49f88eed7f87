"""What a campaign survives: Redis emptied, messages doubled, the results database killed."""

import json
import os
import signal
import urllib.request
from typing import Any

import pytest
import redis
from celery import Celery

from benchmarks.processes import counted
from runs import celery_messages
from tests.instance.conftest import Instance, new_token

pytestmark = [pytest.mark.instance, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def variables(instance: Instance) -> dict[str, str]:
    """The instance's own environment."""
    found: dict[str, str] = {}
    for line in (instance.var / "environment").read_text().splitlines():
        name, _is, value = line.partition("=")
        found[name] = value.strip("\"'")
    return found


@pytest.fixture(scope="module")
def token(instance: Instance) -> str:
    return new_token(instance, "losses", "--scopes", "read,queue")


@pytest.fixture
def queue(instance: Instance, token: str, first_campaign: dict[str, Any]):
    """Queue a campaign of PostgreSQL 18 over the API, alone on its server; its slug."""

    def post(title: str, *, duration: int, repeats: int) -> str:
        [server] = instance.get("servers/")["results"]
        body = {
            "title": title,
            "scenario": "pgbench",
            "server": server["slug"],
            "versions": ["18"],
            "levels": {"script": ["select-only"], "scale": [1], "clients": [1]},
            # A load that leaves the processors to other tests.
            "parameters": {"rate": 50, "duration": duration},
            "repeats": repeats,
            # A doubtful run would be measured again, and on a busy machine all are.
            "remeasures": 0,
        }
        request = urllib.request.Request(
            f"{instance.url}/api/v1/campaigns/",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(json.load(answer)["slug"])

    return post


def finished(instance: Instance, slug: str, seconds: float) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        found = dict(instance.get(f"campaigns/{slug}/"))
        return None if found["state"] in {"queued", "running"} else found

    return dict(instance.wait_for(ended, seconds))


def is_measuring(instance: Instance, slug: str) -> bool:
    return bool(instance.get(f"runs/?campaign={slug}&state=measuring")["results"])


def has_finished(instance: Instance, slug: str, runs: int) -> bool:
    return int(instance.get(f"campaigns/{slug}/")["runs"].get("finished", 0)) >= runs


@pytest.mark.slow  # test_faults.py loses Redis and ends the results database as well
def test_a_campaign_goes_on_when_redis_forgets_everything(instance, variables, queue):
    with (
        counted(instance.base) as loads,
        redis.Redis.from_url(variables["REDIS_URL"]) as emptied,
    ):
        slug = queue("Forgotten messages", duration=3, repeats=3)
        for run in range(3):
            instance.wait_for(lambda: is_measuring(instance, slug), 60)
            emptied.flushall()
            # On a quiet machine the next run may be measuring half a second later.
            instance.wait_for(lambda run=run: has_finished(instance, slug, run + 1), 60)
            emptied.flushall()
        assert finished(instance, slug, 120)["runs"] == {"finished": 3}
    instance.assert_each_run_was_measured_once(slug, loads, 3)


def test_doubled_messages_change_nothing(instance, variables, queue):
    with (
        counted(instance.base) as loads,
        Celery(broker=variables["REDIS_URL"]) as sender,
    ):
        slug = queue("Doubled messages", duration=2, repeats=3)
        for server_id in (1, 1, 1, 999_999):
            for _time in range(10):
                sender.send_task(
                    celery_messages.EXECUTE_NEXT, args=[server_id], expires=60
                )
        assert finished(instance, slug, 120)["runs"] == {"finished": 3}
    instance.assert_each_run_was_measured_once(slug, loads, 3)


@pytest.mark.slow
def test_a_run_outlives_the_end_of_the_results_database(instance, queue):
    with counted(instance.base) as loads:
        slug = queue("Database killed", duration=8, repeats=2)
        instance.wait_for(lambda: is_measuring(instance, slug), 90)
        os.kill(instance.pids()["postgresql"], signal.SIGKILL)
        instance.wait_for(lambda: answers(instance), 60)
        assert finished(instance, slug, 180)["runs"] == {"finished": 2}
    instance.assert_each_run_was_measured_once(slug, loads, 2)


def answers(instance: Instance) -> bool:
    try:
        return bool(instance.get("campaigns/"))
    except OSError:
        return False
