"""Where the lab lies: within reach of the account that runs the servers."""

import os
import shutil

import pytest

from benchlab.embedded.account import service_account
from benchlab.embedded.accounts import Accounts
from benchlab.embedded.places import Places
from benchlab.lab import folders
from tests.ssh.openssh import short_folder


@pytest.fixture
def folder():
    made = short_folder()
    yield made
    shutil.rmtree(made)


def test_the_lab_lies_in_var(folder):
    places = Places(folder / "var")
    places.prepare(Accounts(*[service_account()] * 4))
    assert folders.versions_folder(places, service_account()) == folder / "var" / "lab"


def test_where_the_account_cannot_enter_var_the_lab_lies_beside_the_services(folder):
    if os.getuid() != 0:
        pytest.skip("only root runs the servers as another account")
    folder.chmod(0o700)
    account, places = service_account(), Places(folder / "var")
    places.prepare(Accounts(*[account] * 4))
    lab = folders.versions_folder(places, account)
    try:
        assert lab == places.services / "lab"
        assert account.can_enter(lab.parent)
    finally:
        shutil.rmtree(places.services)


def test_downloads_are_kept_in_var_unless_told_otherwise(folder):
    assert folders.downloads_folder(folder, {}) == folder / "lab-downloads"
    elsewhere = folders.downloads_folder(folder, {"BENCHLAB_LAB_DOWNLOADS": "/srv/cache"})
    assert str(elsewhere) == "/srv/cache"
