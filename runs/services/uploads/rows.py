"""Rows of uploaded runs: those of a batch are copied, those of a single run inserted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone
from psycopg import Copy

from runs.models import Run
from runs.models.campaigns import Origin
from runs.services.statements import Statement, perform
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
) -> None:
    """Store runs, their numbers and series, and execute the statements that need them there.

    Raises IntegrityError for an external id that exists already.
    """
    now = timezone.now()
    each = zip(runs, ids, campaign_ids, placed, conditions, strict=True)
    run_rows = [(key, *_run(run, *where, now)) for run, key, *where in each]
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
        perform([_inserting(RUNS, run_rows[0]), *_inserting_numbers(numbers), *then])
    else:
        _copy(RUNS, run_rows)
        _copy_numbers(numbers)
        perform(then)
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
    """Built as text: numbers and fixed words need no escaping."""
    if rows:
        text = "".join(
            f"{run}\t{metric}\t{value!r}\t{n}\t{statistic}\n"
            for run, metric, value, n, statistic in rows
        )
        with _copying(MEASUREMENTS) as copy:
            copy.write(text)


def _copy(target: str, rows: Sequence[Sequence[Any]]) -> None:
    with _copying(target) as copy:
        for row in rows:
            copy.write_row(row)


@contextmanager
def _copying(target: str) -> Iterator[Copy]:
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {target} FROM STDIN") as copy,
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
