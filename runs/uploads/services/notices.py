"""Tells others of an upload: the seals, the search for changes, and PostgreSQL's statistics."""

from django.db import connection, transaction

from runs.histories.services import changes
from runs.seals.services import seals
from runs.shared.database import Statement, perform
from runs.uploads.services.writing import Written

# Without this PostgreSQL takes a table of a thousand rows for one of five, and a list sorts them
# all before it shows a few, a hundred times the work. Autovacuum analyses a table within a minute
# or so, if it is on.
TABLES = (
    "runs_campaign",
    "runs_cell",
    "runs_cellsummary",
    "runs_change",
    "runs_environment",
    "runs_hardwareprofile",
    "runs_measurement",
    "runs_metric",
    "runs_revision",
    "runs_run",
    "runs_runcount",
    "runs_series",
    "runs_settingssnapshot",
)
NEW = """
SELECT relname FROM pg_class
WHERE oid = ANY(%(tables)s::regclass[] || ARRAY(
    SELECT inhrelid FROM pg_inherits WHERE inhparent = ANY(%(tables)s::regclass[])
)::regclass[]) AND reltuples < 0"""
# An upload of more runs may be the first large one of some tables.
MANY = 50


def tell(written: Written) -> None:
    """Queue what follows from new runs, in their transaction, and wake workers once it has ended.

    Cells with new figures wait for the search for changes, finished runs for their seal.
    """
    statements: list[Statement] = []
    if written.cells:
        statements.append(changes.noting(cells=written.cells))
    figures = {
        new_run.id: {
            f"{measurement.metric}:{measurement.statistic}": (measurement.value, measurement.n)
            for measurement in new_run.run.measurements
        }
        for new_run in written.new_runs
        if new_run.run.status == "finished"
    }
    if figures:
        statements.append(seals.requesting(runs=figures, figures=figures))
    perform(statements)
    changes.find_once_committed(campaign_ids={campaign for campaign, _cell in written.cells})
    if figures:
        seals.seal_once_committed()
    if len(written.new_runs) > MANY:
        # Robust: if it fails the upload is stored all the same.
        transaction.on_commit(_analyse, robust=True)


def _analyse() -> None:
    """Have tables and partitions analysed that never were.

    One query where all were. It takes no lock that an upload waits for.
    """
    with connection.cursor() as cursor:
        cursor.execute(NEW, {"tables": list(TABLES)})
        if unanalysed := [name for (name,) in cursor.fetchall()]:
            cursor.execute(f"ANALYZE {', '.join(unanalysed)}")
