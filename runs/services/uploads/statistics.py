"""What PostgreSQL knows about the tables that uploads fill."""

from functools import partial

from django.db import connection, transaction

# Without this PostgreSQL takes a table of a thousand rows for one of five, and a list sorts them
# all before it shows a few, a hundred times the work. Autovacuum analyses a table within a minute
# or so, if it is on.
TABLES = (
    *("runs_campaign", "runs_cell", "runs_cellsummary", "runs_change", "runs_environment"),
    *("runs_hardwareprofile", "runs_measurement", "runs_metric", "runs_revision", "runs_run"),
    *("runs_runcount", "runs_series", "runs_settingssnapshot"),
)
NEW = """
SELECT relname FROM pg_class
WHERE oid = ANY(%(tables)s::regclass[] || ARRAY(
    SELECT inhrelid FROM pg_inherits WHERE inhparent = ANY(%(tables)s::regclass[])
)::regclass[]) AND reltuples < 0"""


def analyse_once_committed() -> None:
    """Have tables and partitions analysed that never were, when the transaction has ended.

    One query where all were. It takes no lock that an upload waits for, and if it fails the upload
    is stored all the same.
    """
    transaction.on_commit(partial(_analyse, TABLES), robust=True)


def _analyse(tables: tuple[str, ...]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(NEW, {"tables": list(tables)})
        if new := [name for (name,) in cursor.fetchall()]:
            cursor.execute(f"ANALYZE {', '.join(new)}")
