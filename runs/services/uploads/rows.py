"""Rows of uploaded runs, brought into the database by COPY: a batch has tens of thousands."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from runs.models import Run
from runs.models.campaigns import Origin
from runs.services.uploads.cells import Placed
from runs.services.uploads.conditions import Conditions
from runs.services.uploads.given import GivenRun, GivenSeries

# A run's columns. Those not named are null.
RUN_COLUMNS = (
    "id, campaign_id, cell_id, repeat, position, origin, state, code, message, remedy, attempt,"
    " server_id, hardware_id, environment_id, settings_id, server_version, tool_name,"
    " tool_version, quality, external_id, labels, queued_at, started_at, finished_at"
)
STATES = {
    "finished": Run.State.FINISHED,
    "failed": Run.State.FAILED,
    # Its figures are kept with it, and stand for nothing else: they cover less than was asked for.
    "partial": Run.State.FAILED,
}


def new_ids(number: int) -> list[int]:
    """So many keys for new runs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('runs_run', 'id')) FROM generate_series(1, %s)",
            [number],
        )
        return [row[0] for row in cursor.fetchall()]


def copy_runs(
    runs: Sequence[GivenRun],
    *,
    ids: Sequence[int],
    campaign_ids: Sequence[int],
    placed: Sequence[Placed],
    conditions: Sequence[Conditions],
    now: datetime,
) -> None:
    """The runs themselves. Raises IntegrityError for an external id that is there already."""
    rows = zip(runs, ids, campaign_ids, placed, conditions, strict=True)
    _copy(
        f"runs_run ({RUN_COLUMNS})",
        [_run(run, key, campaign, where, what, now) for run, key, campaign, where, what in rows],
    )


def copy_measurements(
    runs: Sequence[GivenRun], *, ids: Sequence[int], metrics: Mapping[str, int]
) -> None:
    """The numbers. Written as text by hand: numbers and fixed words need no escaping."""
    lines = [
        f"{key}\t{metrics[each.metric]}\t{each.value!r}\t{each.n}\t{each.statistic}\n"
        for run, key in zip(runs, ids, strict=True)
        for each in run.measurements
    ]
    if not lines:
        return
    columns = "runs_measurement (run_id, metric_id, value, n, statistic)"
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {columns} FROM STDIN") as copy,
    ):
        copy.write("".join(lines))


def copy_series(runs: Sequence[GivenRun], *, ids: Sequence[int]) -> None:
    """The values over time."""
    rows = [
        (key, each.name, each.unit, each.start, each.interval, _array(each))
        for run, key in zip(runs, ids, strict=True)
        for each in run.series
    ]
    if rows:
        _copy('runs_series (run_id, name, unit, start, "interval", "values")', rows)


def _copy(target: str, rows: Sequence[Sequence[Any]]) -> None:
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {target} FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _run(
    run: GivenRun, key: int, campaign: int, where: Placed, what: Conditions, now: datetime
) -> tuple[Any, ...]:
    return (
        *(key, campaign, where.cell_id, where.repeat),
        # The order of execution is known by `started_at` alone.
        *(0, Origin.UPLOADED.value, STATES[run.status].value, run.code, run.message, "", 1),
        *(what.server_id, what.hardware_id, what.environment_id, what.settings_id),
        *(run.server_version, run.tool_name, run.tool_version),
        json.dumps([dict(note) for note in run.notes]) if run.notes else "[]",
        run.external_id,
        json.dumps(dict(run.labels)) if run.labels else "{}",
        *(now, run.started_at, run.finished_at),
    )


def _array(series: GivenSeries) -> str:
    return "{" + ",".join("NULL" if value is None else repr(value) for value in series.values) + "}"
