"""How the jobs of an uploaded campaign scatter, from its commits before the one in question.

Only what had arrived with the last run of the head counts: no later upload changes an answer.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from runs.analysis.inference.jobs import (
    BASELINE,
    POINTS,
    Jobs,
    Point,
    begins_of,
    learn,
)
from runs.models import Campaign, Change, Revision, Run
from runs.models.runs import SUMMARY_REPEAT
from runs.selectors.compare import cell_runs, comparability, stray_machines
from runs.selectors.compare.cell_runs import CellRuns, Machine
from runs.selectors.compare.comparability import Comparability
from runs.selectors.histories import revisions

_VALUES = """
WITH run AS MATERIALIZED (
    SELECT run.id, cell_id, series_key, revision_id FROM runs_run run
    JOIN runs_cell cell ON cell.id = cell_id
    WHERE cell.campaign_id = %(campaign)s AND revision_id = ANY(%(revisions)s)
        AND series_key = ANY(%(keys)s) AND state = %(finished)s AND repeat <> %(summary)s
        AND run.id <= %(arrived)s AND NOT EXISTS (
            SELECT FROM unnest(%(hardware)s::bigint[], %(environments)s::bigint[])
                AS stray (hardware, environment)
            WHERE hardware_id IS NOT DISTINCT FROM hardware
                AND environment_id IS NOT DISTINCT FROM environment
        )
)
SELECT metric_id, series_key, revision_id, cell_id, array_agg(value ORDER BY run_id)
FROM runs_measurement JOIN run ON run.id = run_id
WHERE metric_id = ANY(%(metrics)s) AND run_id = ANY(ARRAY(SELECT id FROM run))
GROUP BY metric_id, series_key, revision_id, cell_id
"""


@dataclass(frozen=True)
class JobHistory:
    """The points before a head, by (metric, series key): of each commit, the oldest first.

    `cells` are theirs, in the same order; `begins` where stretches without a change begin. Runs on
    the machines of `without` are not among them.
    """

    points: Mapping[tuple[int, str], Mapping[int, Point]] = field(default_factory=dict)
    cells: Mapping[tuple[int, str], Sequence[int]] = field(default_factory=dict)
    begins: Mapping[tuple[int, str], Sequence[int]] = field(default_factory=dict)
    without: frozenset[Machine] = frozenset()
    _jobs: dict[int, Jobs | None] = field(default_factory=dict)

    def jobs(self, metric: int) -> Jobs | None:
        """How jobs scatter by this metric; None where too little is known."""
        if metric not in self._jobs:
            own = {key: points for (of, key), points in self.points.items() if of == metric}
            begins = {key: self.begins[metric, key] for key in own}
            self._jobs[metric] = learn(own, begins) if own else None
        return self._jobs[metric]

    def baseline(self, metric: int, key: str) -> tuple[list[Point], list[int]]:
        """(points, cells) of the present level, the newest first."""
        begin = self.begins.get((metric, key), [0])[-1]
        points = list(self.points.get((metric, key), {}).values())[begin:]
        cells = list(self.cells.get((metric, key), ()))[begin:]
        return points[: -BASELINE - 1 : -1], cells[: -BASELINE - 1 : -1]


def before(
    campaign: Campaign,
    head: Revision,
    heads: Mapping[str, int],
    metrics: Mapping[int, int],
    *,
    ref: str,
    until: int,
    ignore: Collection[str] = (),
    without: Collection[Machine] = (),
) -> JobHistory:
    """The history of a commit's conditions on a branch, on machines like that of the head.

    `heads` are the head's cells by series key, `metrics` the keys of rows with that of their
    metric; `until` is the last run that counts, and `without` has machines whose runs do not. Eight
    queries, whatever the size, and two more where points have runs of several machines.
    """
    made = revisions.last(campaign, head, ref, POINTS, arrived=until)
    place = {revision.pk: number for number, revision in enumerate(reversed(made))}
    rows = _values(campaign, place, list(heads), list(metrics), until, without)
    cells = {cell for _metric, _key, _revision, cell, _values in rows}
    ids = cells | set(heads.values())
    runs = cell_runs.of_cells(ids, until=until, without=without)
    if further := _strays(cells, set(heads.values()), runs, until, without):
        without = frozenset(without) | further
        rows = _values(campaign, place, list(heads), list(metrics), until, without)
        runs = cell_runs.of_cells(ids, until=until, without=without)
    under = comparability.of_cells(ids, runs)
    points: dict[tuple[int, str], dict[int, Point]] = defaultdict(dict)
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for metric, key, revision, cell, values in sorted(rows, key=lambda row: place[row[2]]):
        if min(values) > 0 and _is_alike(under, cell, heads[key], ignore):
            points[metrics[metric], key][revision] = point_of(values)
            found[metrics[metric], key].append(cell)
    dismissed = _dismissed(cells)
    begins = {
        (metric, key): begins_of(
            list(own.values()),
            [at for at, cell in enumerate(found[metric, key]) if (metric, cell) in dismissed],
        )
        for (metric, key), own in points.items()
    }
    return JobHistory(points, found, begins, frozenset(without))


def point_of(values: Sequence[float]) -> Point:
    """The point of runs with these positive values."""
    logs = [math.log(value) for value in values]
    return Point(
        len(logs), statistics.fmean(logs), statistics.variance(logs) if len(logs) > 1 else 0.0
    )


def _strays(
    cells: Collection[int],
    heads: Collection[int],
    runs: Mapping[int, CellRuns],
    until: int,
    without: Collection[Machine],
) -> frozenset[Machine]:
    """The machines of points with runs of several ones that the head does not have."""
    if not any(stray_machines.are_several(runs.get(cell)) for cell in (*cells, *heads)):
        return frozenset()
    found = stray_machines.of_cells([*cells, *heads], until)
    sides = (
        {machine for cell in side for machine in found.get(cell, ())} - set(without)
        for side in (cells, heads)
    )
    return stray_machines.strays(*sides)


def _is_alike(under: Comparability, cell: int, head: int, ignore: Collection[str]) -> bool:
    return not under.judgement(cell, head, ignore=ignore).reasons


def _dismissed(cells: Collection[int]) -> frozenset[tuple[int, int]]:
    """(metric, cell) of steps of which people say that they are none."""
    found = Change.objects.filter(
        cell__in=cells, kind__in=Change.STEPS, decision=Change.Decision.DISMISSED
    )
    return frozenset(found.values_list("metric_id", "cell_id"))


def _values(
    campaign: Campaign,
    place: Mapping[int, int],
    keys: Sequence[str],
    metrics: Sequence[int],
    until: int,
    without: Collection[Machine],
) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            _VALUES,
            {
                "campaign": campaign.pk,
                "revisions": list(place),
                "keys": list(keys),
                "metrics": list(metrics),
                "finished": Run.State.FINISHED.value,
                "summary": SUMMARY_REPEAT,
                "arrived": until,
                "hardware": [machine[0] for machine in without],
                "environments": [machine[1] for machine in without],
            },
        )
        found: list[Any] = cursor.fetchall()
    return found
