"""Migrations that go on while everything else does: no statement waits long for them.

What changes a table waits for all statements that use it, and all later ones wait for the change.
`LockWaits` asks for a lock for half a second, gives way, and tries again. `InSteps` is a migration
whose operations are transactions of their own, so that reading or writing a large table holds no
lock of others; it goes on where it was cut off.
"""

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.core.management.base import CommandError
from django.db import OperationalError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddConstraint, AddIndex, Migration, RunPython
from django.db.migrations.operations import RunSQL, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from runs.shared.database import LOCK_SECONDS, is_wait

# PostgreSQL ends an autovacuum for somebody who has waited for deadlock_timeout.
LOCK_SECONDS_AGAINST_VACUUM = 1.5
LONGEST_PAUSE_SECONDS = 15.0
GIVE_UP_SECONDS = 600.0

# Their waits keep nobody else from reading and writing, and they can be in no transaction.
_CONCURRENT = re.compile(
    r"\A\s*(CREATE|DROP|REINDEX)\b[^;]*?\bCONCURRENTLY\b", re.IGNORECASE
)
_NEW_INDEX = re.compile(
    r'\A\s*CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?"?(\w+)"? ON',
    re.IGNORECASE,
)
_IS_VALID = """
SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relname = %s AND c.relnamespace = current_schema()::regnamespace"""
# Who else has used a table of ours for longest, and whether it looks like a vacuum.
_HOLDER = """
SELECT l.pid, a.application_name, l.relation::regclass::text, l.mode,
       extract(epoch FROM clock_timestamp() - a.xact_start)
FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.relation IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'p')
                   AND relnamespace = current_schema()::regnamespace)
ORDER BY a.xact_start, l.pid LIMIT 1"""

STEPS = "runs_migrationstep"


