"""The embedded PostgreSQL and Redis."""

import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from kombu.transport import redis as transport
from redis.backoff import NoBackoff
from redis.retry import Retry

from benchlab.celery import mutex
from benchlab.embedded.account import Account
from benchlab.embedded.binaries import PostgreSQLBinaries, redis_server
from benchlab.embedded.descendants import working_in
from benchlab.embedded.errors import StartError
from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchlab.embedded.redis import EmbeddedRedis
from tests.embedded.conftest import open_folder

linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks into /proc"
)


def answer(server: EmbeddedPostgreSQL, query: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT current_user", "benchlab"),
        ("SHOW server_encoding", "UTF8"),
        ("SHOW fsync", "on"),
        ("SELECT datlocale FROM pg_database WHERE datname = 'benchlab'", "C.UTF-8"),
        ("SELECT rolsuper FROM pg_roles WHERE rolname = current_user", False),
        ("SELECT rolcreatedb FROM pg_roles WHERE rolname = current_user", True),
        ("SELECT has_database_privilege('benchlab', 'CREATE')", True),
    ],
)
def test_the_database_is_as_the_site_needs_it(
    shared: EmbeddedPostgreSQL, query: str, expected: object
) -> None:
    assert answer(shared, query) == expected


@pytest.fixture(scope="module")
def shared(binaries: PostgreSQLBinaries) -> Iterator[EmbeddedPostgreSQL]:
    folder = open_folder()
    with EmbeddedPostgreSQL(binaries.postgresql18, folder / "postgresql") as server:
        yield server
    shutil.rmtree(folder)


def test_nobody_gets_in_without_the_password(shared: EmbeddedPostgreSQL) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://benchlab:wrong@127.0.0.1:{shared.port}/benchlab")


def test_the_passwords_are_for_their_owner_only(shared: EmbeddedPostgreSQL) -> None:
    for role in ("benchlab", "postgres"):
        file = shared.folder / f"password-{role}"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not (shared.folder / "password-for-initdb").exists()


@linux
def test_the_servers_account_runs_it(
    shared: EmbeddedPostgreSQL, account: Account
) -> None:
    assert Path(f"/proc/{shared.pid}").stat().st_uid == account.uid != 0


def test_a_second_start_finds_the_data_of_the_first(
    postgresql: EmbeddedPostgreSQL,
) -> None:
    with psycopg.connect(postgresql.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
    postgresql.stop()
    assert not postgresql.running

    again = EmbeddedPostgreSQL(
        postgresql.bindir, postgresql.folder, port=postgresql.port
    )
    with again:
        assert again.url == postgresql.url
        assert answer(again, "SELECT number FROM kept") == 42


@linux
def test_it_starts_again_after_its_postmaster_was_killed(
    postgresql: EmbeddedPostgreSQL,
) -> None:
    assert postgresql.pid is not None
    os.kill(postgresql.pid, signal.SIGKILL)
    while postgresql.running:
        time.sleep(0.01)

    postgresql.restart()

    deadline = time.monotonic() + 20
    while not postgresql.answers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert answer(postgresql, "SELECT 1") == 1


@linux
def test_a_postmaster_without_its_supervisor_is_ended_at_the_next_start(
    postgresql: EmbeddedPostgreSQL,
) -> None:
    orphan = postgresql.pid
    with EmbeddedPostgreSQL(postgresql.bindir, postgresql.folder) as successor:
        assert answer(successor, "SELECT 1") == 1
        assert orphan not in working_in(successor.data)


@linux
def test_a_pid_file_with_the_number_of_a_stranger_does_not_prevent_the_start(
    postgresql: EmbeddedPostgreSQL, account: Account
) -> None:
    pid_file = postgresql.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    postgresql.stop()
    with account.spawn(
        ["sleep", "60"], env=account.environment(Path("/")), cwd=Path("/")
    ) as other:
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        account.own(pid_file)
        try:
            postgresql.start()
            assert answer(postgresql, "SELECT 1") == 1
            assert other.poll() is None
        finally:
            other.kill()


def test_a_taken_port_is_left_to_its_owner(
    binaries: PostgreSQLBinaries, ground: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        taken = owner.getsockname()[1]
        with EmbeddedPostgreSQL(
            binaries.postgresql18, ground / "pg", port=taken
        ) as server:
            assert server.port != taken
            assert answer(server, "SELECT 1") == 1


def test_a_path_longer_than_a_socket_may_have_is_no_obstacle(
    binaries: PostgreSQLBinaries, ground: Path
) -> None:
    folder = ground / ("a" * 60) / ("b" * 60)
    folder.parent.mkdir()
    with EmbeddedPostgreSQL(binaries.postgresql18, folder) as server:
        assert answer(server, "SELECT 1") == 1


def test_a_failed_start_shows_the_log_and_its_place(
    postgresql: EmbeddedPostgreSQL,
) -> None:
    postgresql.stop()
    (postgresql.data / "global" / "pg_control").unlink()

    with pytest.raises(StartError) as caught:
        postgresql.start()

    assert "pg_control" in str(caught.value)
    assert str(postgresql.log) in str(caught.value)


def test_the_data_folder_of_another_postgresql_or_benchlab_is_named_in_one_line(
    postgresql: EmbeddedPostgreSQL,
) -> None:
    postgresql.stop()
    version = postgresql.data / "PG_VERSION"
    right, told = version.read_text(), []
    for change in (
        lambda: version.write_text("16\n"),
        version.unlink,
        lambda: (
            version.write_text(right),
            (postgresql.folder / "password-postgres").write_text("of another one"),
            postgresql._passwords.clear(),
        ),
    ):
        change()
        with pytest.raises(StartError) as caught:
            postgresql.start()
        told.append(str(caught.value))

    assert [line for line in told if "\n" in line or "BENCHLAB_VAR" not in line] == []
    assert "has the data of PostgreSQL 16, and this is PostgreSQL 18" in told[0]
    assert "no data of PostgreSQL" in told[1]
    assert "of another BenchLab" in told[2]


def test_an_interrupted_initdb_leaves_no_half_made_cluster(
    binaries: PostgreSQLBinaries, ground: Path
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EmbeddedPostgreSQL(
            binaries.postgresql18, ground / "pg", pause=interrupt
        ).start()

    assert not (ground / "pg/data").exists()
    with EmbeddedPostgreSQL(binaries.postgresql18, ground / "pg") as server:
        assert answer(server, "SELECT 1") == 1


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
        for command in (
            ("EVAL", "return 1", 0),
            ("EVALSHA", "0" * 40, 0),
            ("SCRIPT", "FLUSH"),
        ):
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


def test_a_taken_port_of_redis_is_left_to_its_owner(
    ground: Path, account: Account
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        taken = owner.getsockname()[1]
        binary = redis_server(ground, account)
        with EmbeddedRedis(binary, ground / "redis", port=taken) as running:
            assert running.port != taken


def test_the_servers_account_runs_redis(
    server: EmbeddedRedis, account: Account
) -> None:
    process = Path(f"/proc/{server.pid}")
    if not process.exists():
        pytest.skip("looks into /proc")
    assert process.stat().st_uid == account.uid != 0
