import os
import stat
from pathlib import Path

import pytest

from benchlab.embedded import places
from benchlab.embedded.account import Account
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.places import Places

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root changes to another account")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_account_reaches_its_services_and_not_our_files(ground: Path, account: Account) -> None:
    place = Places(ground / "var")
    place.prepare(Accounts(*[account] * 4))
    assert account.can_enter(place.services)
    assert place.services == ground.resolve() / "var/services"
    assert {mode(each) for each in (place.logs, place.artifacts, place.target_keys)} == {0o700}


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
