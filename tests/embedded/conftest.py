"""Real servers in folders which the unprivileged account can reach, also when we are root."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.binaries import PostgreSQLBinaries, postgresql_binaries
from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchlab.embedded.software import Software, software_for
from tests.migrated import copy_cluster


def open_folder() -> Path:
    # pytest's own temporary folders are closed to other accounts, and TMPDIR may be.
    place = Path(tempfile.gettempdir())
    is_open = all(folder.stat().st_mode & 0o001 for folder in (place, *place.parents))
    folder = Path(
        tempfile.mkdtemp(prefix="benchlab-test-", dir=place if is_open else "/tmp")
    )
    folder.chmod(0o711)
    return folder


@pytest.fixture
def ground() -> Iterator[Path]:
    folder = open_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def account() -> Account:
    return service_account()


@pytest.fixture(scope="session")
def binaries(account: Account, test_folder: Path) -> PostgreSQLBinaries:
    return postgresql_binaries(test_folder, account)


@pytest.fixture(scope="session")
def software(account: Account) -> Iterator[Software]:
    folder = open_folder()
    yield software_for([account], folder)
    shutil.rmtree(folder)


@pytest.fixture
def postgresql(
    binaries: PostgreSQLBinaries, ground: Path
) -> Iterator[EmbeddedPostgreSQL]:
    """A server whose cluster is not its first: initdb takes longer than most tests."""
    copy_cluster(ground / "postgresql")
    with EmbeddedPostgreSQL(binaries.postgresql18, ground / "postgresql") as server:
        yield server
