"""The slices of runs that were measured in turn, as stored in their series."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from runs.analysis.slices import SlicedRun
from runs.grouping import group_by_key
from runs.models import Run
from runs.shared import queries
from runs.tools import known_metrics

# The series that have the values of a run's slices, by metric.
SERIES = {
    known_metrics.TPS.name: known_metrics.SLICE_TPS.name,
    known_metrics.LATENCY_AVERAGE.name: known_metrics.SLICE_LATENCY.name,
}
_SLICES = """
SELECT run.id, cell_id, server_id, repeat, name, start, values
FROM runs_run AS run JOIN runs_series ON run_id = run.id AND name = ANY(%(names)s)
WHERE cell_id = ANY(%(cells)s) AND state = %(finished)s
ORDER BY run.id, name
"""


def list_sliced_runs(cells: Collection[int]) -> list[SlicedRun]:
    """The finished runs of cells that were measured in turn, with their slices. One query."""
    at, foreign = known_metrics.SLICE_AT.name, known_metrics.SLICE_FOREIGN.name
    values = {
        "cells": list(cells),
        "names": [*SERIES.values(), at, foreign],
        "finished": Run.State.FINISHED.value,
    }
    rows = map(_SliceRow._make, queries.rows(_SLICES, values))
    runs = []
    for series in group_by_key((row.run, row) for row in rows).values():
        of_name = {row.name: row for row in series}
        if at not in of_name:
            continue
        begun, shares = of_name[at], of_name.get(foreign)
        run = SlicedRun(
            begun.cell,
            begun.server,
            begun.repeat,
            [
                None if moment is None else begun.start + moment
                for moment in begun.values
            ],
            shares.values if shares else (),
            {
                metric: of_name[name].values
                for metric, name in SERIES.items()
                if name in of_name
            },
        )
        runs.append(run)
    return runs


class _SliceRow(NamedTuple):
    """A row of `_SLICES`."""

    run: int
    cell: int
    server: int | None
    repeat: int
    name: str
    start: float
    values: Sequence[float | None]
