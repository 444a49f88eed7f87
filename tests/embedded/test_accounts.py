"""Who an instance's parts run as, and what a former release's files become."""

import os
from pathlib import Path

import pytest

from benchlab.embedded import accounts
from benchlab.embedded.account import Account, service_account
from benchlab.embedded.accounts import VARIABLES, Accounts, add_account
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import Places

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root changes to another account")


@as_root
def test_root_gives_each_part_an_account_of_its_own() -> None:
    found = Accounts.from_environment({})
    assert len({each.uid for each in found.each} | {0}) == 5
    assert [each.name for each in found.each] == [name for _variable, name in VARIABLES.values()]
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
        ({"BENCHLAB_TARGET_USER": "no-such"}, "no account 'no-such': set BENCHLAB_TARGET_USER"),
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


def test_without_useradd_an_account_is_written_that_cannot_log_in(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\nlast:x:999:999::/:/bin/sh")
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
def test_a_folder_of_nobody_is_taken_over_and_what_is_not_his_stays(ground: Path) -> None:
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
    (ground / "var/artifacts/ab").mkdir(parents=True)  # as root, as the last release made it
    (ground / "var").chmod(0o711)

    places.prepare(found)

    mine = {places.artifacts, places.artifacts / "ab", places.work, ground / "var/static"}
    assert {path.stat().st_uid for path in mine} == {found.web.uid}
    assert {path.stat().st_uid for path in (places.var, places.logs, places.target_keys)} == {0}
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
    assert found.web.can_enter(places.of_the_service)
    assert not places.artifacts.is_relative_to(closed)
    assert (closed / "var/artifacts").resolve() == places.artifacts
    assert found.web.ask(lambda: kept.read_text() == "kept")
