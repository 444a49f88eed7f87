"""Binaries appear under their version whole and tried, or not at all."""

import shutil

import pytest

from benchlab.embedded.account import service_account
from benchlab.lab import folders, unpacking
from benchlab.lab.errors import LabError
from tests.lab.conftest import artifact, release_of
from tests.ssh.openssh import short_folder


@pytest.fixture
def lab():
    """A folder that the servers' account can enter."""
    folder = short_folder()
    yield folder / "lab"
    shutil.rmtree(folder)


def published(lab, version, **options):
    content = artifact(version, **options)
    file = lab.parent / f"{version}.jar"
    file.write_bytes(content)
    return release_of(version, content), file


def test_the_servers_account_can_run_what_was_unpacked(lab):
    release, file = published(lab, "9.6.24")
    unpacking.unpack(release, file, lab, service_account())
    assert unpacking.is_there(release, lab, service_account())
    assert folders.bindirs(lab) == [lab / "9.6.24" / "bin"]


def test_a_version_that_tells_another_is_refused_and_leaves_nothing(lab):
    release, file = published(lab, "9.6.24", told="9.6.1")
    with pytest.raises(LabError, match=r"says: postgres \(PostgreSQL\) 9\.6\.1"):
        unpacking.unpack(release, file, lab, service_account())
    assert list(lab.iterdir()) == []


def test_what_is_no_archive_is_told_with_its_file(lab):
    release, file = published(lab, "9.6.24")
    file.write_bytes(b"no jar")
    with pytest.raises(LabError, match="remove it and try again"):
        unpacking.unpack(release, file, lab, service_account())
    assert list(lab.iterdir()) == []


def test_a_version_with_a_missing_program_is_not_there_and_is_unpacked_anew(lab):
    release, file = published(lab, "9.6.24")
    account = service_account()
    unpacking.unpack(release, file, lab, account)
    (lab / "9.6.24" / "bin" / "initdb").unlink()
    assert not unpacking.is_there(release, lab, account)
    unpacking.unpack(release, file, lab, account)
    assert unpacking.is_there(release, lab, account)


def test_a_half_unpacked_version_is_no_installation(lab):
    (lab / ".14.19.123" / "bin").mkdir(parents=True)
    (lab / ".14.19.123" / "bin" / "postgres").write_text("")
    assert folders.bindirs(lab) == []
