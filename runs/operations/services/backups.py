"""Backups: the results database, artifacts and keys in one encrypted file, and back again.

The database is read in one snapshot while everything goes on. Logins that are open are not kept.
"""

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Q
from django.utils.translation import gettext as _
from psycopg import sql

from runs.access.services import audit, encryption
from runs.models import Run, Server, Token
from runs.operations.selectors import health_checks
from runs.operations.services.backup_files import (
    KEYS,
    SUFFIX,
    BackupReader,
    BackupWriter,
)
from runs.published import reading
from runs.queue.services import artifacts, file_store
from runs.seals.services import seals
from runs.shared import copies
from runs.shared.errors import ServiceError

# Open logins, and what says which migrations were applied.
NOT_KEPT = frozenset(
    {"django_session", "usersessions_usersession", "django_migrations"}
)
TABLES = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname ORDER BY c.relname"""
SEQUENCES = """
SELECT sequencename, last_value FROM pg_sequences
WHERE schemaname = current_schema() AND last_value IS NOT NULL"""
TRIGGERS = """
SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT tgisinternal AND c.relnamespace = current_schema()::regnamespace"""
DIGESTS = "SELECT DISTINCT sha256 FROM runs_artifact ORDER BY 1"
MOST_WAIT_FOR_LOCKS = "15s"


def make(*, folder: Path, passphrase: str, keep: int | None = None) -> Path:
    """Write a backup into the folder; only the newest `keep` backups stay.

    A copy of the results database makes none: it could replace those of the original. Raises
    ServiceError `backup_failed`, `no_passphrase`, `held`.
    """
    copies.require_not_held()
    if not passphrase:
        message = _("No backup is made without a passphrase to encrypt it with.")
        remedy = _("Set BENCHLAB_BACKUP_PASSPHRASE, and keep it elsewhere.")
        raise ServiceError("no_passphrase", message, remedy=remedy)
    path = folder / f"benchlab-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{SUFFIX}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            BackupWriter(path, passphrase) as writer,
            health_checks.connected() as database,
        ):
            _write(writer, database)
    except (OSError, psycopg.Error) as error:
        message = _("No backup was made: %(reason)s.") % {
            "reason": health_checks.one_line(error)
        }
        remedy = _("Free space in %(folder)s, or fix the problem reported above.")
        remedy %= {"folder": folder}
        raise ServiceError("backup_failed", message, remedy=remedy) from error
    audit.record("backup_made", path.name, after={"bytes": path.stat().st_size})
    if keep is not None:
        for old_backup in sorted(folder.glob(f"benchlab-*{SUFFIX}"))[: -max(1, keep)]:
            old_backup.unlink()
    return path


def _write(writer: BackupWriter, database: "psycopg.Connection[Any]") -> None:
    database.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    database.execute("SET LOCAL statement_timeout = 0")
    tables = {}
    for name, columns in database.execute(TABLES).fetchall():
        if name in NOT_KEPT:
            continue
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT")
        cursor = database.cursor()
        with cursor.copy(
            query.format(_listed(columns), sql.Identifier(name))
        ) as copied:
            writer.add(f"tables/{name}", map(bytes, copied))
        tables[name] = {"columns": columns, "rows": cursor.rowcount}
    lost = _write_files(writer, database)
    writer.add(KEYS, iter([json.dumps(_secrets()).encode()]))
    migrations = database.execute(
        "SELECT app, name FROM django_migrations ORDER BY id"
    ).fetchall()
    writer.finish(
        {
            "version": settings.VERSION,
            "made_at": datetime.now(UTC).isoformat(),
            "tables": tables,
            "sequences": dict(database.execute(SEQUENCES).fetchall()),
            "migrations": [list(row) for row in migrations],
            "retired_artifacts": lost,
        }
    )


def _write_files(writer: BackupWriter, database: "psycopg.Connection[Any]") -> int:
    """Each file once; the number of those that were retired."""
    digests = (digest for (digest,) in database.execute(DIGESTS).fetchall())
    lost = 0
    for digest, content in artifacts.opened(digests):
        if content is None:
            lost += 1  # which its row says
        else:
            writer.add(f"artifacts/{digest}", artifacts.chunks(content), is_packed=True)
    for path in reading.files(settings.PUBLICATIONS_DIR):
        writer.add(f"publications/{path.name}", artifacts.chunks(path.open("rb")))
    return lost


def _secrets() -> dict[str, Any]:
    folder = Path(settings.SEAL_KEY).parent
    paths = sorted(folder.iterdir()) if folder.exists() else []
    files = [path for path in paths if path.is_file() and not path.name.startswith(".")]
    return {
        "encryption_key": settings.ENCRYPTION_KEY,
        "seals": {
            path.name: base64.b64encode(path.read_bytes()).decode() for path in files
        },
    }


def restore(
    *, path: Path, passphrase: str, trusts_plain: bool = False
) -> dict[str, int]:
    """Bring a backup into this empty instance: the number of rows of each table.

    `trusts_plain`: also one of 0.2 or before, which was not authenticated.

    Everything is read and checked before anything is written, and the database is filled in one
    transaction. Secrets are encrypted again with this instance's own key. Raises ServiceError
    `backup_unreadable`, `backup_not_authentic`, `wrong_passphrase`, `not_empty`, `other_version`,
    `restore_failed`.
    """
    with closing(BackupReader(path, passphrase, trusts_plain=trusts_plain)) as backup:
        backup.check()
        return _restored(backup)


def _restored(backup: BackupReader) -> dict[str, int]:
    secrets = backup.secrets
    try:
        _prepare(backup)
        _restore_artifacts(backup)
        _restore_publications(backup)
        with transaction.atomic():
            _load(backup)
            _done, unreadable = encryption.rotate(also=secrets["encryption_key"])
            _let_hosts_go(backup)
        _restore_seals(secrets["seals"])
        # Whether it is of a release that marks what waits; `migrate` lets control mark the
        # others.
        if "runs_auditlink" in backup.manifest["tables"]:
            seals.take_over(also=secrets["encryption_key"])
    except (OSError, DatabaseError, psycopg.Error) as error:
        message = _("Nothing was restored: %(reason)s.") % {
            "reason": health_checks.one_line(error)
        }
        remedy = _("Stop web, control and workers, free space, and try again.")
        raise ServiceError("restore_failed", message, remedy=remedy) from error
    if unreadable:
        message = _("Restored, but no key opens %(names)s.") % {
            "names": ", ".join(unreadable)
        }
        remedy = _("They were lost before the backup: enter them again.")
        raise ServiceError("secrets_unreadable", message, remedy=remedy)
    return {name: table["rows"] for name, table in backup.manifest["tables"].items()}


def _let_hosts_go(backup: BackupReader) -> None:
    """No host has joined what was restored: their roles are in another PostgreSQL."""
    if "runs_workerhost" not in backup.manifest["tables"]:
        return
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM runs_hostsecret")
        cursor.execute(
            "UPDATE runs_workerhost SET left_at = now(), role = '' WHERE left_at IS NULL"
        )


def _prepare(backup: BackupReader) -> None:
    executor = MigrationExecutor(connection)
    loader = executor.loader
    wanted_migrations = {(app, name) for app, name in backup.manifest["migrations"]}
    replaced = {
        key for migration in loader.replacements.values() for key in migration.replaces
    }
    if unknown := sorted(wanted_migrations - set(loader.disk_migrations) - replaced):
        raise _other_version(
            backup, _("it has %(name)s") % {"name": ".".join(unknown[0])}
        )
    # One that replaces others makes the same tables: they decide.
    applied = set(loader.applied_migrations) - set(loader.replacements)
    if not applied:
        executor.migrate(_leaves(executor, wanted_migrations))
        return
    _check_empty()
    if differing := sorted(applied ^ (wanted_migrations - set(loader.replacements))):
        name = ".".join(differing[0])
        raise _other_version(backup, _("they differ in %(name)s") % {"name": name})


def _leaves(
    executor: MigrationExecutor, wanted_migrations: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The last ones of each application, in whatever order the backup's database recorded them."""
    graph = executor.loader.graph
    replacing = executor.loader.replacements.items()
    wanted_migrations = wanted_migrations | {
        key
        for key, migration in replacing
        if wanted_migrations.issuperset(migration.replaces)
    }
    return sorted(
        key
        for key in wanted_migrations & set(graph.nodes)
        if not any(
            child.key in wanted_migrations and child.key[0] == key[0]
            for child in graph.node_map[key].children
        )
    )


