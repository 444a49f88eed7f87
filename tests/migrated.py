"""A PostgreSQL cluster whose databases are migrated already, which tests copy theirs from.

Migrating takes some seconds of a processor, more than most selections of tests; so the cluster is
kept below var/ and copied at the next start, until a migration or a requirement changes.

"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from cryptography.fernet import Fernet
from psycopg import sql

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.postgresql import ACCESS_RULES, EmbeddedPostgreSQL
from benchlab.embedded.processes import Program

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "var" / "tests"
TEMPLATE = "migrated"
# Nobody needs a test's data after a crash of the machine, and waiting for the disk at each commit
# is most of what a test waits for. Several processes with threads need more connections.
QUICK = (
    "--fsync=off",
    "--synchronous_commit=off",
    "--full_page_writes=off",
    "--wal_level=minimal",
    "--max_wal_senders=0",
    "--max_connections=300",
    # It finds tables that a test has emptied. Statements planned for these read whole tables later.
    "--autovacuum=off",
)


class QuickPostgreSQL(EmbeddedPostgreSQL):
    """The embedded PostgreSQL, which does not wait for the disk.

    It also listens on a socket in its data folder, which others than its account cannot enter. Each
    statement then takes the kernel less than by TCP, and a connection needs no password.
    """

    access_rules = f"{ACCESS_RULES}local all all trust\n"

    def program(self) -> Program:
        """The postmaster, with the settings of a test."""
        program = super().program()
        program.argv = [*program.argv, *QUICK, f"--unix_socket_directories={self.data}"]
        return program

    def _ensure_database(self) -> bool:
        """Let its role switch off triggers and foreign keys where a test's rows are deleted."""
        is_there = super()._ensure_database()
        with self._connect() as connection:
            connection.execute(
                "GRANT SET ON PARAMETER session_replication_role TO benchlab"
            )
        return is_there


@contextmanager
def own_postgresql() -> Iterator[QuickPostgreSQL]:
    """A running one of the caller's own, without anything in its database; gone afterwards."""
    account = service_account()
    with tempfile.TemporaryDirectory(prefix="bl-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        bindir = postgresql_binaries(folder, account).postgresql18
        with QuickPostgreSQL(bindir, folder / "pg", account=account) as postgresql:
            yield postgresql


def migrated_postgresql(
    bindir: Path, folder: Path, account: Account
) -> EmbeddedPostgreSQL:
    """A running PostgreSQL in `folder`, with the database TEMPLATE, to which nobody connects.

    Its own database is migrated too, as that of an instance.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = KEPT / _digest(account)
        if not kept.exists():
            _make(kept, bindir, folder, account)
        _copy(kept, folder)
    postgresql = QuickPostgreSQL(bindir, folder, account=account)
    postgresql.start()
    return postgresql


def copy_cluster(folder: Path) -> None:
    """A copy for an instance, which finds it as if it had been started before.

    That tests run says that the cluster is there.
    """
    _copy(KEPT / _digest(service_account()), folder)
    for log in folder.glob("*.log"):
        log.unlink()


def _digest(account: Account) -> str:
    """Of everything that decides what the migrated cluster looks like."""
    digest = hashlib.sha256(str(account.uid).encode())
    migrations = sorted((ROOT / "runs" / "migrations").glob("*.py"))
    for path in (ROOT / "requirements.txt", Path(__file__), *migrations):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _make(kept: Path, bindir: Path, folder: Path, account: Account) -> None:
    """Initialise and migrate in `folder`, and keep the result as `kept` alone."""
    postgresql = QuickPostgreSQL(bindir, folder, account=account)
    postgresql.start()
    try:
        _migrate(postgresql.url)
        _create_database(
            postgresql.url, TEMPLATE, like=urlsplit(postgresql.url).path[1:]
        )
    finally:
        postgresql.stop()
    for old in KEPT.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    draft = kept.with_suffix(".new")
    _copy(folder, draft)
    draft.rename(kept)
    shutil.rmtree(folder)


def create_database(url: str, name: str) -> str:
    """Create an empty database where `url` leads; its own URL."""
    _create_database(url, name, like="template1")
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def _create_database(url: str, name: str, *, like: str) -> None:
    names = sql.Identifier(name), sql.Identifier(like)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))


def _migrate(url: str) -> None:
    _run(url, "manage.py", "migrate", "--verbosity=0")


def _run(url: str, *words: str) -> None:
    environment = os.environ | {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "benchlab.settings",
        "SECRET_KEY": "only for tests",
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "BENCHLAB_VAR": str(KEPT),
    }
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True)


def _copy(source: Path, target: Path) -> None:
    """With owners and permissions: PostgreSQL refuses others."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
