"""Measurements and series in partitions by ranges of runs: made month by month, dropped when empty.

Runs get their numbers in the order of time, so that a range of runs is a range of time; a key of a
run and something else is unique in all partitions because a run is in one. What is stored of a run
later goes where the run belongs.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from django.db import OperationalError, ProgrammingError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _
from psycopg.errors import InsufficientPrivilege

from runs.access.services import audit
from runs.models import Run
from runs.shared import queries
from runs.shared.database import LOCK_SECONDS, is_wait
from runs.shared.errors import ServiceError

T = TypeVar("T")

TABLES = ("runs_measurement", "runs_series")
# A partition costs each statement a look: small ones cost more than they save.
ROWS_OF_A_PARTITION = 10_000_000
TRIES = 6
_BOUNDS = re.compile(r"FOR VALUES FROM \('?(\w+)'?\) TO \('?(\w+)'?\)")

_PARTITIONS = """
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid),
       greatest(stat.n_live_tup, child.reltuples, 0)::bigint, pg_total_relation_size(child.oid)
FROM pg_inherits
JOIN pg_class child ON child.oid = inhrelid
LEFT JOIN pg_stat_all_tables stat ON stat.relid = inhrelid
WHERE inhparent = %s::regclass"""
_REFERENCES = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND confrelid = %s::regclass AND conparentid = 0"""
_LAST_RUN = "SELECT pg_sequence_last_value(pg_get_serial_sequence('runs_run', 'id'))"
_GROWN = """
SELECT parent.relname
FROM pg_class parent
JOIN pg_inherits ON inhparent = parent.oid
JOIN pg_class child ON child.oid = inhrelid
WHERE parent.oid = ANY(%s::regclass[]) AND pg_has_role(parent.relowner, 'USAGE')
GROUP BY parent.oid, parent.relname, parent.reltuples
HAVING sum(child.reltuples) > 1.2 * greatest(parent.reltuples, 0) + 1000"""

_SUMMARISED = """
SELECT brin_summarize_new_values(indexrelid) FROM pg_index
JOIN pg_class of ON of.oid = indexrelid JOIN pg_am am ON am.oid = of.relam
WHERE indrelid = ANY(%s::regclass[]) AND amname = 'brin' AND pg_has_role(of.relowner, 'USAGE')"""


@dataclass(frozen=True)
class Partition:
    """Runs from `first` to before `end`; None is an open end. `rows` is PostgreSQL's estimate."""

    table: str
    name: str
    first: int | None
    end: int | None
    rows: int
    size: int

    @property
    def bounds(self) -> str:
        """As PostgreSQL wants them."""
        first_bound = "MINVALUE" if self.first is None else self.first
        end = "MAXVALUE" if self.end is None else self.end
        return f"FOR VALUES FROM ({first_bound}) TO ({end})"


def listed(table: str) -> list[Partition]:
    """The partitions of a table, the oldest first."""
    partitions = [_partition(table, *row) for row in queries.rows(_PARTITIONS, [table])]
    return sorted(partitions, key=lambda partition: partition.first or 0)


def _partition(table: str, name: str, bounds: str, rows: int, size: int) -> Partition:
    [(first_text, end)] = _BOUNDS.findall(bounds)
    return Partition(table, name, _number(first_text), _number(end), rows, size)


def _number(bound: str) -> int | None:
    return int(bound) if bound.isdigit() else None


def make(
    *, at_least: int = ROWS_OF_A_PARTITION, now: datetime | None = None
) -> list[Partition]:
    """Begin a partition for the runs from now on, in each table whose newest one is full.

    Full is one that has `at_least` so many rows, and was not begun in this month (UTC). Returns
    the new ones; there is none where no run was made since the newest was begun. Reads the newest
    partition, and meanwhile nobody else does, nor stores runs. Raises ServiceError `table_in_use`,
    `not_owner`; nothing has changed then.
    """
    month = f"{now or datetime.now(UTC):%Y_%m}"
    partitions_made = []
    for table in TABLES:
        newest = listed(table)[-1]
        if newest.rows < at_least or newest.name == f"{table}_{month}":
            continue
        if begun := _begin(newest, f"{table}_{month}"):
            partitions_made.append(begun)
    return partitions_made


def _begin(newest: Partition, name: str) -> Partition | None:
    def begin(cursor: CursorWrapper) -> Partition | None:
        cursor.execute(_LAST_RUN)
        boundary = (cursor.fetchone()[0] or 0) + 1
        if boundary == (newest.first or 1):
            return None
        begun = replace(newest, name=name, first=boundary, rows=0, size=0)
        cursor.execute(f"ALTER TABLE {newest.table} DETACH PARTITION {newest.name}")
        _attach(cursor, replace(newest, end=boundary))
        cursor.execute(
            f"CREATE TABLE {name} PARTITION OF {newest.table} {begun.bounds}"
        )
        audit.record("partition_made", name, after={"from_run": boundary})
        return begun

    return _rearrange(newest.table, begin)