def _check_empty() -> None:
    """Raise `not_empty` for what would be lost; tables of another version are not looked into."""
    try:
        with transaction.atomic():
            contents = _what_is_there()
    except DatabaseError:
        return
    if contents:
        message = _("This instance is not empty: %(what)s.") % {"what": contents}
        remedy = _(
            "Restore into an empty database: its present content would be lost. Start "
            "script/server without BENCHLAB_RESTORE, or with another folder in BENCHLAB_VAR."
        )
        raise ServiceError("not_empty", message, remedy=remedy)


def _what_is_there() -> str:
    measured = Run.objects.filter(~Q(origin="published"))
    number_of = {
        _("runs"): measured.count(),
        _("servers"): Server.objects.count(),
        _("tokens"): Token.objects.count(),
    }
    return ", ".join(
        f"{number} {description}" for description, number in number_of.items() if number
    )


def _restore_artifacts(backup: BackupReader) -> None:
    names = backup.list_members("artifacts") + backup.list_members("packs")
    folder = Path(settings.ARTIFACTS_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    needed = sum(backup.size(name) for name in names)
    if needed > free:
        raise OSError(f"{needed} bytes of artifacts, {free} bytes free in {folder}")
    for name in names:
        draft = folder / f".{name.rpartition('/')[2]}"
        with draft.open("wb") as file:
            file.writelines(backup.pieces(name))
        if name.startswith("packs/"):  # of 0.2; a migration takes its files out
            file_store.path_of(name).parent.mkdir(parents=True, exist_ok=True)
            draft.replace(file_store.path_of(name))
        else:
            artifacts.adopt(digest=name.rpartition("/")[2], packed=draft)
        draft.unlink(missing_ok=True)


def _restore_publications(backup: BackupReader) -> None:
    """The data files of the instance's own publications: what has none is no publication."""
    folder = Path(settings.PUBLICATIONS_DIR)
    for name in backup.list_members("publications"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / Path(name).name).write_bytes(b"".join(backup.pieces(name)))


def _load(backup: BackupReader) -> None:
    tables: dict[str, dict[str, Any]] = backup.manifest["tables"]
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{MOST_WAIT_FOR_LOCKS}'")
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(TABLES)
        present = [name for name, _columns in cursor.fetchall()]
        emptied = [name for name in present if name != "django_migrations"]
        cursor.execute(_compose("TRUNCATE {}", emptied))
        cursor.execute(TRIGGERS)
        triggered = [name for (name,) in cursor.fetchall()]
        for name in triggered:
            cursor.execute(_compose("ALTER TABLE {} DISABLE TRIGGER USER", [name]))
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for name, table in tables.items():
            _copy_in(cursor, name, table, backup.pieces(f"tables/{name}"))
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for name in triggered:
            cursor.execute(_compose("ALTER TABLE {} ENABLE TRIGGER USER", [name]))
        for name, value in backup.manifest["sequences"].items():
            cursor.execute(
                "SELECT setval(quote_ident(%s)::regclass, %s)", [name, value]
            )


def _copy_in(
    cursor: Any, name: str, table: dict[str, Any], pieces: Iterator[bytes]
) -> None:
    first_piece = next(pieces, None)
    if first_piece is None:
        return
    query = sql.SQL("COPY {} ({}) FROM STDIN")
    into = sql.Identifier(name), _listed(table["columns"])
    with cursor.copy(query.format(*into)) as copied:
        for piece in chain([first_piece], pieces):
            copied.write(piece)
    if cursor.rowcount != table["rows"]:
        raise OSError(f"{name}: {cursor.rowcount} rows instead of {table['rows']}")


def _compose(text: str, names: list[str]) -> sql.Composed:
    return sql.SQL(text).format(_listed(names))


def _listed(names: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _restore_seals(files: dict[str, str]) -> None:
    """The keys of the chains that were restored; this instance was empty and has sealed nothing."""
    folder = Path(settings.SEAL_KEY).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / Path(name).name
        path.write_bytes(base64.b64decode(content))
        path.chmod(0o600)


def _other_version(backup: BackupReader, why: str) -> ServiceError:
    message = _("This database has other tables than the backup: %(why)s.") % {
        "why": why
    }
    remedy = _("Restore with version %(version)s, or into a database without tables.")
    remedy %= {"version": backup.manifest["version"]}
    return ServiceError("other_version", message, remedy=remedy)
