"""The points of a history: one per revision, or one per day if uploads name no revision."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import (
    Aggregate,
    BooleanField,
    Count,
    Exists,
    F,
    FloatField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import TruncDay

from runs.analysis.lineage import Commit, left_behind
from runs.cells.selectors import revisions
from runs.grouping import group_by_key
from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Change,
    Measurement,
    Metric,
    RevisionRef,
    Run,
)
from runs.shared import queries

OF_CELL = revisions.made_at("cell__revision")
# By a statement of its own: of hundreds of cells Django takes twice the time of PostgreSQL.
_FIRST_RUNS = """
    SELECT DISTINCT ON (cell_id) cell_id, id, hardware_id, environment_id FROM runs_run
    WHERE cell_id = ANY(%s) AND state = %s ORDER BY cell_id, id
"""


# The next series is searched for in an index: each has more commits every day.
_SERIES = """
    WITH RECURSIVE known AS (
        SELECT min(series_key) AS key FROM runs_cell
        WHERE campaign_id = %(campaign)s AND series_key > ''
        UNION ALL
        SELECT (SELECT min(series_key) FROM runs_cell
                WHERE campaign_id = %(campaign)s AND series_key > known.key)
        FROM known WHERE known.key IS NOT NULL
    )
    SELECT first.* FROM known CROSS JOIN LATERAL (
        SELECT * FROM runs_cell WHERE campaign_id = %(campaign)s AND series_key = known.key
        ORDER BY ordinal, id LIMIT 1
    ) AS first ORDER BY series_key
"""
# The newest cells of each series, and one more, which says that there are older ones.
_NEWEST = """
    SELECT newest.id, place > %(number)s + %(skip)s FROM unnest(%(keys)s::text[]) AS wanted (key)
    CROSS JOIN LATERAL (
        SELECT cell.id, row_number() OVER (ORDER BY commit_at DESC, cell.id DESC) AS place
        FROM runs_cell cell JOIN runs_revision revision ON revision.id = revision_id
        WHERE campaign_id = %(campaign)s AND series_key = wanted.key AND (
            %(ref)s = '' OR revision.ref = %(ref)s OR EXISTS (
                SELECT FROM runs_revisionref WHERE revision_id = revision.id AND ref = %(ref)s))
        ORDER BY commit_at DESC, cell.id DESC LIMIT %(number)s + 1 OFFSET %(skip)s
    ) AS newest
"""


class FirstRun(NamedTuple):
    """The first finished run of a cell, with the keys of its hardware and environment."""

    run: int
    hardware: int | None
    environment: int | None


class HistoryPoint(NamedTuple):
    """What was measured for a revision, or on a day (UTC). `run` is the first one, if known.

    `sha`, `ref` and `url` are empty for a day; `first` is what is known of the first run.
    """

    at: datetime
    cell: int
    n: int
    median: float
    minimum: float
    maximum: float
    run: int | None = None
    sha: str = ""
    ref: str = ""
    url: str = ""
    first: FirstRun | None = None


class Median(Aggregate):
    """PostgreSQL's median."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


Points = dict[str, list[HistoryPoint]]


@dataclass(frozen=True)
class Window:
    """The newest commits of each series: `cells`, and whether there are older ones."""

    cells: tuple[int, ...]
    has_older: bool
    skip: int

    @property
    def is_part(self) -> bool:
        """Whether there are commits outside of it."""
        return self.has_older or self.skip > 0


def newest(
    campaign: Campaign, keys: Collection[str], *, ref: str, number: int, skip: int = 0
) -> Window:
    """The cells of the `number` newest commits of each series behind the `skip` newest. One query.

    What was measured without a commit is in no window.
    """
    values = {"campaign": campaign.pk, "keys": list(keys), "ref": ref}
    cell_rows = queries.rows(
        _NEWEST, {**values, "number": number, "skip": skip}, of=Cell
    )
    cells = tuple(cell for cell, is_beyond in cell_rows if not is_beyond)
    return Window(cells, len(cells) < len(cell_rows), skip)


def cell_condition(cells: Collection[int], model: type[CellSummary | Change]) -> RawSQL:
    """The condition that rows are of these cells, as one parameter: Django takes long of many."""
    sql = f"{model._meta.db_table}.cell_id = ANY(%s)"
    return RawSQL(sql, (list(cells),), BooleanField())  # noqa: S611 -- our names


def series(campaign: Campaign) -> Iterable[Cell]:
    """A cell of each history of a campaign, in the order of their keys."""
    return Cell.objects.raw(_SERIES, {"campaign": campaign.pk})


