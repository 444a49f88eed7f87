"""The pages go on while targets flood, stall, lie and close, and so does the worker that asks."""

import http.client
import os
import threading
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs.models import Server, ServerCheck, SSHKey
from runs.services.servers import checks, logins, servers
from tests.api.web_server import WebServer
from tests.factories import server
from tests.ssh.hostile import hostile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

REQUESTS_OF_EACH = 4
BEHAVIOURS = ("stall", "flood", "close", "nan")
SECONDS = 6


def session() -> tuple[str, str]:
    """A session of an administrator, and a token against forgery."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root-of-all", password="x" * 20))
    client.get("/login/")
    client.get("/servers/new/")
    return client.cookies["sessionid"].value, client.cookies["csrftoken"].value


def ask(port: int, method: str, path: str, headers: dict[str, str], seconds: float) -> int:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        asked.request(method, path, headers={"Host": "localhost", **headers})
        return asked.getresponse().status
    except OSError:
        return 0
    finally:
        asked.close()


def carry_out(check_id: object) -> None:
    """What a worker's thread does."""
    checks.carry_out(check_id=str(check_id))
    connection.close()


def resident(pids: list[int]) -> dict[int, int]:
    return {pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in pids}


def test_pages_answer_within_a_second_and_no_process_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(logins, "MOST_SECONDS", 2.0 * SECONDS)
    cookie, token = session()
    headers = {"Cookie": f"sessionid={cookie}; csrftoken={token}", "X-CSRFToken": token}
    started = [hostile(how, f"127.0.0.{2 + number}") for number, how in enumerate(BEHAVIOURS)]
    targets = [each.__enter__() for each in started]
    try:
        servers.public_key()
        key = SSHKey.objects.get()
        slugs = [
            server(
                f"hostile-{how}",
                address=target.address,
                port=target.port,
                host_key=target.host_key,
                ssh_key=key,
            ).slug
            for how, target in zip(BEHAVIOURS, targets, strict=True)
        ]
        with WebServer(tmp_path, threads=4) as web:
            ask(web.port, "GET", "/servers/", headers, 30)
            pids = [*web.workers(), os.getpid()]
            before, slowest, most = resident(pids), 0.0, 0
            slowest_act = 0.0
            for slug in slugs * REQUESTS_OF_EACH:
                began = time.monotonic()
                assert ask(web.port, "POST", f"/servers/{slug}/inspect/", headers, 20) == 302
                slowest_act = max(slowest_act, time.monotonic() - began)
            asked = list(ServerCheck.objects.values_list("pk", flat=True))
            assert len(asked) == len(slugs)  # one a server, however often it is asked for
            workers = [threading.Thread(target=carry_out, args=(each,)) for each in asked]
            for each in workers:
                each.start()
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                began = time.monotonic()
                assert ask(web.port, "GET", "/healthz/", {}, 20) == 200
                slowest = max(slowest, time.monotonic() - began)
                assert web.workers() == pids[:-1]
                now = resident(pids)
                most = max(most, *(now[pid] - before[pid] for pid in now))
                time.sleep(0.1)
            web.process.kill()
        for each in workers:
            each.join()
    finally:
        for each in started:
            each.__exit__(None, None, None)
    print(f"healthz {slowest:.2f} s, act {slowest_act:.2f} s, grown by {most / 2**20:.0f} MB")
    assert slowest < 1
    assert slowest_act < 5  # it waits for no machine: a silent one takes far longer
    assert most < 100 * 2**20
    assert set(ServerCheck.objects.values_list("state", flat=True)) == {"done"}
    assert "ready" not in Server.objects.values_list("state", flat=True)
