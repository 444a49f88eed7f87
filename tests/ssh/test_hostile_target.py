"""What a target can do that means harm: flood, stall, lie and close."""

import asyncio
import ctypes
import http.client
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs.control_characters import neutralised
from runs.execution.errors import ConnectionLost, TargetProblem
from runs.execution.machine import clock_skew, target_facts
from runs.execution.ssh import ssh
from runs.execution.ssh.hosts import Address, Answer, Host
from runs.execution.ssh.sessions import AnswerTooLong
from runs.execution.steps import steps
from runs.models import Server, ServerCheck, SSHKey
from runs.servers.services import logins, server_checks, servers
from tests.api.web_server import WebServer
from tests.factories import server
from tests.ssh.hostile import LIES, hostile

PRIVATE_KEY, _PUBLIC = ssh.generate_private_key()
PAGE_BYTES = 4096


def on(how: str, act: Callable[[Host], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        address = Address(target.address, target.port, "anybody")
        host = await ssh.connect(
            address, host_key=target.host_key, private_key=PRIVATE_KEY
        )
        async with host:
            return await act(host)

    with hostile(how, "127.0.0.2") as target:
        return asyncio.run(asyncio.wait_for(connected(), 60))


def resident() -> int:
    """Without what the allocator has free, and keeps."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def test_a_flood_is_cut_off_and_fills_no_memory():
    async def read(host: Host) -> tuple[list[str], int]:
        codes, most = [], 0
        for _command in range(5):
            with pytest.raises(AnswerTooLong) as caught:
                await host.run(["true"])
            codes.append(caught.value.code)
            most = max(most, resident() - before)
        return codes, most

    before = resident()
    codes, grown = on("flood", read)
    assert codes == ["answer_too_long"] * 5
    assert grown < 100 * 2**20


def test_a_step_is_cut_off_at_what_a_report_may_have():
    async def perform(host: Host) -> int:
        with pytest.raises(AnswerTooLong):
            await steps.perform(host, "/tmp", "flood", ["true"])
        return resident() - before

    before = resident()
    assert on("flood", perform) < 100 * 2**20


def test_silence_ends_with_the_time_that_a_command_has():
    async def wait(host: Host) -> None:
        with pytest.raises(ConnectionLost, match="No answer"):
            await host.run(["true"], timeout_s=0.3)

    on("stall", wait)


def test_a_connection_that_is_closed_in_the_middle_is_lost():
    async def lose(host: Host) -> None:
        with pytest.raises(ConnectionLost):
            await host.run(["true"])

    on("close", lose)


END, NO_ERRORS = b"benchlab-end x\n", b"benchlab-err\nbenchlab-end x\n"
GOOD = b"benchlab-step 0 1.0 2.0 -\n"


def test_a_step_that_lies_is_a_problem_of_the_target_and_no_error_of_ours():
    lies = {lie: (said + END, NO_ERRORS) for lie, said in LIES.items()}
    lies |= {
        "cut off": (GOOD + b"abc", NO_ERRORS),
        "end of another": (GOOD + b"benchlab-end y\n", NO_ERRORS),
        "errors cut off": (GOOD + END, b"benchlab-err\nabc"),
        "no errors": (GOOD + END, END),
    }
    wrong = []
    for lie, said in lies.items():
        try:
            result = steps._read(lie, ("true",), "", Answer(0, *said), "x")
        except TargetProblem as problem:
            wrong += [f"{lie}: {problem.code}"] if problem.code != "no_report" else []
        else:
            wrong.append(f"{lie}: taken for {result}")
    assert wrong == []


def test_a_lie_reaches_the_worker_as_a_problem():
    async def perform(host: Host) -> str:
        with pytest.raises(TargetProblem) as caught:
            await steps.perform(host, "/tmp", "lie", ["true"])
        return caught.value.code

    assert on("nan", perform) == "no_report"


def test_a_probe_that_lies_leaves_facts_unknown():
    said = (
        "== meminfo\nMemTotal: \N{SUPERSCRIPT TWO} kB\n== lscpu\nCPU(s): "
        + "9" * 400
        + "\n"
        "Model name: \x1b[2J\u202eowned\n== no-such\nwhatever\n"
    )
    found = target_facts.read(said)
    assert found.hardware.memory_bytes is None
    assert found.hardware.threads is None
    assert "\x1b" not in found.hardware.cpu_model
    assert "\u202e" not in found.hardware.cpu_model


def test_a_clock_that_is_no_time_is_unknown():
    assert on("binary", clock_skew.measure) is None


def test_characters_that_act_are_written_out():
    said = "a\tb\r\nc\x1b]0;x\x07\x9b2J\u202e\u2066d\0\x7f"
    assert neutralised(said) == (
        "a\tb\nc\\x1b]0;x\\x07\\x9b2J\\u202e\\u2066d\N{SYMBOL FOR NULL}\\x7f"
    )


def test_a_problem_never_carries_them():
    assert TargetProblem("it said \x1b[2J").message == "it said \\x1b[2J"


# The pages go on while targets flood, stall, lie and close, and so does the worker that asks.


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


def ask(
    port: int, method: str, path: str, headers: dict[str, str], seconds: float
) -> int:
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
    server_checks.carry_out(check_id=str(check_id))
    connection.close()


def resident_of_each(pids: list[int]) -> dict[int, int]:
    return {
        pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
        for pid in pids
    }


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_pages_answer_within_a_second_and_no_process_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(logins, "MOST_SECONDS", 2.0 * SECONDS)
    cookie, token = session()
    headers = {"Cookie": f"sessionid={cookie}; csrftoken={token}", "X-CSRFToken": token}
    started = [
        hostile(how, f"127.0.0.{2 + number}") for number, how in enumerate(BEHAVIOURS)
    ]
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
            before, slowest, most = resident_of_each(pids), 0.0, 0
            slowest_act = 0.0
            for slug in slugs * REQUESTS_OF_EACH:
                began = time.monotonic()
                assert (
                    ask(web.port, "POST", f"/servers/{slug}/inspect/", headers, 20)
                    == 302
                )
                slowest_act = max(slowest_act, time.monotonic() - began)
            asked = list(ServerCheck.objects.values_list("pk", flat=True))
            assert len(asked) == len(
                slugs
            )  # one a server, however often it is asked for
            workers = [
                threading.Thread(target=carry_out, args=(each,)) for each in asked
            ]
            for each in workers:
                each.start()
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                began = time.monotonic()
                assert ask(web.port, "GET", "/healthz/", {}, 20) == 200
                slowest = max(slowest, time.monotonic() - began)
                assert web.workers() == pids[:-1]
                now = resident_of_each(pids)
                most = max(most, *(now[pid] - before[pid] for pid in now))
                time.sleep(0.1)
            web.process.kill()
        for each in workers:
            each.join()
    finally:
        for each in started:
            each.__exit__(None, None, None)
    print(
        f"healthz {slowest:.2f} s, act {slowest_act:.2f} s, grown by {most / 2**20:.0f} MB"
    )
    assert slowest < 1
    assert slowest_act < 5  # it waits for no machine: a silent one takes far longer
    assert most < 100 * 2**20
    assert set(ServerCheck.objects.values_list("state", flat=True)) == {"done"}
    assert "ready" not in Server.objects.values_list("state", flat=True)
