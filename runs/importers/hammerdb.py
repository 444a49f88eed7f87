"""HammerDB: its SQLite database of jobs (`hammer.DB`, of `job` and the web service; 4 to 6).

Source: the manual (CLI, "Jobs interface") and the tables of modules/jobs. What a job printed
and its time profile go through the adapter of uploads, so that both doors read the same.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from runs.grouping import group_by_key
from runs.importers.row import Imported, NotTheirs, build_fields, moment
from runs.tools import known_metrics, metrics
from runs.tools.adapter import SeriesData, UnreadableOutput
from runs.tools.hammerdb.adapter import ADAPTER
from runs.tools.output import number
from runs.wording import gettext_noop as _

Row = dict[str, Any]


def read(path: Path) -> Imported:
    """Read the database, which is opened read-only. Raises NotTheirs."""
    file = path / "hammer.DB" if path.is_dir() else path
    imported = Imported()
    try:
        with closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
        ) as database:
            database.row_factory = sqlite3.Row
            if _rows(database, "SELECT 1 FROM sqlite_master WHERE type = 'view'"):
                raise NotTheirs(
                    _("The database has views, which HammerDB makes none of.")
                )
            for job in _rows(
                database, "SELECT jobid, timestamp FROM JOBMAIN ORDER BY 2, 1"
            ):
                _take(database, job, imported)
    except sqlite3.Error as error:
        raise NotTheirs(
            _("No database of HammerDB's jobs: %(error)s"), error=error
        ) from error
    return imported


def _rows(database: sqlite3.Connection, sql: str, *values: Any) -> list[Row]:
    return [dict(row) for row in database.execute(sql, values)]


def _take(database: sqlite3.Connection, job: Row, imported: Imported) -> None:
    name, started_at = str(job["jobid"]), moment(job["timestamp"])
    printed = _rows(
        database,
        "SELECT vu, output FROM JOBOUTPUT WHERE jobid = ? ORDER BY rowid",
        name,
    )
    text = "".join(
        f"Vuser {row['vu']}:{line}\n"
        for row in printed
        for line in str(row["output"] or "").splitlines()
    )
    try:
        reading = ADAPTER.read({"stdout": text, "timing": _profile(database, name)})
    except UnreadableOutput as refused:
        imported.leave_out(_("Job %(name)s: %(said)s"), name=name, said=refused)
        return
    if started_at is None or not reading.measurements:
        why = reading.failure or _("no time")
        imported.leave_out(_("Job %(name)s: %(said)s"), name=name, said=why)
        return
    fields = build_fields(reading)
    fields["series"] = _counter(database, name)
    imported.take(
        campaign="hammerdb-tproc-c",
        scenario="tproc-c",
        external_id=name,
        started_at=started_at,
        **fields,
    )


def _profile(database: sqlite3.Connection, job: str) -> str:
    """The times of all users together, as `job ... timing` prints them.

    To 5.0 the row for all users is a copy of the last one's: then calls, averages and bounds come
    from the users' own rows, and there are no percentiles.
    """
    rows = _rows(database, "SELECT * FROM JOBTIMING WHERE jobid = ?", job)
    users = group_by_key((row["procname"], row) for row in rows if not row["summary"])
    profile_rows = {}
    for row in rows:
        user_rows = users[row["procname"]]
        if row["summary"]:
            is_copy = len(user_rows) > 1 and any(
                row["calls"] == user_row["calls"] for user_row in user_rows
            )
            profile_rows[row["procname"]] = _together(user_rows) if is_copy else row
    return (
        json.dumps(
            {k: {n: str(v) for n, v in row.items()} for k, row in profile_rows.items()}
        )
        + "\n"
    )


def _together(users: list[Row]) -> Row:
    calls = sum(row["calls"] for row in users)
    return {
        "calls": calls,
        "min_ms": min(row["min_ms"] for row in users),
        "avg_ms": sum(row["avg_ms"] * row["calls"] for row in users) / calls
        if calls
        else 0.0,
        "max_ms": max(row["max_ms"] for row in users),
    }


def _counter(database: sqlite3.Connection, job: str) -> tuple[SeriesData, ...]:
    rows = _rows(
        database, "SELECT counter, timestamp FROM JOBTCOUNT WHERE jobid = ?", job
    )
    points = [
        (moment_of_row.timestamp(), number(row["counter"]))
        for row in rows
        if (moment_of_row := moment(row["timestamp"]))
    ]
    return metrics.make_series(known_metrics.TPM, points)
