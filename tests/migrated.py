"""A PostgreSQL cluster whose databases are migrated already, which tests copy theirs from.

Migrating takes some seconds of a processor, more than most selections of tests; so the cluster is
kept below var/ and copied at the next start, until a migration or a requirement changes.

`python -m tests.migrated` migrates an empty database through each migration, and writes what it has
then as the baseline that new databases begin with (benchlab/baseline.py).
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from cryptography.fernet import Fernet
from psycopg import sql

from benchlab.baseline import BASELINE
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
    *("--fsync=off", "--synchronous_commit=off", "--full_page_writes=off"),
    *("--wal_level=minimal", "--max_wal_senders=0", "--max_connections=300"),
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
            connection.execute("GRANT SET ON PARAMETER session_replication_role TO benchlab")
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


def migrated_postgresql(bindir: Path, folder: Path, account: Account) -> EmbeddedPostgreSQL:
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
    for path in (ROOT / "requirements.txt", Path(__file__), BASELINE, *migrations):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _make(kept: Path, bindir: Path, folder: Path, account: Account) -> None:
    """Initialise and migrate in `folder`, and keep the result as `kept` alone."""
    postgresql = QuickPostgreSQL(bindir, folder, account=account)
    postgresql.start()
    try:
        _migrate(postgresql.url)
        _create_database(postgresql.url, TEMPLATE, like=urlsplit(postgresql.url).path[1:])
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


_ONE_BY_ONE = """
import django, json, sys; django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from benchlab.gentle_migrations import forget_steps
from runs.services.operations.backups import _leaves
executor = MigrationExecutor(connection)
wanted = {(app, name) for app, name in json.loads(sys.argv[1])}
executor.migrate(_leaves(executor, wanted or set(executor.loader.disk_migrations)))
forget_steps(connection)
"""


def migrate_one_by_one(url: str, names: Iterable[tuple[str, str]] = ()) -> None:
    """Migrate an empty database through these migrations, or all, as if there were no baseline."""
    _run(url, "-c", _ONE_BY_ONE, json.dumps(list(names)))


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


# Django writes these after each `migrate`, or the baseline does.
_WRITTEN_LATER = ("django_content_type", "auth_permission", "django_migrations")
# What pg_dump adds to statements: comments, settings of its session, and sequences without rows.
_ADDED = re.compile(
    r"^--\n(?:-- .*\n)+--\n|^\\.*\n|^-- Dumped .*\n|^SET .*;\n|^SELECT pg_catalog\.set_config\(.*\n"
    r"|^SELECT pg_catalog\.setval\(.*, 1, false\);\n"
    rf"|^SELECT pg_catalog\.setval\('public\.(?:{'|'.join(_WRITTEN_LATER)})_id_seq'.*\n",
    re.MULTILINE,
)
_IDENTITY = re.compile(
    r"(?<= ADD GENERATED BY DEFAULT AS IDENTITY) \(\s+SEQUENCE NAME \w+_id_seq"
    r"\s+START WITH 1\s+INCREMENT BY 1\s+NO MINVALUE\s+NO MAXVALUE\s+CACHE 1\s+\)"
)
# Read again as it stands, it would become another expression of the same meaning.
_ONE_OF = re.compile(r"\((\w+)\)::text = ANY \(\(ARRAY\[([^]]*)\]\)::text\[\]\)")
_HEAD = """\
-- The tables of a new database, as the migrations that are named at the end leave them.
-- `python -m tests.migrated` writes this, and nobody edits it: see benchlab/baseline.py.
"""


def _dumped(bindir: Path, url: str) -> str:
    """What makes the tables and rows of a database again, in fewer lines than pg_dump writes."""
    leaving = [f"--exclude-table-data={name}" for name in _WRITTEN_LATER]
    text = subprocess.run(
        [bindir / "pg_dump", "--no-owner", "--no-privileges", "--column-inserts", *leaving, url],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    text = _IDENTITY.sub("", _ADDED.sub("", text).replace("public.", ""))
    text = _ONE_OF.sub(lambda found: f"{found[1]} IN ({_without_types(found[2])})", text)
    text = text.replace("\n    ADD CONSTRAINT", " ADD CONSTRAINT")
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return re.sub(r"\n\n(?!CREATE (?:TABLE|FUNCTION))", "\n", text)


def _without_types(values: str) -> str:
    return values.replace("::character varying", "")


def baseline_of(bindir: Path, url: str) -> str:
    """The baseline that begins a database like this one."""
    with psycopg.connect(url) as database:
        query = "SELECT DISTINCT app, name FROM django_migrations ORDER BY 1, 2"
        applied = database.execute(query).fetchall()
    recorded = ",\n".join(f"('{app}', '{name}', now())" for app, name in applied)
    statements = f"""{_dumped(bindir, url)}

INSERT INTO django_migrations (app, name, applied) VALUES
{recorded};
"""
    names = [name for app, name in applied if app == "runs"]
    return f"""{_HEAD}-- Of these statements and those migrations: {digest_of(statements, names)}

SET LOCAL check_function_bodies = false;

{statements}"""


def digest_of(statements: str, names: list[str]) -> str:
    """It says whether the statements or the migrations that they stand for were edited."""
    digest = hashlib.sha256(statements.encode())
    for name in sorted(names):
        digest.update((ROOT / "runs" / "migrations" / f"{name}.py").read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Write the baseline anew, of all migrations that there are."""
    with own_postgresql() as postgresql:
        migrate_one_by_one(postgresql.url)
        BASELINE.write_text(baseline_of(postgresql.bindir, postgresql.url))


if __name__ == "__main__":
    main()
