"""The page of workers: which one it is, where, of which release, and why it takes nothing."""

from datetime import timedelta

import pytest
from django.utils import timezone

from benchlab import release
from runs.models import WorkerHost
from runs.operations.services import signs as own_signs
from runs.shared import signs, worker_health

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_workers(monkeypatch):
    """As Redis and this process were, afterwards."""
    monkeypatch.setitem(worker_health._state, "until", 0.0)
    # Another test may have shown a sign of life a moment ago, which is enough for five seconds.
    monkeypatch.setattr(own_signs, "_shown", {})
    client = signs.redis_client()
    keys = (signs.KEY, signs.RELEASES, signs.PUT_BACK, worker_health.KEY)
    client.delete(*keys)
    yield
    client.delete(*keys)


def show(settings, host, *, of=""):
    """A worker on a host shows that it is alive."""
    settings.HOST_NAME = host
    client = signs.redis_client()
    now = signs.redis_time(client)
    client.zadd(signs.KEY, {f"worker|{host}:7": now})
    client.hset(signs.RELEASES, f"{host}:7", of or release.own_release())


def test_the_page_names_each_worker_and_what_is_wrong_with_it(
    admin_client, settings, django_assert_max_num_queries
):
    show(settings, "first")
    show(settings, "second", of="0000.0001.0000+0001")
    worker_health.note("Permission denied: /root/.ssh")
    signs.redis_client().hset(signs.PUT_BACK, '["second:7", "rack-1"]', 3)
    WorkerHost.objects.create(
        prefix="abc", secret_hash="x", expires_at=timezone.now() + timedelta(hours=1)
    )
    with django_assert_max_num_queries(20):
        page = admin_client.get("/workers/").content.decode()
    second, first = page.index("second:7"), page.index("first:7")
    assert second < first
    row = page[second:first]
    assert "takes no runs" in row
    assert "Permission denied: /root/.ssh" in row
    assert "0.1.0 (0001)" in row
    assert "another release" in row
    assert "rack-1: 3" in row
    assert "another release" not in page[first:]
    assert "token not used yet" in page


def test_visitors_do_not_see_which_hosts_there_are(client):
    assert client.get("/workers/").status_code == 302


def test_a_worker_that_ends_leaves_nothing_of_it(settings):
    settings.HOST_NAME = "first"
    own_signs.show(kind=own_signs.WORKER)
    assert signs.process_name() in signs.releases_of_processes()
    worker_health.count_put_back("rack-1")
    assert signs.put_back() == [(signs.process_name(), "rack-1", 1)]
    own_signs.take_away(kind=own_signs.WORKER)
    assert signs.releases_of_processes() == {}
