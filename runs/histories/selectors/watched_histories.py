"""The ends of histories that new results are analysed with, and the changes known of them."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from runs.analysis.change_points import SAME_PLACE, WINDOW
from runs.analysis.monitoring import MINIMUM_RUNS, RECENT, Known
from runs.cells.selectors import history_points, metrics, revisions
from runs.cells.selectors.history_points import HistoryPoint
from runs.grouping import group_by_key
from runs.histories.selectors import histories, suites
from runs.histories.selectors.suites import SuiteJobs
from runs.models import Campaign, Cell, CellSummary, Change, Measurement, Metric, Run

# For older points the median is enough; an alarm looks at the runs of the last ones.
SINGLE_VALUES = RECENT + MINIMUM_RUNS
MOST_REPEATS = 5


@dataclass(frozen=True)
class Watched:
    """The end of one history of one metric: points, their values, and changes reported for it.

    `last_is_new` says whether the last point has new runs, `jobs` has the values of each job that
    measured it. `moves` are the places at which most series of its suite moved.
    """

    metric: Metric
    points: tuple[HistoryPoint, ...]
    history: tuple[tuple[float, ...], ...]
    known: tuple[Known, ...]
    last_is_new: bool
    jobs: tuple[tuple[float, ...], ...] = ()
    moves: tuple[int, ...] = ()


def watched(
    campaign: Campaign, key: str, cells: Collection[int], suite: SuiteJobs
) -> Iterator[Watched]:
    """The history of each metric with a better direction that these cells of one series have.

    What the jobs of its suite did to all series is taken out of its values.
    Points with values that are not positive are left out: they have no logarithm.
    """
    since = _window_start(campaign, key, cells)
    for metric in _metrics(cells):
        history_found = history_points.find_points(
            campaign, metric, [key], ref=campaign.tracked_ref, since=since
        ).get(key, [])
        points = tuple(point for point in history_found if point.minimum > 0)
        if points:
            single = _single_values(points[-SINGLE_VALUES:], metric)
            yield Watched(
                metric=metric,
                points=points,
                history=_exclude_jobs(
                    _values(points, single), points, metric, suite.parts
                ),
                known=_known(campaign, metric, key, points),
                last_is_new=points[-1].cell in cells,
                jobs=tuple(
                    map(tuple, group_by_key(single.get(_mark(points[-1]), ())).values())
                ),
                moves=tuple(
                    position
                    for position, point in enumerate(points)
                    if point.sha in suite.moves
                ),
            )


def _exclude_jobs(
    values: tuple[tuple[float, ...], ...],
    points: Sequence[HistoryPoint],
    metric: Metric,
    jobs: Mapping[str, float],
) -> tuple[tuple[float, ...], ...]:
    if not jobs or not metrics.is_speed(metric):
        return values
    factors = [
        math.exp(-suites.sign(metric) * jobs.get(point.sha, 0.0)) for point in points
    ]
    return tuple(
        tuple(value * factor for value in values_of_point)
        for values_of_point, factor in zip(values, factors, strict=True)
    )


def _metrics(cells: Collection[int]) -> list[Metric]:
    summarised = CellSummary.objects.filter(cell__in=cells).order_by().values("metric")
    metrics = Metric.objects.filter(pk__in=summarised)
    return list(metrics.exclude(direction=Metric.Direction.NEUTRAL).order_by("name"))


def _window_start(
    campaign: Campaign, key: str, cells: Collection[int]
) -> datetime | None:
    """The start of the window: this many revisions before the oldest one with new runs."""
    moments = [
        revisions.moment_of(cell.revision)
        for cell in Cell.objects.filter(pk__in=cells).select_related("revision")
        if cell.revision is not None
    ]
    if not moments:
        return None
    of_series = revisions.tracked(campaign).filter(
        cells__campaign=campaign, cells__series_key=key
    )
    before = of_series.filter(made_at__lt=min(moments))  # type: ignore[misc]  # annotated
    oldest = before.values_list(revisions.MADE_AT, flat=True)[WINDOW + SAME_PLACE :]
    return oldest.first()


Mark = tuple[int, date | None]
OfJob = tuple[str, float]
"""A run's job, empty where it is not known, and its value."""


def _values(
    points: Sequence[HistoryPoint], single: Mapping[Mark, Sequence[OfJob]]
) -> tuple[tuple[float, ...], ...]:
    older, recent = points[:-SINGLE_VALUES], points[-SINGLE_VALUES:]
    return (
        *((point.median,) * min(point.n, MOST_REPEATS) for point in older),
        *(
            tuple(value for _job, value in single.get(_mark(point), ()))
            or (point.median,)
            for point in recent
        ),
    )


def _mark(point: HistoryPoint) -> Mark:
    return point.cell, None if point.sha else point.at.date()


def _single_values(
    points: Sequence[HistoryPoint], metric: Metric
) -> dict[Mark, list[OfJob]]:
    rows = Measurement.objects.filter(
        metric=metric,
        run__cell__in={point.cell for point in points},
        run__state=Run.State.FINISHED,
    )
    by_day = not points[0].sha
    if by_day:
        rows = rows.filter(
            run__started_at__gte=points[0].at,
            run__started_at__lt=points[-1].at + timedelta(days=1),
        )
    values_of: dict[Mark, list[OfJob]] = defaultdict(list)
    values = rows.order_by("run_id").values(
        "run__cell_id", "run__started_at", "run__labels__job", "value"
    )
    for row in values:
        started_at = row["run__started_at"]
        day = started_at.astimezone(UTC).date() if by_day and started_at else None
        values_of[row["run__cell_id"], day].append(
            (row["run__labels__job"] or "", row["value"])
        )
    return dict(values_of)


def _known(
    campaign: Campaign, metric: Metric, key: str, points: Sequence[HistoryPoint]
) -> tuple[Known, ...]:
    return tuple(
        Known(
            id=change.pk,
            kind="step" if change.kind in Change.STEPS else "alarm",
            position=position,
            ratio=change.ratio,
            settled=change.decision != Change.Decision.OPEN,
            refuted=change.decision == Change.Decision.REFUTED,
            by_person=change.decided_at is not None,
        )
        for change in histories.changes(campaign, metric, [key])
        if (position := histories.place(change, points)) is not None
    )
