"""The embedded instance: what it keeps, where that lies, and the software that it is made of."""

import importlib.metadata
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from benchlab.embedded import places, software
from benchlab.embedded.account import Account
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.embedded_server import free_port
from benchlab.embedded.errors import StartError
from benchlab.embedded.instance import Instance
from benchlab.embedded.options import Options
from benchlab.embedded.places import REPOSITORY, Places, kept_secret
from benchlab.embedded.processes import Interrupts
from benchlab.embedded.state import State, end_leftovers, locked


def start(var: Path, port: int | str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchlab.embedded"],
        env={**os.environ, "BENCHLAB_VAR": str(var), "BENCHLAB_PORT": str(port)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_second_start_says_where_the_first_one_runs(ground: Path) -> None:
    var = ground / "var"
    var.mkdir()
    State(url="http://127.0.0.1:8123", pid=4711).write(var / "instance.json")
    with locked(var / "instance.lock", var / "instance.json"):
        result = start(var, 8124)
    assert result.returncode == 1
    assert "already running at http://127.0.0.1:8123/ (process 4711" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_taken_web_port_is_said_before_anything_starts(ground: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        result = start(ground / "var", owner.getsockname()[1])
    assert result.returncode == 1
    assert "BENCHLAB_PORT=8001" in result.stderr
    assert list((ground / "var/services").iterdir()) == []


def line_of(result: "subprocess.CompletedProcess[str]") -> str:
    """The only line that a refused start says."""
    assert result.returncode == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("BenchLab: ")
    return line


def test_a_wrong_variable_and_a_folder_that_cannot_be_used_are_said_in_one_line(
    ground: Path,
) -> None:
    assert "BENCHLAB_PORT=web is not a port" in line_of(start(ground / "var", "web"))
    file = ground / "file"
    file.touch()
    line = line_of(start(file / "var", free_port()))
    assert str(file) in line
    assert "BENCHLAB_VAR" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root")
def test_a_full_volume_is_said_before_anything_starts(ground: Path) -> None:
    small = ground / "small"
    small.mkdir(mode=0o755)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "none", small], check=True
    )
    try:
        line = line_of(start(small / "var", free_port()))
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
    assert f"are free for {small}/var: make room there" in line


def test_a_backup_that_is_not_there_is_said_before_anything_starts(
    ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHLAB_RESTORE", str(ground / "gone.backup"))
    assert "gone.backup is no file" in line_of(start(ground / "var", free_port()))


def test_the_lock_is_free_after_its_holder(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path / "lock", tmp_path / "state"):
            pass


def test_leftovers_end_and_strangers_with_an_old_number_do_not(tmp_path: Path) -> None:
    with (
        subprocess.Popen(["sleep", "60"]) as ours,
        subprocess.Popen(["sleep", "60"]) as stranger,
    ):
        try:
            state = State()
            state.note_processes({"ours": ours.pid, "stranger": stranger.pid})
            state.started["stranger"] = "another time"
            state.write(tmp_path / "state")
            end_leftovers(State.read(tmp_path / "state"), lambda _seconds: ours.wait(5))
            assert (ours.poll(), stranger.poll()) == (-15, None)
        finally:
            ours.kill()
            stranger.kill()


def test_a_broken_state_file_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("{")
    assert State.read(tmp_path / "state") == State()


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    made = [
        kept_secret(tmp_path / "secret", lambda text=text: text)
        for text in ("one", "two")
    ]
    assert made == ["one", "one"]
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("environment", "url", "bind"),
    [
        ({}, "http://127.0.0.1:8000", "127.0.0.1"),
        ({"BENCHLAB_BIND": "0.0.0.0"}, "http://127.0.0.1:8000", "0.0.0.0"),
        ({"BENCHLAB_BIND": "::1", "BENCHLAB_PORT": "80"}, "http://[::1]:80", "::1"),
        ({"BENCHLAB_BIND": "192.0.2.7"}, "http://192.0.2.7:8000", "192.0.2.7"),
    ],
)
def test_the_address_follows_the_environment(
    environment: dict[str, str], url: str, bind: str
) -> None:
    options = Options.from_environment(environment)
    assert (options.url, options.public_url, options.bind) == (url, url, bind)


def test_of_two_instances_that_begin_at_once_one_has_the_port(ground: Path) -> None:
    """The other one ends, and never says "ready" of the first one's pages."""
    port = str(free_port())
    instances = [
        Instance(
            Options.from_environment(
                {"BENCHLAB_PORT": port, "BENCHLAB_VAR": str(ground / name)}
            ),
            Interrupts(),
        )
        for name in ("first", "second")
    ]
    for instance in instances:
        instance._check_web_port()
    door = instances[0]._open_door()
    with door, pytest.raises(StartError, match=f"port {port} on 127.0.0.1 is in use"):
        instances[1]._open_door()


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(StartError, match="is not a port"):
        Options.from_environment({"BENCHLAB_PORT": port})


def test_hosts_of_the_user_come_beside_the_local_ones() -> None:
    hosts = Options.from_environment(
        {"ALLOWED_HOSTS": "bench.example.org"}
    ).allowed_hosts
    assert {"bench.example.org", "localhost", "127.0.0.1"} <= set(hosts.split(","))


as_root = pytest.mark.skipif(
    os.getuid() != 0, reason="only root changes to another account"
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_account_reaches_its_services_and_not_our_files(
    ground: Path, account: Account
) -> None:
    place = Places(ground / "var")
    place.prepare(Accounts(*[account] * 4))
    assert account.can_enter(place.services)
    assert place.services == ground.resolve() / "var/services"
    assert {
        mode(each) for each in (place.logs, place.artifacts, place.target_keys)
    } == {0o700}


@as_root
def test_services_lie_elsewhere_when_the_account_cannot_enter(
    ground: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "ELSEWHERE", ground)
    closed = ground / "closed"
    closed.mkdir(mode=0o700)

    place = Places(closed / "var")
    place.prepare(Accounts(*[account] * 4))
    again = Places(closed / "var")
    again.prepare(Accounts(*[account] * 4))

    assert mode(closed) == 0o700
    assert account.can_enter(place.services)
    assert again.services == place.services
    assert place.services.parent == ground.resolve()


@as_root
def test_services_of_a_deleted_var_are_set_aside(
    ground: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "ELSEWHERE", ground)
    closed = ground / "closed"
    closed.mkdir(mode=0o700)
    first = Places(closed / "var")
    first.prepare(Accounts(*[account] * 4))
    (first.services / "old").touch()
    (closed / "var/services").unlink()

    first.prepare(Accounts(*[account] * 4))

    assert not (first.services / "old").exists()
    assert (first.services.with_name(first.services.name + ".old") / "old").exists()


# Copies of BenchLab's own programs for accounts that cannot read the originals.


def test_a_program_that_a_package_brings_is_copied_and_a_script_is_not(tmp_path):
    """The generator of TPC-H: without it no run of the scenario block-size loads its data."""
    software._take_programs(Path(sys.prefix) / "bin", tmp_path)
    done = subprocess.run(
        [tmp_path / "tpchgen-cli", "--version"], check=False, capture_output=True
    )
    assert done.returncode == 0
    assert not (tmp_path / "celery").exists()


def test_packages_that_everybody_can_read_are_used_from_their_place(ground):
    (ground / "open/packages").mkdir(parents=True)
    for folder in ("open", "open/packages"):
        (ground / folder).chmod(0o755)  # whatever the umask is
    (ground / "closed").mkdir(mode=0o700)

    def places(*names):
        return software._readable_places([ground / name for name in names])

    assert places("open/packages") == (ground / "open/packages",)
    assert places("open/packages", "closed") == ()
    (ground / "open").chmod(0o700)
    assert places("open/packages") == ()


def test_a_copied_python_finds_packages_in_their_place(ground):
    package = importlib.metadata.distribution("redis")
    place = package.locate_file("")
    python, libraries = software._python(ground, [place], is_in_use=False)
    asked = [python, "-c", "import redis, sys; print(redis.__file__, sys.prefix)"]
    said = subprocess.run(
        asked,
        env={"LD_LIBRARY_PATH": str(libraries)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.split() == [str(place / "redis/__init__.py"), str(python.parents[1])]


@pytest.mark.parametrize(
    ("given", "ends", "refusal"),
    [("--help", 0, ""), ("stop", 2, "script/server takes no arguments: stop\n")],
)
def test_the_script_says_what_it_does_instead_of_starting(given, ends, refusal):
    said = subprocess.run(
        [REPOSITORY / "script" / "server", given],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (ends, refusal)
    assert said.stdout.startswith("Starts a complete BenchLab in the foreground")
    assert "BENCHLAB_PORT" in said.stdout


@pytest.mark.parametrize("text", ["0", "17", "two", "-1", "1.5"])
def test_a_number_of_workers_that_is_none_is_refused(text):
    with pytest.raises(StartError, match="BENCHLAB_WORKERS"):
        Options.from_environment({"BENCHLAB_WORKERS": text})
    assert Options.from_environment({"BENCHLAB_WORKERS": "3"}).workers == 3


@pytest.mark.parametrize(("gigabytes", "workers"), [(2, 1), (3, 2), (64, 2)])
def test_there_are_two_workers_where_the_machine_has_the_memory(
    monkeypatch, gigabytes, workers
):
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gigabytes * 2**30 // 4096}
    monkeypatch.setattr("os.sysconf", sizes.get)
    assert Options.from_environment({}).workers == workers
