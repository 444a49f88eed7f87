"""Real worker processes: what they hold, what they cost, and what is reported if silent."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection
from django.utils import timezone
from kombu import Connection
from redis import Redis

from benchlab.celery import app
from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import redis_server
from benchlab.embedded.redis import EmbeddedRedis
from runs import background, celery_messages
from runs.access.services import audit
from runs.campaigns.services import campaigns
from runs.models import Campaign, Lease, Measurement, Run, RunEvent
from runs.operations.selectors import health_checks, readiness
from runs.operations.services import signs as shown
from runs.operations.services import waiting
from runs.queue.services import attempts, execution, leases, supervision, transitions
from runs.servers.services import maintenance, ssh_keys
from runs.shared import duties, signs
from runs.shared.duties import Duty
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories
from tests.migrated import ROOT

pytestmark = pytest.mark.django_db

RUNS, POOL = 12, 6
S = Run.State
PACE = {"HEARTBEAT": 0.2, "HEARTBEAT_TIMEOUT": 2, "SUPERVISE": 0.3, "WATCH": 1}


@contextmanager
def worker(queue: str, folder: Path, **variables: str):
    """A worker process of the test's database and Redis."""
    address = urlsplit(os.environ["DATABASE_URL"])
    environment = {
        **os.environ,
        "DATABASE_URL": urlunsplit(
            address._replace(path=f"/{connection.settings_dict['NAME']}")
        ),
        "BENCHLAB_DATABASE_POOL": str(POOL),
        "PGAPPNAME": f"test-{queue}",
        **{f"BENCHLAB_{name}_SECONDS": str(value) for name, value in PACE.items()},
        **variables,
    }
    argv = ("-m", "celery", "-A", "benchlab", "worker", "--queues", queue)
    argv += ("--pool", "threads", "--concurrency", "40", "--loglevel", "info")
    argv += ("--without-gossip", "--without-mingle")
    argv += ("--hostname", f"{queue}@test")
    with (folder / f"{queue}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *argv], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(20)


def wait_for(what, seconds=20.0):
    """Ask until the answer is true, and give it."""
    until = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.1)
    return answer


def silent() -> set[str]:
    return {each.check for each in readiness.silences()}


def backends(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s",
            [f"test-{name}"],
        )
        return cursor.fetchone()[0]


@pytest.fixture
def dead_servers(db):
    """Servers whose SSH port takes connections and never says a word, a run waiting on each."""
    scenarios.sync()
    key = ssh_keys.default()
    with socket.create_server(("127.0.0.1", 0), backlog=RUNS * 4) as port:
        for number in range(RUNS):
            name = f"dead-{number}"
            where = {
                "address": "127.0.0.1",
                "port": port.getsockname()[1],
                "ssh_key": key,
            }
            server = factories.server(name, **where)
            factories.installation(
                server, "16.14", has_psql=True, pgbench_version_num=160014
            )
            Lease.objects.create(server=server)
            campaigns.create(draft=factories.draft(server))
        yield


@pytest.mark.django_db(transaction=True)
def test_held_runs_keep_few_connections_and_no_supervision_waiting(
    dead_servers, client, settings, monkeypatch, tmp_path
):
    for name, value in PACE.items():
        setattr(settings, f"{name}_SECONDS", value)
    monkeypatch.setattr(health_checks, "SILENT_SECONDS", 7.0)
    monkeypatch.setattr(readiness, "SILENCES_KEPT_SECONDS", 0.0)
    readiness._kept_silences.clear()  # a test before may have asked a moment ago
    signs.redis_client().delete(signs.KEY)
    claimed, lost = (Run.objects.filter(state=each) for each in (S.CLAIMED, S.LOST))
    assert silent() == {"workers", "control"}
    with worker("control", tmp_path) as control, worker("runs", tmp_path) as runs:
        wait_for(lambda: claimed.count() == RUNS, 120)
        assert backends("runs") <= POOL
        time.sleep(2.5)  # longer than a worker without a sign of life is believed in
        assert lost.count() == 0
        assert silent() == set()

        runs.send_signal(signal.SIGSTOP)
        wait_for(lambda: lost.count() > 0)  # so control works, whatever is held
        control.send_signal(signal.SIGSTOP)
        wait_for(lambda: silent() == {"workers", "control"})
        page = client.get("/").content
        assert b"A worker is silent" in page
        assert b"Control is silent" in page
        for process in (control, runs):
            process.send_signal(signal.SIGCONT)
        wait_for(lambda: silent() == set())
        for process in (control, runs):
            process.terminate()
            process.wait(30)
    assert signs.signs() == []


