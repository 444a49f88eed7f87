"""Two commits that were not measured by one job alone: what a job does is part of the answer.

What a job does to all of its runs is in none of their differences. Where jobs measured both commits
the runs of these jobs alone are compared, by their own conditions, and where some of these measured
them in turn, those of them alone; else the scatter of jobs before them is part of the error.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from runs.analysis.change_points import SAME_PLACE
from runs.analysis.inference import Cell, Inference, Model, Pair
from runs.analysis.inference.job_prior import JobPoint
from runs.analysis.inference.job_scatter import (
    POINTS,
    JobAnswer,
    JobRow,
    begins_of,
    judge_jobs,
)
from runs.analysis.inference.rounding import resolution, rounding
from runs.analysis.summary import Summary, summarise
from runs.cells.selectors import revisions
from runs.compare.selectors.load import comparability, stored_cells
from runs.compare.selectors.load.comparability import Comparability
from runs.compare.selectors.load.stored_cells import CellRuns, Machine
from runs.models import Campaign, Change, Metric, Revision, Run
from runs.models import Cell as StoredCell
from runs.models.campaigns import Origin
from runs.models.runs import SUMMARY_REPEAT
from runs.shared import queries

_VALUES = """
WITH run AS MATERIALIZED (
    SELECT run.id, cell_id, series_key, revision_id, coalesce(run.labels->>'job', '') AS job
    FROM runs_run run
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
SELECT metric_id, series_key, revision_id, cell_id, job, min(run_id),
    array_agg(value ORDER BY run_id)
FROM runs_measurement JOIN run ON run.id = run_id
WHERE metric_id = ANY(%(metrics)s) AND run_id = ANY(ARRAY(SELECT id FROM run))
GROUP BY metric_id, series_key, revision_id, cell_id, job
"""

JobKey = tuple[int, str]
"""The key of a commit, and the job that measured it (empty where it is not stated)."""


class _ValuesRow(NamedTuple):
    """The values of a metric that a job measured in a cell; `first` is its first run."""

    metric: int
    key: str
    revision: int
    cell: int
    job: str
    first: int
    values: Sequence[float]


@dataclass(frozen=True)
class JobHistory:
    """The jobs before a head, by (metric, series key), the oldest first, and those of the head.

    `cells` are those of the points by their commit; `begins` where stretches without a change begin
    as far as changes are known. Runs on the machines of `without` are not among them.
    """

    points: Mapping[tuple[int, str], Sequence[JobPoint]] = field(default_factory=dict)
    heads: Mapping[tuple[int, str], Sequence[JobPoint]] = field(default_factory=dict)
    cells: Mapping[tuple[int, str], Mapping[int, int]] = field(default_factory=dict)
    begins: Mapping[tuple[int, str], Sequence[int]] = field(default_factory=dict)
    without: frozenset[Machine] = frozenset()

    def row(self, metric: int, key: str, *, head: Sequence[JobPoint] = ()) -> JobRow:
        """What is known of a condition; `head` stands for its jobs where they are not stored."""
        place = (metric, key)
        return JobRow(
            self.heads.get(place) or head,
            self.points.get(place, ()),
            self.begins.get(place, (0,)),
        )


def history_before(
    campaign: Campaign,
    head: Revision,
    heads: Mapping[str, int],
    metrics: Mapping[int, int],
    *,
    ref: str,
    until: int,
    ignore: Collection[str] = (),
    without: Collection[Machine] = (),
    exact: Collection[int] = (),
) -> JobHistory:
    """The history of a commit's conditions on a branch, on machines like that of the head.

    `heads` are the head's cells by series key, `metrics` the keys of rows with that of their
    metric; `until` is the last run that counts, and `without` has machines whose runs do not. Whole
    numbers of `exact` metrics are not rounded. Eight
    queries, whatever the size, and two more where points have runs of several machines.
    """
    last_revisions = revisions.last(campaign, head, ref, POINTS, arrived=until)
    position_of = {
        revision.pk: number for number, revision in enumerate(reversed(last_revisions))
    }
    position_of[head.pk] = len(position_of)
    rows = _values(campaign, position_of, list(heads), list(metrics), until, without)
    cells = {row.cell for row in rows if row.revision != head.pk}
    ids = cells | set(heads.values())
    runs = stored_cells.read_runs(ids, until=until, without=without)
    if further_strays := _strays(cells, set(heads.values()), runs, until, without):
        without = frozenset(without) | further_strays
        rows = _values(
            campaign, position_of, list(heads), list(metrics), until, without
        )
        runs = stored_cells.read_runs(ids, until=until, without=without)
    comparability_known = comparability.read_comparability(ids, runs)
    points: dict[tuple[int, str], list[JobPoint]] = defaultdict(list)
    of_head: dict[tuple[int, str], list[JobPoint]] = defaultdict(list)
    cells_of: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
    units = _units(rows, metrics, exact)
    for row in sorted(rows, key=lambda row: (position_of[row.revision], row.first)):
        if min(row.values) <= 0:
            continue
        key = (metrics[row.metric], row.key)
        point = point_of(
            row.values, key=(row.revision, row.job), unit=units[metrics[row.metric]]
        )
        if row.revision == head.pk:
            of_head[key].append(point)
            continue
        judgement = comparability_known.judgement(
            row.cell, heads[row.key], ignore=ignore
        )
        if not judgement.reasons:
            points[key].append(point)
            cells_of[key][row.revision] = row.cell
    standing, dismissed = _changes(cells)
    begins = {
        key: _begins(points_of_key, cells_of[key], key[0], standing, dismissed)
        for key, points_of_key in points.items()
    }
    return JobHistory(points, of_head, cells_of, begins, frozenset(without))


def _begins(
    points: Sequence[JobPoint],
    cells: Mapping[int, int],
    metric: int,
    standing: Collection[tuple[int, int]],
    dismissed: Collection[tuple[int, int]],
) -> list[int]:
    """Where stretches begin: at steps that are found here, and at changes that stand."""
    cell_of = [cells[point.key[0]] for point in points]  # type: ignore[index]  # a JobKey
    ignored = [
        place for place, cell in enumerate(cell_of) if (metric, cell) in dismissed
    ]
    begins = begins_of(points, ignored)
    for place, cell in enumerate(cell_of):
        is_first = place and cell_of[place - 1] != cell
        if is_first and (metric, cell) in standing:
            # Of two places of one change the stored one is right.
            begins = [
                begin
                for begin in begins
                if not begin or abs(begin - place) > SAME_PLACE
            ]
            begins.append(place)
    return sorted(begins)


def _units(
    rows: Iterable[_ValuesRow], metrics: Mapping[int, int], exact: Collection[int]
) -> dict[int, float]:
    """The last decimal of each metric's values; `exact` are the metrics whose whole ones are."""
    values: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        values[metrics[row.metric]] += row.values
    return {
        metric: resolution(values_of_metric, is_whole_exact=metric in exact)
        for metric, values_of_metric in values.items()
    }


def point_of(
    values: Sequence[float], *, key: JobKey | None = None, unit: float = 0.0
) -> JobPoint:
    """The point of runs with these positive values."""
    logs = [math.log(value) for value in values]
    return JobPoint(
        len(logs),
        statistics.fmean(logs),
        statistics.variance(logs) if len(logs) > 1 else 0.0,
        rounding(values, unit),
        key,
    )


def _strays(
    cells: Collection[int],
    heads: Collection[int],
    runs: Mapping[int, CellRuns],
    until: int,
    without: Collection[Machine],
) -> frozenset[Machine]:
    """The machines of points with runs of several ones that the head does not have."""
    if not any(comparability.are_several(runs.get(cell)) for cell in (*cells, *heads)):
        return frozenset()
    machines_found = comparability.machines_of_cells([*cells, *heads], until)
    sides = (
        {machine for cell in side for machine in machines_found.get(cell, ())}
        - set(without)
        for side in (cells, heads)
    )
    return comparability.strays(*sides)


def _changes(
    cells: Collection[int],
) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    """(metric, cell) of changes that stand, and of steps of which people say that they are none."""
    standing: set[tuple[int, int]] = set()
    dismissed: set[tuple[int, int]] = set()
    changes = Change.objects.filter(cell__in=cells).only(
        "kind", "decision", "metric", "cell"
    )
    for change in changes:
        place = (change.metric_id, change.cell_id)
        if change.decision == Change.Decision.DISMISSED and change.kind in Change.STEPS:
            dismissed.add(place)
        elif change.decision not in Change.GONE:
            standing.add(place)
    return frozenset(standing), frozenset(dismissed)


def _values(
    campaign: Campaign,
    position_of: Mapping[int, int],
    keys: Sequence[str],
    metrics: Sequence[int],
    until: int,
    without: Collection[Machine],
) -> list[_ValuesRow]:
    values = {
        "campaign": campaign.pk,
        "revisions": list(position_of),
        "keys": list(keys),
        "metrics": list(metrics),
        "finished": Run.State.FINISHED.value,
        "summary": SUMMARY_REPEAT,
        "arrived": until,
        "hardware": [machine[0] for machine in without],
        "environments": [machine[1] for machine in without],
    }
    return [_ValuesRow(*row) for row in queries.rows(_VALUES, values)]


CellPair = tuple[int | None, int | None]


@dataclass(frozen=True)
class SharedRuns:
    """The cells of two commits, for one metric, with the runs of the jobs that both have.

    `places` are the pairs (base, head) of cells that have at least two such runs a side.
    """

    model: Model
    places: Mapping[CellPair, Pair]

    def summaries(self, pair: CellPair) -> tuple[Summary, Summary]:
        """What is told of both sides: their runs of these jobs."""
        places = self.places[pair]
        sides = [
            self.model.cells[position or 0] for position in (places.base, places.head)
        ]
        base, head = map(summary_of, sides)
        return base, head


def summary_of(cell: Cell) -> Summary:
    """What is told of the runs of a cell."""
    return summarise(cell.values)


def _jobs_of(
    base: Collection[str], head: Collection[str], turns: Collection[str]
) -> frozenset[str]:
    """The jobs that measured both sides, in `turns` if there are such.

    Runs that state none have none in common.
    """
    shared = frozenset(base) & frozenset(head) - {""}
    return shared & frozenset(turns) or shared


def _runs_of(
    pairs: Sequence[tuple[int, int]], stored: Mapping[int, Cell], turns: Collection[str]
) -> SharedRuns:
    """The runs that both sides of these pairs share; `stored` are all cells with the metric."""
    cells: list[Cell] = []
    places: dict[CellPair, Pair] = {}
    for base, head in pairs:
        common = _jobs_of(stored[base].jobs, stored[head].jobs, turns)
        sides = [stored[side].select_jobs(common) for side in (base, head)]
        if min(side.n for side in sides) > 1:
            places[base, head] = Pair(len(cells), len(cells) + 1)
            cells += sides
    return SharedRuns(Model(cells, turns={cell.campaign for cell in cells}), places)


@dataclass(frozen=True)
class SharedConditions:
    """The runs of shared jobs by cell, and under what they were made."""

    runs: Mapping[int, CellRuns]
    comparability: Comparability


@dataclass(frozen=True)
class TwoJobs:
    """What is known of pairs of cells whose sides other jobs have measured; see Judge."""

    cells: Mapping[int, StoredCell]
    campaigns: Mapping[int, Campaign]
    runs: Mapping[int, CellRuns]
    stored: Mapping[tuple[int, int], Cell]
    keys: Mapping[int, Sequence[int]]
    of_campaign: Mapping[int, Sequence[StoredCell]]
    without: Collection[Machine] = ()
    _histories: dict[Hashable, JobHistory] = field(default_factory=dict)
    _answers: dict[Hashable, dict[str, JobAnswer]] = field(default_factory=dict)
    _shared: dict[Hashable, SharedRuns] = field(default_factory=dict)
    _conditions: dict[Hashable, SharedConditions] = field(default_factory=dict)

    @cached_property
    def _turns(self) -> frozenset[str]:
        """The jobs that measured both sides of a pair in turn."""
        return frozenset(job for runs in self.runs.values() for job in runs.turns)

    def are_two(self, pair: CellPair) -> bool:
        """Whether one job measured the base and another one the head, of an uploaded campaign.

        So it is where a job measured both in turn, and another one measured them as well.
        Runs that do not state their job are those of their commit's. A job for each run needs no
        scatter of its own: that of the runs has it.
        """
        cells = [self.cells[side] for side in pair if side and side in self.cells]
        owners = {cell.campaign_id for cell in cells}
        if len(cells) < 2 or len(owners) > 1:
            return False
        if self.campaigns[owners.pop()].origin != Origin.UPLOADED:
            return False
        sides = [(cell, self.runs.get(cell.pk, CellRuns())) for cell in cells]
        jobs_of_sides = [
            {job or (cell.revision_id or "") for job in runs.jobs}
            for cell, runs in sides
        ]
        in_turn = jobs_of_sides[0] & jobs_of_sides[1] & self._turns
        if in_turn and (jobs_of_sides[0] | jobs_of_sides[1]) - in_turn:
            return True
        is_single = all(
            1 < runs.count == len(set(runs.jobs) - {""}) for _cell, runs in sides
        )
        return jobs_of_sides[0] != jobs_of_sides[1] and not is_single

    def shared(self, metric: Metric, pair: CellPair) -> SharedRuns | None:
        """The runs of jobs that measured both sides, where others measured one of them.

        None where there are none, or one job measured both alone.
        """
        base, head = (self.cells.get(side or 0) for side in pair)
        if base is None or head is None or not self.are_two(pair):
            return None
        key = (metric.pk, base.campaign_id, base.revision_id, head.revision_id)
        if key not in self._shared:
            pairs = same_series(
                self.of_campaign[base.campaign_id],
                [base.revision_id or 0, head.revision_id or 0],
            )
            stored = {
                cell: stored_cell
                for (cell, cell_metric), stored_cell in self.stored.items()
                if cell_metric == metric.pk
            }
            measured_pairs = [
                pair for pair in pairs if pair[0] in stored and pair[1] in stored
            ]
            self._shared[key] = _runs_of(measured_pairs, stored, self._turns)
        return self._shared[key] if pair in self._shared[key].places else None

    def conditions(self, pair: CellPair) -> SharedConditions:
        """Under what the jobs measured that both commits have. Two queries for all their cells."""
        key = tuple(self.cells[side or 0].revision_id for side in pair)
        if key not in self._conditions:
            jobs_of_revision: dict[int | None, set[str]] = defaultdict(set)
            for cell, runs in self.runs.items():
                jobs_of_revision[self.cells[cell].revision_id].update(runs.jobs)
            base, head = (jobs_of_revision[revision] for revision in key)
            shared = _jobs_of(base, head, self._turns)
            cells = [cell for cell in self.runs if self.cells[cell].revision_id in key]
            runs_of_cells = stored_cells.read_runs(
                cells, jobs=shared, without=self.without
            )
            self._conditions[key] = SharedConditions(
                runs_of_cells, comparability.read_comparability(cells, runs_of_cells)
            )
        return self._conditions[key]

    def judge(
        self,
        metric: Metric,
        pair: CellPair,
        effect: float,
        ignore: Collection[str],
        share: int,
    ) -> Inference:
        """The answer of two jobs, by a prior and the jobs of the history before them.

        `share` is how many metrics have this one's error rate together.
        """
        base, head = (self.cells[side] for side in pair if side)
        keys = self._common(base, head, metric)
        is_row = base.series_key == head.series_key and base.series_key in keys
        pairs = (
            self._rows(base, head, keys)
            if is_row
            else {head.series_key: (base.pk, head.pk)}
        )
        place = (metric.pk, tuple(pairs.values()), effect, tuple(ignore), share)
        if place not in self._answers:
            history = self._history(base, head, ignore)
            rows = {
                key: self._row(history, metric, key, of_pair)
                for key, of_pair in pairs.items()
            }
            measured_rows = {key: row for key, row in rows.items() if row is not None}
            self._answers[place] = judge_jobs(
                measured_rows,
                direction=metric.direction,  # type: ignore[arg-type]
                effect=effect,
                share=share,
            )
        answer = self._answers[place].get(head.series_key)
        if answer is None:
            return Inference("not_comparable", reasons=("not_positive",))
        return answer.inference

    def _rows(
        self, base: StoredCell, head: StoredCell, keys: Collection[str]
    ) -> dict[str, tuple[int, int]]:
        """The cells of both commits by their condition."""
        cells_of: list[dict[str, int]] = [
            {
                cell.series_key: cell.pk
                for cell in self.of_campaign[side.campaign_id]
                if cell.revision_id == side.revision_id
            }
            for side in (base, head)
        ]
        return {key: (cells_of[0][key], cells_of[1][key]) for key in sorted(keys)}

    def _row(
        self, history: JobHistory, metric: Metric, key: str, pair: tuple[int, int]
    ) -> JobRow | None:
        """None where a value is not positive."""
        sides = [
            _points(self.stored[side, metric.pk], self.cells[side].revision_id or 0)
            for side in pair
        ]
        if not all(sides):
            return None
        points = history.points.get((metric.pk, key), ())
        begins = history.begins.get((metric.pk, key), (0,))
        return JobRow(sides[1], points, begins, sides[0])

    def _common(self, base: StoredCell, head: StoredCell, metric: Metric) -> set[str]:
        """The conditions of which both commits have the metric."""
        keys: list[set[str]] = [
            {
                cell.series_key
                for cell in self.of_campaign[side.campaign_id]
                if cell.revision_id == side.revision_id
                and (cell.pk, metric.pk) in self.stored
            }
            for side in (base, head)
        ]
        return keys[0] & keys[1]

    def _history(
        self, base: StoredCell, head: StoredCell, ignore: Collection[str]
    ) -> JobHistory:
        """The points before the later of both commits; without commits there are none."""
        key = (base.revision_id, head.revision_id, tuple(ignore))
        if key not in self._histories:
            self._histories[key] = self._loaded_history(base, head, ignore)
        return self._histories[key]

    def _loaded_history(
        self, base: StoredCell, head: StoredCell, ignore: Collection[str]
    ) -> JobHistory:
        revision_keys = [key for key in (base.revision_id, head.revision_id) if key]
        revisions_by_key = Revision.objects.in_bulk(revision_keys)
        if len(revisions_by_key) < len(set(revision_keys)) or len(revision_keys) < 2:
            return JobHistory()
        campaign = self.campaigns[head.campaign_id]
        later = max(
            (revisions_by_key[key] for key in reversed(revision_keys)),
            key=revisions.moment_of,
        )
        cell_of_series = {
            cell.series_key: cell.pk
            for cell in self.of_campaign[campaign.pk]
            if cell.revision_id == later.pk and cell.series_key
        }
        # Of the later commit the jobs are those of the pair.
        return history_before(
            campaign,
            later,
            cell_of_series,
            {key: metric for metric, keys in self.keys.items() for key in keys},
            ref=campaign.tracked_ref or revisions_by_key[revision_keys[0]].ref,
            until=revisions.arrived(campaign, revisions_by_key.values()),
            ignore=ignore,
            without=self.without,
        )


def same_series(
    cells: Iterable[StoredCell], revisions: Sequence[int]
) -> list[tuple[int, int]]:
    """The conditions that both revisions have: (cell of the first, cell of the second)."""
    cells_of = [
        {
            cell.series_key: cell.pk
            for cell in cells
            if (cell.revision_id or 0) == revision
        }
        for revision in revisions
    ]
    return [
        (cells_of[0][key], cells_of[1][key])
        for key in cells_of[0]
        if key in cells_of[1]
    ]


def _points(cell: Cell, revision: int) -> list[JobPoint]:
    """A point for each job of the cell's runs; none where a value is not positive."""
    if cell.mean is None:
        return []
    if not cell.logs or len(cell.jobs) != len(cell.logs):
        return [
            JobPoint(
                cell.n, cell.mean, cell.variance or 0.0, cell.rounding, (revision, "")
            )
        ]
    points = []
    for job in dict.fromkeys(cell.jobs):
        runs = cell.select_jobs([job])
        points.append(
            JobPoint(
                runs.n,
                runs.mean or 0.0,
                runs.variance or 0.0,
                runs.rounding,
                (revision, job),
            )
        )
    return points
