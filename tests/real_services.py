"""A pytest plugin: starts the real PostgreSQL and Redis that the tests use, before Django reads
its settings, and stops them at the end. Nothing is left behind but a migrated cluster to copy.

PostgreSQL is started once and serves all processes of pytest-xdist, each of which has databases
and a Redis of its own. `BENCHLAB_TEST_KEEP=1` keeps the folder with the servers' logs.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from cryptography.fernet import Fernet

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.binaries import postgresql_binaries, redis_server
from benchlab.embedded.redis import EmbeddedRedis
from tests.migrated import create_database, migrated_postgresql

# Set by the process that starts the others.
FOLDER = "BENCHLAB_TEST_FOLDER"
CLUSTER = "pg"


def socket_folder() -> str:
    """Where the tests themselves find PostgreSQL. Programs that they start have DATABASE_URL."""
    return str(Path(os.environ[FOLDER], CLUSTER, "data"))


def _open_folder() -> Path:
    """A short-named folder that the servers' account can enter, also when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o711)
    if "BENCHLAB_TEST_KEEP" not in os.environ:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _start_postgresql(account: Account) -> Path:
    """Start the PostgreSQL of all processes; the folder that they share."""
    folder = _open_folder()
    bindir = postgresql_binaries(folder, account).postgresql18
    postgresql = migrated_postgresql(bindir, folder / CLUSTER, account)
    atexit.register(postgresql.stop)
    os.environ.update(
        {FOLDER: str(folder)},
        DATABASE_URL=postgresql.url,
        SECRET_KEY="only for tests",
        BENCHLAB_ENCRYPTION_KEY=Fernet.generate_key().decode(),
        # Nothing may hold a connection to a database that is dropped at the end of its test.
        BENCHLAB_DATABASE_POOL="0",
        # Several tests share each processor: no run would count.
        BENCHLAB_LEAVE_OUT_INVALID="0",
    )
    return folder


def _start_redis(account: Account, binaries: Path) -> None:
    """Start this process's Redis, and give it a folder for its artifacts."""
    folder = _open_folder()
    redis = EmbeddedRedis(
        redis_server(binaries, account), folder / "redis", account=account
    )
    atexit.register(redis.stop)
    redis.start()
    os.environ.update(REDIS_URL=redis.url, BENCHLAB_VAR=str(folder / "var"))


def _start() -> None:
    account, worker = service_account(), os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        folder = _start_postgresql(account)
    else:
        folder = Path(os.environ[FOLDER])
        os.environ["DATABASE_URL"] = create_database(
            os.environ["DATABASE_URL"], f"benchlab_{worker}"
        )
    _start_redis(account, folder)


_start()