@pytest.fixture
def own_redis():
    """A Redis that no other test needs."""
    account = service_account()
    with tempfile.TemporaryDirectory(prefix="bl-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        binary = redis_server(folder, account)
        with EmbeddedRedis(binary, folder / "redis", account=account) as server:
            yield server


def full(client):
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    return lambda: client.config_set("maxmemory", "256mb")


def read_only(client):
    client.replicaof("127.0.0.1", "1")
    return lambda: client.replicaof("NO", "ONE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("break_it", [full, read_only])
def test_a_worker_outlives_a_redis_that_takes_nothing(own_redis, tmp_path, break_it):
    client = Redis.from_url(own_redis.url)

    def send():
        with Connection(own_redis.url) as broker:
            app.send_task(celery_messages.SEAL, queue="control", connection=broker)

    def is_taken():
        return not client.llen("control")

    with worker("control", tmp_path, REDIS_URL=own_redis.url) as process:
        send()
        wait_for(is_taken)
        process.send_signal(signal.SIGSTOP)
        send()
        mend = break_it(client)
        process.send_signal(signal.SIGCONT)
        time.sleep(3)
        assert process.poll() is None, (tmp_path / "control.log").read_text()[-3000:]
        mend()
        send()
        wait_for(is_taken, 30)
        assert process.poll() is None
    client.close()


def test_a_duty_of_control_that_fails_holds_up_no_other(monkeypatch, caplog):
    done = []

    def fails():
        raise ValueError("one duty")

    rare = [Duty(act, is_rare=True) for act in (fails, lambda: done.append("the next"))]
    monkeypatch.setattr(background, "DUTIES", rare)
    monkeypatch.setattr(duties, "ADDED", [])
    monkeypatch.setattr(background, "_turns", itertools.count())
    monkeypatch.setattr(waiting, "is_any", bool)
    monkeypatch.setattr(background, "connection", SimpleNamespace(close=lambda: None))
    background.watch()
    assert done == ["the next"]
    assert "fails failed; it is tried again" in caplog.text


def test_an_idle_control_asks_one_query_and_takes_up_what_waits(
    monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(background, "_turns", itertools.count(1))
    factories.run()
    assert waiting.is_any(), "runs to add up"
    background.watch()
    with django_assert_num_queries(1):
        background.watch()
    with audit.acting(audit.Actor("hanako", "page")):
        audit.record("server_changed", "server 1", after={"name": "db2"})
    assert waiting.is_any(), "an entry to link"


@pytest.fixture
def server():
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    return server


def queued(server, **fields) -> Campaign:
    factors = {"version": ["16.14"], "clients": [1]}
    return factories.campaign(on=server, factors=factors, repeats=2, **fields)


def next_campaign(server) -> Campaign | None:
    claim = leases.claim(server_id=server.pk, holder="worker")
    return Run.objects.get(pk=claim.run_id).campaign if claim else None


def release(campaign) -> None:
    campaign.runs.filter(state__in=Run.ACTIVE).update(state=S.FINISHED)
    Lease.objects.update(run=None)


def test_higher_priorities_go_first_then_the_older(server):
    low, older, newer, high = (queued(server, priority=each) for each in (-1, 0, 0, 5))
    order = []
    while campaign := next_campaign(server):
        order.append(campaign)
        release(campaign)
    assert order == [high, high, older, older, newer, newer, low, low]


def test_a_run_in_progress_is_not_interrupted_for_a_higher_priority(server):
    running = queued(server)
    assert next_campaign(server) == running
    campaigns.prioritise(campaign=queued(server), priority=100)
    assert next_campaign(server) is None
    assert running.runs.filter(state=S.CLAIMED).count() == 1


def test_a_priority_out_of_range_is_refused(server):
    with pytest.raises(ServiceError) as told:
        campaigns.prioritise(campaign=queued(server), priority=101)
    assert (told.value.code, told.value.field) == ("out_of_range", "priority")


def test_a_paused_campaign_lets_others_pass_until_it_is_resumed(server):
    paused, other = queued(server, priority=9), queued(server)
    campaigns.pause(campaign=paused)
    assert next_campaign(server) == other
    release(other)
    campaigns.resume(campaign=paused)
    assert next_campaign(server) == paused


def test_whoever_resumes_or_cancels_a_campaign_wakes_its_servers(server, monkeypatch):
    woken = []
    campaign = queued(server)
    monkeypatch.setattr("runs.celery_messages.wake", woken.append)
    campaigns.pause(campaign=campaign)
    assert woken == []
    campaigns.resume(campaign=campaign)
    assert woken == [server.pk]
    campaigns.cancel(campaign=campaign)
    assert woken == [server.pk, server.pk]


def test_the_run_in_progress_of_a_paused_campaign_goes_on_even_with_another_worker(
    server,
):
    campaign = queued(server)
    claim = leases.claim(server_id=server.pk, holder="worker")
    campaigns.pause(campaign=campaign)
    assert factories.pulse(claim.run_id, claim.token) == "go_on"
    transitions.transition(
        run_id=claim.run_id, to=S.LOST, code="no_heartbeat", token=claim.token
    )
    assert leases.claim(server_id=server.pk, holder="other").run_id == claim.run_id


def test_what_has_ended_is_not_paused_and_what_goes_on_not_resumed(server):
    campaign = queued(server)
    with pytest.raises(ServiceError, match="not paused"):
        campaigns.resume(campaign=campaign)
    campaigns.cancel(campaign=campaign)
    with pytest.raises(ServiceError) as told:
        campaigns.pause(campaign=campaign)
    assert told.value.code == "campaign_has_ended"


def test_the_supervisor_wakes_nobody_for_what_must_wait(server):
    campaign = queued(server)
    assert supervision._servers_with_work() == {server.pk}
    campaigns.pause(campaign=campaign)
    assert supervision._servers_with_work() == set()
    campaigns.resume(campaign=campaign)
    maintenance.begin(server=server, reason="new disks")
    assert supervision._servers_with_work() == set()


def test_no_run_begins_on_a_server_that_is_maintained(server):
    campaign = queued(server)
    maintenance.begin(server=server, reason=" new disks ")
    server.refresh_from_db()
    assert (server.is_maintained, server.maintenance_reason) == (True, "new disks")
    assert next_campaign(server) is None
    maintenance.end(server=server)
    assert next_campaign(server) == campaign


def test_maintenance_ends_by_itself_at_its_time(server):
    campaign = queued(server)
    maintenance.begin(
        server=server, reason="", until=timezone.now() + timedelta(hours=1)
    )
    assert next_campaign(server) is None
    server.maintenance_until = timezone.now() - timedelta(seconds=1)
    server.save()
    assert not server.is_maintained
    assert next_campaign(server) == campaign


def test_the_run_in_progress_of_a_maintained_server_ends_as_usual(server):
    queued(server)
    claim = leases.claim(server_id=server.pk, holder="worker")
    maintenance.begin(server=server, reason="new disks")
    assert factories.pulse(claim.run_id, claim.token) == "go_on"


def test_maintenance_that_is_over_before_it_begins_is_refused(server):
    with pytest.raises(ServiceError) as told:
        maintenance.begin(
            server=server, reason="", until=timezone.now() - timedelta(minutes=1)
        )
    assert told.value.field == "until"
    with pytest.raises(ServiceError, match="not being maintained"):
        maintenance.end(server=server)


def test_all_unsuccessful_runs_of_a_campaign_are_queued_again(server):
    campaign = queued(server)
    first, second = campaign.runs.order_by("pk")
    Run.objects.filter(pk=first.pk).update(state=S.FINISHED, plan={})
    Run.objects.filter(pk=second.pk).update(state=S.FAILED, plan={})
    campaign = campaigns.retry(campaign=campaign, by="ann")
    states = dict(campaign.runs.values_list("pk", "state"))
    assert states == {first.pk: S.FINISHED, second.pk: S.QUEUED}
    assert campaign.state == Campaign.State.RUNNING
    with pytest.raises(ServiceError) as told:
        campaigns.retry(campaign=campaign)
    assert told.value.code == "nothing_to_retry"


@pytest.mark.parametrize(("most", "state"), [(2, S.QUEUED), (1, S.FAILED)])
def test_an_attempt_that_loses_every_worker_is_begun_anew_up_to_the_limit(
    server, most, state
):
    campaign = queued(server, most_attempts=most)
    claim = leases.claim(server_id=server.pk, holder="worker")
    transitions.transition(
        run_id=claim.run_id, to=S.LOST, code="no_heartbeat", token=claim.token
    )
    RunEvent.objects.bulk_create(
        RunEvent(run_id=claim.run_id, code="taken_over")
        for _ in range(attempts.MOST_TAKEOVERS)
    )
    execution.execute(leases.claim(server_id=server.pk, holder="worker"))
    run = campaign.runs.get(pk=claim.run_id)
    assert run.state == state
    assert run.events.filter(code="lost_for_good").exists()
    server.refresh_from_db()
    assert server.needs_sweep


def test_a_run_that_is_queued_again_has_no_result_of_the_attempt_before(server):
    """A worker that takes it over would take that for the result of the new attempt."""
    run = queued(server).runs.first()
    Run.objects.filter(pk=run.pk).update(state=S.ERRORED, plan={})
    Measurement.objects.create(run=run, metric=factories.metric(), value=1.0)
    attempts.retry(run=run)
    assert not run.measurements.exists()


@pytest.mark.parametrize("sites", ["", "tokyo"])
def test_a_worker_takes_the_place_of_one_silent_alike_wherever_it_was(settings, sites):
    client = signs.redis_client()
    client.delete(signs.KEY, signs.RESTARTS)
    settings.SITES = frozenset(filter(None, [sites]))
    now = signs.redis_time(client)
    names = ["worker|old:1", "worker|older:1", "worker|there:1|tokyo", "control|old:2"]
    client.zadd(signs.KEY, {name: now - 600 - at for at, name in enumerate(names)})
    shown._shown.clear()

    shown.show(kind=shown.WORKER)

    left = {each.process for each in signs.signs()} - {signs.process_name()}
    assert left == {"old:1", "old:2", *({"older:1"} if sites else {"there:1"})}
    shown.take_away(kind=shown.WORKER)
    client.delete(signs.KEY, signs.RESTARTS)


def test_a_process_that_nobody_has_waited_for_is_gone():
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert shown._is_gone(ended.pid)
    assert not shown._is_gone(os.getpid())


def test_a_worker_that_takes_the_place_of_a_dead_one_ends_its_alarm():
    client = signs.redis_client()
    client.delete(signs.KEY, signs.RESTARTS)
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    here, now = socket.gethostname(), signs.redis_time(client)
    names = (
        f"worker|{here}:{gone.pid}",
        "worker|elsewhere:1",
        f"control|{here}:{gone.pid}",
    )
    client.zadd(signs.KEY, dict.fromkeys(names, now - 600))
    shown._shown.clear()

    shown.show(kind=shown.WORKER)

    left = {(each.kind, each.process) for each in signs.signs()}
    mine = ("worker", signs.process_name())
    assert left == {mine, ("worker", "elsewhere:1"), ("control", f"{here}:{gone.pid}")}
    assert signs.counted("restarts") == {"worker": 1}
    shown.take_away(kind=shown.WORKER)
    client.delete(signs.KEY, signs.RESTARTS)
