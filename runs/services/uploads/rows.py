"""Rows of uploaded runs: those of a batch are copied, those of a single run inserted."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone
from psycopg import Copy

from runs.models import Run
from runs.models.campaigns import Origin
from runs.services.statements import FEW, Statement, perform
from runs.services.uploads.cells import Placed
from runs.services.uploads.conditions import Conditions
from runs.services.uploads.uploaded_run import GivenRun, GivenSeries

# A run's columns. Those not named are null.
RUNS = (
    "runs_run (id, campaign_id, cell_id, repeat, position, origin, state, code, message, remedy,"
    " attempt, server_id, hardware_id, environment_id, settings_id, server_version, tool_name,"
    " tool_version, quality, external_id, round, labels, queued_at, started_at, finished_at)"
)
MEASUREMENTS = "runs_measurement (run_id, metric_id, value, n, statistic)"
SERIES = 'runs_series (run_id, name, unit, start, "interval", "values")'
Numbers = tuple[int, int, float, int, str]
# The binary format of COPY: what begins and ends it, and a row's count of columns, with the length
# of each before it: 8 bytes of the run, of the metric and of the value, 4 of n.
BEGINNING, END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
NUMBER = struct.Struct("!hiqiqidii").pack
STATES = {
    "finished": Run.State.FINISHED,
    "failed": Run.State.FAILED,
    # Its figures are stored but not used elsewhere: they cover less than was asked for.
    "partial": Run.State.FAILED,
}


def store(
    runs: Sequence[GivenRun],
    *,
    ids: Sequence[int],
    campaign_ids: Sequence[int],
    placed: Sequence[Placed],
    conditions: Sequence[Conditions],
    metrics: Mapping[str, int],
    then: Sequence[Statement],
    commits: bool,
) -> None:
    """Store runs, their numbers and series, and execute the statements that need them there.

    `commits`: nothing else follows in the transaction.

    Raises IntegrityError for an external id that exists already.
    """
    now = timezone.now()
    run_rows = [
        (key, *_run(run, campaign, where, what, now))
        for run, key, campaign, where, what in zip(
            runs, ids, campaign_ids, placed, conditions, strict=True
        )
    ]
    numbers = [
        (key, metrics[each.metric], each.value, each.n, each.statistic)
        for run, key in zip(runs, ids, strict=True)
        for each in run.measurements
    ]
    series = [
        (key, each.name, each.unit, each.start, each.interval, _array(each))
        for run, key in zip(runs, ids, strict=True)
        for each in run.series
    ]
    if len(run_rows) == 1:
        # It shares a message with the other statements.
        inserting = [_inserting(RUNS, run_rows[0]), *_inserting_numbers(numbers)]
        perform([*inserting, *then], commits=commits and not series)
    else:
        _copy(RUNS, run_rows)
        _copy_numbers(numbers)
        perform(then, keeps_plans=len(runs) <= FEW)
    if series:
        _copy(SERIES, series)


def _inserting(target: str, row: Sequence[Any]) -> Statement:
    places = ", ".join(["%s"] * len(row))
    return Statement(f"INSERT INTO {target} VALUES ({places})", tuple(row))  # noqa: S608 -- ours


def _inserting_numbers(rows: Sequence[Numbers]) -> list[Statement]:
    if not rows:
        return []
    inserting = (
        f"INSERT INTO {MEASUREMENTS} SELECT * FROM unnest(%s::bigint[], %s::bigint[],"  # noqa: S608
        " %s::float8[], %s::integer[], %s::text[])"
    )
    return [Statement(inserting, tuple(map(list, zip(*rows, strict=True))))]


def _copy_numbers(rows: Sequence[Numbers]) -> None:
    """In PostgreSQL's binary format, which takes both sides less than text does."""
    if not rows:
        return
    tails = {
        each: struct.pack("!i", len(each)) + each.encode() for each in {row[4] for row in rows}
    }
    packed = [
        NUMBER(5, 8, run, 8, metric, 8, value, 4, n) + tails[statistic]
        for run, metric, value, n, statistic in rows
    ]
    with _copying(f"{MEASUREMENTS} FROM STDIN (FORMAT binary)") as copy:
        copy.write(b"".join((BEGINNING, *packed, END)))


def _copy(target: str, rows: Sequence[Sequence[Any]]) -> None:
    with _copying(f"{target} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


@contextmanager
def _copying(what: str) -> Iterator[Copy]:
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {what}") as copy,
    ):
        yield copy


def _run(
    run: GivenRun, campaign: int, where: Placed, what: Conditions, now: datetime
) -> tuple[Any, ...]:
    return (
        *(campaign, where.cell_id, where.repeat),
        # Only `started_at` gives the order of execution.
        *(0, Origin.UPLOADED.value, STATES[run.status].value, run.code, run.message, "", 1),
        *(what.server_id, what.hardware_id, what.environment_id, what.settings_id),
        *(run.server_version, run.tool_name, run.tool_version),
        json.dumps([dict(note) for note in run.notes]) if run.notes else "[]",
        run.external_id,
        run.round,
        json.dumps(dict(run.labels)) if run.labels else "{}",
        *(now, run.started_at, run.finished_at),
    )


def _array(series: GivenSeries) -> str:
    return "{" + ",".join("NULL" if value is None else repr(value) for value in series.values) + "}"
