"""Real worker processes: what they hold, what they cost, and what is reported if silent."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from runs import background
from runs.models import Lease, Run
from runs.selectors.operations import checks, signs, silences
from runs.services.campaigns import campaigns, scenarios
from runs.services.servers import ssh_keys
from tests import factories

ROOT = Path(__file__).parents[4]
RUNS, POOL = 12, 6
S = Run.State
PACE = {"HEARTBEAT": 0.2, "HEARTBEAT_TIMEOUT": 2, "SUPERVISE": 0.3, "WATCH": 1}


@contextmanager
def worker(queue: str, folder: Path):
    """A worker process of the test's database and Redis."""
    address = urlsplit(os.environ["DATABASE_URL"])
    environment = {
        **os.environ,
        "DATABASE_URL": urlunsplit(address._replace(path=f"/{connection.settings_dict['NAME']}")),
        "BENCHLAB_DATABASE_POOL": str(POOL),
        "PGAPPNAME": f"test-{queue}",
        **{f"BENCHLAB_{name}_SECONDS": str(value) for name, value in PACE.items()},
    }
    argv = ("-m", "celery", "-A", "benchlab", "worker", "--queues", queue, "--pool", "threads")
    argv += ("--concurrency", "40", "--hostname", f"{queue}@test", "--loglevel", "info")
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
    return {each.check for each in silences.silences()}


def backends(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [f"test-{name}"]
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
            where = {"address": "127.0.0.1", "port": port.getsockname()[1], "ssh_key": key}
            server = factories.server(name, **where)
            factories.installation(server, "16.14", has_psql=True, pgbench_version_num=160014)
            Lease.objects.create(server=server)
            campaigns.create(draft=factories.draft(server))
        yield


@pytest.mark.django_db(transaction=True)
def test_held_runs_keep_few_connections_and_no_supervision_waiting(
    dead_servers, client, settings, monkeypatch, tmp_path
):
    for name, value in PACE.items():
        setattr(settings, f"{name}_SECONDS", value)
    monkeypatch.setattr(checks, "SILENT_SECONDS", 7.0)
    monkeypatch.setattr(silences, "KEPT_SECONDS", 0.0)
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


def test_a_duty_of_control_that_fails_holds_up_no_other(monkeypatch, caplog):
    done = []

    def fails():
        raise ValueError("one duty")

    monkeypatch.setattr(background, "DUTIES", (fails, lambda: done.append("the next")))
    monkeypatch.setattr(background, "connection", SimpleNamespace(close=lambda: None))
    background.watch()
    assert done == ["the next"]
    assert "fails failed; it is tried again" in caplog.text
