"""Histories for readers: a limited number of points, and the changes among them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from runs.charts.timeline import thin
from runs.models import Campaign, CellSummary, Change, Metric
from runs.selectors.campaigns import metrics
from runs.selectors.compare import series_cells
from runs.selectors.compare.series_keys import level_text
from runs.selectors.histories import points as history_points
from runs.selectors.histories.points import HistoryPoint

MOST_SERIES = 20
MOST_STANDING = 20
# What an answer of 150 kB has room for.
MOST_POINTS = 700


@dataclass(frozen=True)
class History:
    """One series: its levels, and its points with the changes. `total` counts all its points."""

    key: str
    levels: Mapping[str, Any]
    points: tuple[HistoryPoint, ...]
    total: int
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Histories:
    """The requested histories of a campaign; `more` are left out."""

    campaign: Campaign
    metric: Metric | None
    ref: str
    series: tuple[History, ...] = ()
    more: int = 0


def metrics_of(campaign: Campaign) -> list[Metric]:
    """The metrics that a campaign has, the most useful first."""
    summarised = CellSummary.objects.filter(cell__campaign=campaign).order_by()
    return metrics.by_use(Metric.objects.filter(pk__in=summarised.values("metric")))


def histories(
    campaign: Campaign,
    *,
    metric: Metric | None = None,
    levels: Sequence[tuple[str, str]] = (),
    ref: str = "",
) -> Histories:
    """The histories under these levels (text), of the campaign's first metric if none is given.

    Without a `ref` it uses the branch that the campaign tracks. Eight queries at most.
    """
    metric = metric or metrics.primary(campaign)
    ref = ref or campaign.tracked_ref
    if metric is None:
        return Histories(campaign, None, ref)
    found = _series(campaign, levels)
    shown = dict(list(found.items())[:MOST_SERIES])
    points = history_points.of(campaign, metric, list(shown), ref=ref)
    known = _changes(campaign, metric, list(shown))
    most = MOST_POINTS // max(len(points), 1)
    made = [
        _history(key, shown[key], points[key], known[key], most) for key in shown if key in points
    ]
    return Histories(campaign, metric, ref, _with_runs(made), more=len(found) - len(shown))


def _series(campaign: Campaign, levels: Sequence[tuple[str, str]]) -> dict[str, Mapping[str, Any]]:
    found = {}
    for cell in history_points.series(campaign):
        under = ({series_cells.VERSION: cell.version} if cell.version else {}) | cell.levels
        if all(level_text(under.get(name, "")) == text for name, text in levels):
            found[cell.series_key] = under
    return found


def all_changes() -> QuerySet[Change]:
    """Every change with what its row shows, the newest first."""
    related = ("cell__campaign", "cell__revision", "metric", "run", "decided_by")
    found = Change.objects.select_related(*related).defer("run__plan")
    return found.order_by("-pk")


def standing(campaign: Campaign) -> list[Change]:
    """The changes of a campaign that nobody and nothing took back, the newest first."""
    gone = (Change.Decision.DISMISSED, Change.Decision.REFUTED)
    found = all_changes().filter(cell__campaign=campaign).exclude(decision__in=gone)
    return list(found[:MOST_STANDING])


def changes(campaign: Campaign, metric: Metric, keys: Collection[str]) -> QuerySet[Change]:
    """The changes of these histories, in the order in which they were found."""
    found = all_changes().filter(metric=metric, cell__campaign=campaign, cell__series_key__in=keys)
    return found.order_by("pk")


def _changes(campaign: Campaign, metric: Metric, keys: Collection[str]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes(campaign, metric, keys):
        found[change.cell.series_key].append(change)
    return found


def place(change: Change, points: Sequence[HistoryPoint]) -> int | None:
    """The position at which a change starts; None if that point is not among these."""
    by_day = change.cell.revision_id is None
    for position, point in enumerate(points):
        if point.cell == change.cell_id and (not by_day or _is_day_of(point, change)):
            return position
    return None


def _is_day_of(point: HistoryPoint, change: Change) -> bool:
    started = change.run.started_at
    return started is not None and started.astimezone(point.at.tzinfo).date() == point.at.date()


def _history(
    key: str,
    levels: Mapping[str, Any],
    points: Sequence[HistoryPoint],
    known: Sequence[Change],
    most: int,
) -> History:
    """The history with at most this many points, including those of its changes and spikes."""
    marked = {at for change in known if (at := place(change, points)) is not None}
    kept = sorted({*thin([point.median for point in points], most), *marked})
    return History(
        key=key,
        levels=levels,
        points=tuple(points[position] for position in kept),
        total=len(points),
        changes=tuple(known),
    )


def _with_runs(made: Sequence[History]) -> tuple[History, ...]:
    """The same with the first run of each point that was kept."""
    cells = {point.cell for each in made for point in each.points if point.run is None}
    runs = history_points.first_runs(cells) if cells else {}
    return tuple(
        replace(
            each,
            points=tuple(
                point if point.run else replace(point, run=runs.get(point.cell))
                for point in each.points
            ),
        )
        for each in made
    )
