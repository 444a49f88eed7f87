"""What an attacker tried who could run a program on this machine as BenchLab's target."""

import json
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from benchlab.embedded.account import Account
from benchlab.embedded.accounts import Accounts
from tests.instance.conftest import REPOSITORY, Instance

pytestmark = [
    pytest.mark.instance,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.getuid() != 0, reason="only root starts accounts apart"),
]

# Whatever the account reaches of the files on standard input and of the processes in its arguments.
ATTACK = r"""
while IFS= read -r path; do
    [ -w "$path" ] && [ ! -L "$path" ] && echo "write $path"
    [ -f "$path" ] && [ -r "$path" ] && echo "read $path"
    [ -d "$path" ] && [ -r "$path" ] && echo "list $path"
done
for pid in "$@"; do
    kill -0 "$pid" 2>/dev/null && echo "signal $pid"
    for secret in environ mem maps stack; do
        head -c 1 "/proc/$pid/$secret" >/dev/null 2>&1 && echo "read /proc/$pid/$secret"
    done
    for secret in fd cwd/ root/ map_files; do
        ls "/proc/$pid/$secret" >/dev/null 2>&1 && echo "list /proc/$pid/$secret"
    done
done
echo "tried as $(id -un)"
"""

# Nothing of these is a secret, and nobody but root writes there.
PUBLIC = ("services/software/", "services/binaries/", "lab/")
PUBLIC_FILES = ("services/postgresql/pg_hba.conf", "services/target/authorized_keys")

# As the instance itself logs in: with its own key, to its own server.
THROUGH_SSH = """
import asyncio, sys, django
django.setup()
from runs.models import Server
from runs.servers.services import logins
way = logins.way_to(Server.objects.get(slug="this-machine"))
async def attack():
    async with await logins.connect_along(way) as host:
        answer = await host.run(sys.argv[1:], stdin=sys.stdin.buffer.read())
        sys.stdout.buffer.write(answer.stdout)
asyncio.run(attack())
"""


@pytest.fixture(scope="module")
def target() -> Account:
    return Accounts.from_environment({}).target


def files_of(instance: Instance) -> Iterator[Path]:
    """Every file and folder of the instance, but for those that are the target's own."""
    services = (instance.var / "services").resolve()
    own = {services / "target" / name for name in ("home", "base", "listening")}
    yield instance.var
    for start in (instance.var, services):
        for parent, folders, files in os.walk(start):
            folders[:] = [name for name in folders if Path(parent, name) not in own]
            if Path(parent).name.startswith(
                "python-"
            ):  # thousands of files, all made alike
                folders.clear()
            yield from (Path(parent, name) for name in (*folders, *files))


def processes_of(instance: Instance) -> dict[int, int]:
    """The account of every process of the instance, but for those below its target."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,uid="], capture_output=True, text=True, check=True
    )
    rows = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = {json.loads((instance.var / "instance.json").read_text())["pid"]}
    pids = instance.pids()
    target = pids.pop("target")
    found |= set(pids.values())
    while (
        more := {pid for pid, parent, _uid in rows if parent in found - {target}}
        - found
    ):
        found |= more - {target}
        if more == {target}:
            break
    return {pid: uid for pid, _parent, uid in rows if pid in found}


def test_nothing_of_the_instance_runs_as_root_but_who_starts_it(
    instance: Instance,
) -> None:
    names = {
        name: pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name
        for name, pid in instance.pids().items()
    }
    assert names == {
        "postgresql": "benchlab-postgresql",
        "redis": "benchlab-redis",
        "target": "benchlab-target",
        "loader": "benchlab-web",
        "web": "benchlab-web",
        "worker": "benchlab-web",
        "worker-2": "benchlab-web",
        "control": "benchlab-web",
    }
    roots = [pid for pid, uid in processes_of(instance).items() if uid == 0]
    assert roots == [json.loads((instance.var / "instance.json").read_text())["pid"]]


def attacked(instance: Instance, said: str) -> list[str]:
    """What it reached that it must not."""
    *reached, end = said.splitlines()
    assert end == "tried as benchlab-target"
    var = f"{instance.var.resolve()}/"
    services = f"{(instance.var / 'services').resolve()}/"
    allowed = []
    for line in reached:
        how, _blank, path = line.partition(" ")
        inside = path.replace(services, "services/").replace(var, "")
        public = (
            inside.startswith(PUBLIC)
            or f"{inside}/" in PUBLIC
            or inside in PUBLIC_FILES
        )
        if how in {"read", "list"} and public:
            allowed.append(line)
    return [line for line in reached if line not in allowed]


def test_the_targets_account_reaches_no_file_and_no_process(
    instance: Instance, target: Account
) -> None:
    paths = "".join(f"{path}\n" for path in files_of(instance))
    with target.spawn(
        ["/bin/sh", "-c", ATTACK, "attack", *map(str, processes_of(instance))],
        env=target.environment(Path("/")),
        cwd=Path("/"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        said = process.communicate(paths.encode())[0].decode()
    assert attacked(instance, said) == []


def test_neither_does_a_command_through_benchlabs_own_key(instance: Instance) -> None:
    paths = "".join(f"{path}\n" for path in files_of(instance))
    command = ["/bin/sh", "-c", ATTACK, "attack", *map(str, processes_of(instance))]
    lines = (instance.var / "environment").read_text().splitlines()
    done = subprocess.run(
        [sys.executable, "-c", THROUGH_SSH, *command],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "benchlab.settings",
            **dict(line.split("=", 1) for line in lines),
        },
        input=paths,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert attacked(instance, done.stdout) == []


def listening(instance: Instance) -> set[tuple[str, int]]:
    """Where the instance's processes listen."""
    pids = {*processes_of(instance), instance.pids()["target"]}
    found = set()
    listed = subprocess.run(
        ["ss", "-Hltnp"], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        if any(f"pid={pid}," in line for pid in pids):
            address, _colon, port = line.split()[3].rpartition(":")
            found.add((address, int(port)))
    return found


def test_the_instance_listens_where_it_says_and_on_this_machine_only(
    instance: Instance,
) -> None:
    ports = json.loads((instance.var / "instance.json").read_text())["ports"]
    expected = {("127.0.0.1", port) for port in (*ports.values(), instance.port)}
    assert listening(instance) == expected
    unix = subprocess.run(
        ["ss", "-Hlxp"], capture_output=True, text=True, check=True
    ).stdout
    pids = processes_of(instance)
    assert [
        line for line in unix.splitlines() if any(f"pid={pid}," in line for pid in pids)
    ] == []


@pytest.mark.parametrize("role", ["postgres", "benchlab"])
def test_the_results_database_lets_no_role_in_without_its_password(
    instance: Instance, role: str
) -> None:
    port = json.loads((instance.var / "instance.json").read_text())["ports"][
        "postgresql"
    ]
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(host="127.0.0.1", port=port, user=role, dbname="benchlab")


def test_redis_does_nothing_without_its_password(instance: Instance) -> None:
    port = json.loads((instance.var / "instance.json").read_text())["ports"]["redis"]
    for command, answer in (
        (b"CONFIG GET dir", b"-NOAUTH"),
        (b"KEYS *", b"-NOAUTH"),
        (b"FLUSHALL", b"-NOAUTH"),
        (b"EVAL 'return 1' 0", b"-ERR unknown command"),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(command + b"\r\n")
            assert connection.recv(100).startswith(answer)
