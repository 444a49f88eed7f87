import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kombu.transport import redis as transport
from redis.backoff import NoBackoff
from redis.retry import Retry

from benchlab.celery import mutex
from benchlab.embedded.account import Account
from benchlab.embedded.binaries import redis_server
from benchlab.embedded.redis import EmbeddedRedis


@pytest.fixture
def server(ground: Path, account: Account) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(redis_server(ground, account), ground / "redis") as running:
        yield running


def test_it_answers_with_its_password(server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()


def test_it_refuses_without_its_password(server: EmbeddedRedis) -> None:
    with (
        redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


def test_it_runs_no_scripts(server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(server.url) as client:
        for command in (("EVAL", "return 1", 0), ("EVALSHA", "0" * 40, 0), ("SCRIPT", "FLUSH")):
            with pytest.raises(redis.ResponseError, match="unknown command"):
                client.execute_command(*command)


def test_the_lock_of_messages_needs_no_scripts(server: EmbeddedRedis) -> None:
    assert transport.Mutex is mutex
    with redis.Redis.from_url(server.url) as client:
        with (
            transport.Mutex(client, "lock", 60),
            pytest.raises(transport.MutexHeld),
            transport.Mutex(client, "lock", 60),
        ):
            raise AssertionError("two have it")
        assert client.get("lock") is None
        with transport.Mutex(client, "lock", 60):
            client.set("lock", "of somebody else, as it had expired")
        assert client.get("lock") is not None


def test_the_password_is_in_no_command_line(server: EmbeddedRedis) -> None:
    command_line = Path(f"/proc/{server.pid}/cmdline")
    if not command_line.exists():
        pytest.skip("looks into /proc")
    password = (server.folder / "password").read_text().strip()
    assert password.encode() not in command_line.read_bytes()


def test_a_second_start_finds_the_messages_of_the_first(server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.rpush("queue", "message")
    server.stop()

    with (
        EmbeddedRedis(server.binary, server.folder, port=server.port) as again,
        redis.Redis.from_url(again.url) as client,
    ):
        assert again.url == server.url
        assert client.lrange("queue", 0, -1) == [b"message"]


def test_it_starts_again_at_its_port_after_it_was_killed(server: EmbeddedRedis) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    while server.running:
        time.sleep(0.01)

    server.restart()

    deadline = time.monotonic() + 10
    while not server.answers() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.answers()


def test_a_taken_port_is_left_to_its_owner(ground: Path, account: Account) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        taken = owner.getsockname()[1]
        binary = redis_server(ground, account)
        with EmbeddedRedis(binary, ground / "redis", port=taken) as running:
            assert running.port != taken


def test_the_servers_account_runs_it(server: EmbeddedRedis, account: Account) -> None:
    process = Path(f"/proc/{server.pid}")
    if not process.exists():
        pytest.skip("looks into /proc")
    assert process.stat().st_uid == account.uid != 0
