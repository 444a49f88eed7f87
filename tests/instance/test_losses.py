"""What a campaign survives: Redis emptied, messages doubled, the results database killed."""

import os
import signal
from typing import Any

import pytest
import redis
from celery import Celery

from benchmarks.processes import counted
from runs import celery_messages
from tests.instance.conftest import Instance

pytestmark = [pytest.mark.instance, pytest.mark.timeout(600)]


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