class LockWaits:
    """Statements of a migration wait for locks for half a second only, and are tried again.

    `execute` wraps a connection's statements: those that are no part of a transaction are tried
    again here, and who opened a transaction calls `pause` and begins it anew. `tell` gets a line
    for each try.
    """

    def __init__(
        self, connection: BaseDatabaseWrapper, tell: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._tell = tell
        self._migration: Migration | None = None
        self._waited = 0.0
        self._tries = 0
        self._seconds = LOCK_SECONDS

    def begin(self, migration: Migration) -> None:
        """What is waited for from now on is waited for by this migration."""
        if migration != self._migration:
            self._waited, self._tries = 0.0, 0
        self._migration = migration

    @property
    def goes_on(self) -> bool:
        """Whether the migration at work can simply be started again."""
        migration = self._migration
        return migration is None or migration.atomic or isinstance(migration, InSteps)

    def execute(
        self, proceed: Any, sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """Wrap the statements of a connection (`execute_wrapper`)."""

        def plain() -> Any:
            return proceed(sql, params, many, context)

        def run_in_transaction() -> Any:
            with transaction.atomic(using=self._connection.alias):
                self._limit()
                return plain()

        if self._connection.in_atomic_block:
            self._limit()
            return plain()
        if _CONCURRENT.match(str(sql)):
            return self._try_until_free(lambda: self._concurrently(str(sql), plain))
        return self._try_until_free(run_in_transaction)

    def pause(self, error: BaseException, *, waited: float = 0.0) -> None:
        """Say who is in the way, and sleep. Raises CommandError after some minutes."""
        holder, self._seconds = self._holder()
        name = str(self._migration or "migrate")
        seconds = min(LONGEST_PAUSE_SECONDS, 2.0**self._tries)
        if self._waited + waited >= GIVE_UP_SECONDS:
            raise CommandError(self._gave_up(name, holder)) from error
        self._waited += waited + seconds
        self._tries += 1
        self._tell(
            f"{name} waits for {holder or 'a lock'}. It keeps nobody waiting, and tries again"
            f" in {seconds:.0f} s."
        )
        time.sleep(seconds)

    def _gave_up(self, name: str, holder: str) -> str:
        remedy = (
            "What is done stays: start it again when that has ended"
            if self.goes_on
            else "See “Updates” in docs/deployment.md before you start it again"
        )
        return (
            f"{name} got no lock in {GIVE_UP_SECONDS / 60:.0f} minutes: it waits for"
            f" {holder or 'a lock'}. {remedy} (SELECT pg_terminate_backend(its number) ends it)."
        )

    def _try_until_free(self, attempt: Callable[[], Any]) -> Any:
        while True:
            began = time.monotonic()
            try:
                return attempt()
            except OperationalError as error:
                if not is_wait(error):
                    raise
                self.pause(error, waited=time.monotonic() - began)

    def _limit(self) -> None:
        """At the beginning of each transaction, so that nothing stays with the session."""
        raw: Any = self._connection.connection
        if raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            raw.execute(
                f"SET LOCAL lock_timeout = {self._seconds * 1000:.0f};"
                " SET LOCAL statement_timeout = 0"
            )

    def _concurrently(self, sql: str, plain: Callable[[], Any]) -> Any:
        """Build the index; one that was cut off is invalid, and goes before another is built."""
        raw: Any = self._connection.connection
        # Settings of a session would stay with others behind PgBouncer.
        if not settings.PGBOUNCER:
            limit = f"{GIVE_UP_SECONDS * 1000:.0f}"
            raw.execute(f"SET lock_timeout = {limit}; SET statement_timeout = 0")
        try:
            if name_match := _NEW_INDEX.match(sql):
                is_valid = raw.execute(_IS_VALID, [name_match[1]]).fetchone()
                if is_valid == (True,):
                    return None  # the migration was cut off after it
                if is_valid:
                    raw.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{name_match[1]}"')
            return plain()
        finally:
            if not settings.PGBOUNCER:
                with suppress(psycopg.Error):
                    raw.execute("RESET lock_timeout; RESET statement_timeout")

    def _holder(self) -> tuple[str, float]:
        """Who is in the way, and how long the next try waits."""
        with self._connection.cursor() as cursor:
            cursor.execute(_HOLDER)
            row = cursor.fetchone()
        if row is None:
            return "", LOCK_SECONDS
        holder = _Holder(*row)
        is_vacuum = holder.mode == "ShareUpdateExclusiveLock"
        who = f"process {holder.process}{f' ({holder.program})' if holder.program else ''}"
        since = "" if holder.age is None else f" for {holder.age:.0f} s"
        return (
            f"{who}, which has used {holder.table}{since}",
            LOCK_SECONDS_AGAINST_VACUUM if is_vacuum else LOCK_SECONDS,
        )


class _Holder(NamedTuple):
    """A row of `_HOLDER`: who is in the way, of which table, and for how many seconds."""

    process: int
    program: str
    table: str
    mode: str
    age: float | None


class InSteps(Migration):
    """A migration whose operations are transactions of their own, which are done once each.

    How many are done is kept in a table of its own until `migrate` has ended. RunPython with
    `atomic=False` commits by itself, and is begun again where it was cut off.
    """

    atomic = False

    def apply(
        self,
        project_state: ProjectState,
        schema_editor: BaseDatabaseSchemaEditor,
        collect_sql: bool = False,
    ) -> ProjectState:
        """Do the operations that are not done yet."""
        if collect_sql:
            return super().apply(project_state, schema_editor, collect_sql)
        database = schema_editor.connection
        done = _steps_done(database, self.name)
        for number, operation in enumerate(self.operations, start=1):
            before = project_state.clone()
            operation.state_forwards(self.app_label, project_state)
            if number <= done:
                continue
            if _commits_itself(operation):
                operation.database_forwards(
                    self.app_label, schema_editor, before, project_state
                )
                _keep_step(database, self.name, number)
                continue
            with transaction.atomic(using=database.alias):
                operation.database_forwards(
                    self.app_label, schema_editor, before, project_state
                )
                while schema_editor.deferred_sql:
                    schema_editor.execute(schema_editor.deferred_sql.pop(0), None)
                _keep_step(database, self.name, number)
        return project_state

    def unapply(
        self,
        project_state: ProjectState,
        schema_editor: BaseDatabaseSchemaEditor,
        collect_sql: bool = False,
    ) -> ProjectState:
        """Take back, and know of no steps any more."""
        if not collect_sql:
            forget_steps(schema_editor.connection)
        return super().unapply(project_state, schema_editor, collect_sql)


class AddCheck(AddConstraintNotValid):
    """A constraint of a large table: added unvalidated, and validated while rows are written."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Two transactions, of which the first one may be done."""
        alias = schema_editor.connection.alias
        model = to_state.apps.get_model(app_label, self.model_name)
        with transaction.atomic(using=alias):
            # Whatever has this name was added by a try that was cut off.
            schema_editor.execute(
                f'ALTER TABLE "{model._meta.db_table}"'
                f' DROP CONSTRAINT IF EXISTS "{self.constraint.name}"'
            )
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        ValidateConstraint(self.model_name, self.constraint.name).database_forwards(
            app_label, schema_editor, from_state, to_state
        )


def in_steps(operations: Iterable[Operation]) -> list[Operation]:
    """The same operations so that checks and indexes hold no lock while rows are read."""
    return [_gentle(operation) for operation in operations]


def _gentle(operation: Operation) -> Operation:
    if type(operation) is AddIndex:
        return AddIndexConcurrently(operation.model_name, operation.index)
    if type(operation) is AddConstraint and isinstance(
        operation.constraint, models.CheckConstraint
    ):
        return AddCheck(operation.model_name, operation.constraint)
    return operation


def _commits_itself(operation: Operation) -> bool:
    if isinstance(operation, SeparateDatabaseAndState):
        inner = operation.database_operations
        return bool(inner) and all(map(_commits_itself, inner))
    if isinstance(operation, RunSQL):
        return _CONCURRENT.match(str(operation.sql)) is not None
    if isinstance(operation, RunPython):
        return operation.atomic is False
    return isinstance(
        operation,
        AddIndexConcurrently | RemoveIndexConcurrently | ValidateConstraint | AddCheck,
    )


def _steps_done(database: BaseDatabaseWrapper, name: str) -> int:
    with database.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {STEPS} (migration text PRIMARY KEY, done integer)"
        )
        cursor.execute(f"SELECT done FROM {STEPS} WHERE migration = %s", [name])  # noqa: S608
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _keep_step(database: BaseDatabaseWrapper, name: str, number: int) -> None:
    with database.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {STEPS} VALUES (%s, %s)"  # noqa: S608
            " ON CONFLICT (migration) DO UPDATE SET done = excluded.done",
            [name, number],
        )


def forget_steps(database: BaseDatabaseWrapper) -> None:
    """When all migrations are applied, or taken back."""
    with connections[database.alias].cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [STEPS])
        if cursor.fetchone() != (None,):
            cursor.execute(f"DROP TABLE {STEPS}")