def drop(*, is_rehearsal: bool = True) -> list[Partition]:
    """Drop the partitions that have no rows any more, or only say which; never the newest.

    The next one takes over the range, since a run of it can still be repeated: it is read for that,
    during which nobody else does. Raises ServiceError `table_in_use`, `not_owner`.
    """
    dropped = []
    for table in TABLES:
        for partition in listed(table)[:-1]:
            if _has_rows(partition):
                continue
            if not is_rehearsal and not _give_up(partition.name, table):
                continue
            dropped.append(partition)
    return dropped


def _give_up(name: str, table: str) -> bool:
    """Drop a partition and give its range to the next; False where it has rows again."""

    def give_up(cursor: CursorWrapper) -> bool:
        # The one before it may have been dropped just now.
        here = listed(table)
        [position] = [
            index for index, partition in enumerate(here) if partition.name == name
        ]
        empty, after = here[position], here[position + 1]
        if _has_rows(empty):
            return False
        cursor.execute(f"DROP TABLE {name}")
        cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {after.name}")
        _attach(cursor, replace(after, first=empty.first))
        audit.record("partition_dropped", name, after={"to": after.name})
        return True

    return _rearrange(table, give_up)


def _has_rows(partition: Partition) -> bool:
    query = f"SELECT EXISTS (SELECT FROM {partition.name})"  # noqa: S608  # our name
    return bool(queries.rows(query)[0][0])


def _attach(cursor: CursorWrapper, partition: Partition) -> None:
    """PostgreSQL reads it to see that its rows are in the range."""
    cursor.execute(
        f"ALTER TABLE {partition.table} ATTACH PARTITION {partition.name} {partition.bounds}"
    )


def _rearrange(table: str, act: Callable[[CursorWrapper], T]) -> T:
    """Do something while nobody stores runs or uses the table, in a transaction; what it returns.

    Where somebody does, it gives way and tries again. Raises ServiceError `table_in_use`,
    `not_owner`.
    """
    for _try in range(TRIES):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                return _alone(cursor, table, act)
        except OperationalError as error:
            if not is_wait(error):
                raise
        except ProgrammingError as error:
            if not isinstance(error.__cause__, InsufficientPrivilege):
                raise
            message = _("The account of DATABASE_URL does not own %(table)s.") % {
                "table": table
            }
            remedy = _("Give the command the account that migrates.")
            raise ServiceError("not_owner", message, remedy=remedy) from error
        time.sleep(LOCK_SECONDS)
    message = _("%(table)s is in use: no lock of it in %(tries)s tries.")
    message %= {"table": table, "tries": TRIES}
    remedy = _(
        "Nothing has changed. Try again when long exports and backups have ended."
    )
    raise ServiceError("table_in_use", message, remedy=remedy)


def _alone(cursor: CursorWrapper, table: str, act: Callable[[CursorWrapper], T]) -> T:
    """Foreign keys to the table are taken off and put back.

    Else a partition with rows that are referred to could not be detached for a moment.
    """
    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
    cursor.execute("SET LOCAL statement_timeout = 0")
    cursor.execute(_REFERENCES, [table])
    references = cursor.fetchall()
    used = ", ".join(
        [table, *(referring for referring, _name, _definition in references)]
    )
    cursor.execute(f"LOCK TABLE {Run._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")
    cursor.execute(f"LOCK TABLE {used} IN ACCESS EXCLUSIVE MODE")
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for referring, name, _definition in references:
        cursor.execute(f"ALTER TABLE {referring} DROP CONSTRAINT {name}")
    done = act(cursor)
    for referring, name, definition in references:
        cursor.execute(f"ALTER TABLE {referring} ADD CONSTRAINT {name} {definition}")
    return done


def look_after() -> None:
    """What PostgreSQL does not do by itself for tables in partitions; a duty of control.

    Where a vacuum is at work it is left for the next time: PostgreSQL would end the vacuum.
    """
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            analyse_grown()
            summarise()
    except OperationalError as error:
        if not is_wait(error):
            raise


def analyse_grown() -> list[str]:
    """Have PostgreSQL look at tables of which a fifth is new since it last did; which it did.

    Autovacuum looks at each partition, and never at what they are together, by which joins are
    planned.
    """
    with connection.cursor() as cursor:
        cursor.execute(_GROWN, [list(TABLES)])
        grown = [name for (name,) in cursor.fetchall()]
        # Release 18 can leave out the partitions, which autovacuum has looked at.
        only = "ONLY " if connection.connection.info.server_version >= 180000 else ""
        for name in grown:
            cursor.execute(f"ANALYZE {only}{name}")
    return grown


def summarise() -> None:
    """Let the BRIN index of ids know the newest pages: each search reads all that it does not know.

    PostgreSQL itself drops some of its requests for that while many rows come in, and sees the
    pages at the next vacuum only, a fifth of the partition later.
    """
    newest = [listed(table)[-1].name for table in TABLES]
    with connection.cursor() as cursor:
        cursor.execute(_SUMMARISED, [newest])