def find_points(
    campaign: Campaign,
    metric: Metric,
    keys: Collection[str],
    *,
    ref: str = "",
    since: datetime | None = None,
    window: Window | None = None,
) -> Points:
    """The points of each history, the oldest first. Two queries.

    Revisions are those of the branch `ref`, if given, without those that a branch has left behind.
    A history with any revision leaves out uploads without one. Both start at `since`, and commits
    are those of a window.
    """
    chosen = [] if window is None else [cell_condition(window.cells, CellSummary)]
    rows = CellSummary.objects.filter(
        *chosen,
        metric=metric,
        cell__campaign=campaign,
        cell__series_key__in=keys,
        cell__revision__isnull=False,
    )
    if since:
        rows = rows.alias(made_at=OF_CELL).filter(made_at__gte=since)
    points_of = _revisions(rows, ref)
    days = _days(campaign, metric, [key for key in keys if key not in points_of], since)
    return {**days, **points_of}


def first_runs(cells: Collection[int]) -> dict[int, FirstRun]:
    """The first finished run of each cell that has one. One query."""
    run_rows = queries.rows(
        _FIRST_RUNS, (list(cells), Run.State.FINISHED.value), of=Run
    )
    return {cell: FirstRun(*run_columns) for cell, *run_columns in run_rows}


def _revisions(rows: QuerySet[CellSummary], ref: str) -> Points:
    if ref:
        further_refs = RevisionRef.objects.filter(
            revision=OuterRef("cell__revision"), ref=ref
        )
        rows = rows.filter(Q(cell__revision__ref=ref) | Q(Exists(further_refs)))
    of_cell = ("cell__series_key", "cell_id", "n", "median", "minimum", "maximum")
    of_revision = ("cell__revision__sha", "cell__revision__ref", "cell__revision__url")
    ordered = rows.order_by(OF_CELL, "cell__revision_id")
    points_of: Points = defaultdict(list)
    parents: dict[str, list[str]] = {}
    refs: dict[str, str] = {}
    columns = [*of_cell, *of_revision, "cell__revision__parents"]
    for row in ordered.values(*columns, moment=OF_CELL):
        sha, branch = row["cell__revision__sha"], row["cell__revision__ref"]
        parents[sha], refs[sha] = row["cell__revision__parents"], branch
        point = HistoryPoint(
            row["moment"],
            row["cell_id"],
            row["n"],
            row["median"],
            row["minimum"],
            row["maximum"],
            sha=sha,
            ref=branch,
            url=row["cell__revision__url"],
        )
        points_of[row["cell__series_key"]].append(point)
    left_shas = left_behind(
        Commit(sha, ref or refs[sha], of_sha) for sha, of_sha in parents.items()
    )
    return {
        key: [
            point
            for point in sort_by_commit(points, parents)
            if point.sha not in left_shas
        ]
        for key, points in points_of.items()
    }


def sort_by_commit(
    points: Sequence[HistoryPoint], parents: Mapping[str, Sequence[str]]
) -> list[HistoryPoint]:
    """Points in the order of their times, but none before a parent that is among them.

    A clock that is wrong, or a commit that was rebased, dates a child before its parent. Such a
    child takes its parent's time, so that the order on the axis is that of the commits.
    """
    shas = {point.sha for point in points}
    before: dict[str, int] = {}
    after: dict[str, list[str]] = defaultdict(list)
    for point in points:
        own_parents = {
            sha
            for sha in parents.get(point.sha, ())
            if sha in shas and sha != point.sha
        }
        before[point.sha] = len(own_parents)
        for sha in own_parents:
            after[sha].append(point.sha)
    position_of = {point.sha: number for number, point in enumerate(points)}
    ready = [number for number, point in enumerate(points) if not before[point.sha]]
    heapq.heapify(ready)
    ordered_points: list[HistoryPoint] = []
    while ready:
        point = points[heapq.heappop(ready)]
        moment = max(point.at, ordered_points[-1].at) if ordered_points else point.at
        ordered_points.append(
            point._replace(at=moment) if moment != point.at else point
        )
        for sha in after[point.sha]:
            before[sha] -= 1
            if not before[sha]:
                heapq.heappush(ready, position_of[sha])
    # Commits that name each other as parents are in no order at all.
    return ordered_points if len(ordered_points) == len(points) else list(points)


def _days(
    campaign: Campaign, metric: Metric, keys: Sequence[str], since: datetime | None
) -> Points:
    if not keys:
        return {}
    rows = Measurement.objects.filter(
        metric=metric,
        run__campaign=campaign,
        run__state=Run.State.FINISHED,
        run__cell__series_key__in=keys,
        run__cell__revision=None,
    )
    if since:
        rows = rows.filter(run__started_at__gte=since)
    days = (
        rows.annotate(
            key=F("run__cell__series_key"), day=TruncDay("run__started_at", tzinfo=UTC)
        )
        .order_by("day")
        .values_list("key", "day", "run__cell_id")
        .annotate(
            number=Count("pk"),
            median=Median("value"),
            low=Min("value"),
            high=Max("value"),
            first=Min("run_id"),
        )
    )
    return group_by_key((key, HistoryPoint(*of_day)) for key, *of_day in days)
