"""A pytest plugin: starts the real PostgreSQL and Redis that the tests use, before Django reads
its settings, and stops them at the end. Nothing is left behind.

`BENCHLAB_TEST_KEEP=1` keeps the folder with the servers' logs.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from cryptography.fernet import Fernet

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries, redis_server
from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchlab.embedded.processes import Program
from benchlab.embedded.redis import EmbeddedRedis

# Nobody needs a test's data after a crash of the machine, and a commit that waits for the disk is
# most of what a test waits for.
QUICK = (
    *("--fsync=off", "--synchronous_commit=off", "--full_page_writes=off"),
    *("--wal_level=minimal", "--max_wal_senders=0"),
)


class QuickPostgreSQL(EmbeddedPostgreSQL):
    """The embedded PostgreSQL, which does not wait for the disk."""

    def program(self) -> Program:
        """The postmaster, with the settings of a test."""
        program = super().program()
        program.argv = [*program.argv, *QUICK]
        return program


def _open_folder() -> Path:
    """A short-named folder that the servers' account can enter, also when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o711)
    return folder


def _start() -> None:
    folder, account = _open_folder(), service_account()
    binaries = postgresql_binaries(folder, account)
    postgresql = QuickPostgreSQL(binaries.postgresql18, folder / "pg", account=account)
    redis = EmbeddedRedis(redis_server(folder, account), folder / "redis", account=account)

    def stop() -> None:
        redis.stop()
        postgresql.stop()
        if "BENCHLAB_TEST_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    postgresql.start()
    redis.start()
    os.environ.update(
        DATABASE_URL=postgresql.url,
        REDIS_URL=redis.url,
        SECRET_KEY="only for tests",
        BENCHLAB_ENCRYPTION_KEY=Fernet.generate_key().decode(),
        BENCHLAB_VAR=str(folder / "var"),
        BENCHLAB_TEST_FOLDER=str(folder),
    )


_start()
