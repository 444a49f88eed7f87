"""Tells others of an upload: the seals, the search for changes, and PostgreSQL's statistics."""

from collections.abc import Sequence

from django.db import connection, transaction

from runs.histories.services import changes
from runs.seals.services import seals
from runs.shared.database import Statement
from runs.uploads.services.decision import NewRun

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


def waiting(
    new_runs: Sequence[NewRun], cells: frozenset[tuple[int, int]]
) -> dict[str, Statement]:
    """Queues what follows from new runs, in the transaction that stores them.

    Cells with new figures, as pairs of campaign and cell, wait for the search for changes; finished
    runs for their seal.
    """
    statements = {}
    if cells:
        statements["stale cells"] = changes.noting(cells=cells)
    figures = {
        new_run.id: {
            f"{measurement.metric}:{measurement.statistic}": (
                measurement.value,
                measurement.n,
            )
            for measurement in new_run.run.measurements
        }
        for new_run in new_runs
        if new_run.run.status == "finished"
    }
    if figures:
        statements["seals"] = seals.requesting(runs=figures, figures=figures)
    return statements


def tell(new_runs: Sequence[NewRun], campaigns: frozenset[int]) -> None:
    """Wake workers for what waits, once the transaction that has stored the runs has ended."""
    changes.find_once_committed(campaign_ids=campaigns)
    if any(new_run.run.status == "finished" for new_run in new_runs):
        seals.seal_once_committed()
    if len(new_runs) > MANY:
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
