"""Empties the tables after a test that commits: by deleting the few rows that such tests leave.

Django truncates all 75 tables and creates each permission again, which takes a tenth of a second
of a processor: TRUNCATE makes each table, index and TOAST table anew, with or without rows.
"""

from collections.abc import Iterable
from typing import Any

from django.core.management.commands import flush
from django.db.backends.postgresql.creation import DatabaseCreation
from django.db.backends.postgresql.operations import DatabaseOperations
from psycopg import sql

# The same in every database; what migrations make of the models.
KEPT = frozenset({"django_content_type", "auth_permission"})
# Above this a table is truncated: deleted rows stay in its file, and the next test reads them.
MOST_BYTES = 1_000_000
# Locked like TRUNCATE does: what another thread still writes comes before. Triggers and foreign
# keys are not applicable, since nothing stays.
EMPTY = """
DO $$
DECLARE
    each regclass;
BEGIN
    LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE;
    SET LOCAL session_replication_role = replica;
    -- Of a partitioned table its partitions: it has no size of its own.
    FOR each IN SELECT coalesce(inhrelid, of) FROM unnest(ARRAY[{names}]::regclass[]) AS of
        LEFT JOIN pg_inherits ON inhparent = of
    LOOP
        IF pg_relation_size(each) > {most} THEN
            EXECUTE format('TRUNCATE %s CASCADE', each);
        ELSIF pg_relation_size(each) > 0 THEN
            EXECUTE format('DELETE FROM %s', each);
        END IF;
    END LOOP;
END $$
"""


def empty(tables: Iterable[str]) -> str:
    """The statement that empties these tables."""
    found = [sql.Identifier(table) for table in tables if table not in KEPT]
    names = [sql.Literal(each.as_string()) for each in found]
    return (
        sql.SQL(EMPTY)
        .format(
            tables=sql.SQL(", ").join(found),
            names=sql.SQL(", ").join(names),
            most=sql.Literal(MOST_BYTES),
        )
        .as_string()
    )


def _flush(
    _self: DatabaseOperations, _style: Any, tables: Iterable[str], **_how: Any
) -> list[str]:
    return [empty(tables)]


def _drop(self: DatabaseCreation, name: str, _verbosity: int) -> None:
    """Drop a test's database, and end the sessions of those that have not left it.

    Where it stays, its process runs none of the tests that are left.
    """
    self.connection.close_pool()
    with self._nodb_cursor() as cursor:
        cursor.execute(
            f"DROP DATABASE {self.connection.ops.quote_name(name)} WITH (FORCE)"
        )


def install() -> None:
    """Let the command `flush`, and with it each test that commits, empty tables in this way."""
    DatabaseCreation._destroy_test_db = _drop
    DatabaseOperations.sql_flush = _flush
    flush.emit_post_migrate_signal = lambda *_said: None
