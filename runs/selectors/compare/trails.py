"""Where the rows of a verdict come from: the newest points of their histories, and the CI job."""

from dataclasses import dataclass

from runs.models import Run
from runs.selectors.compare.verdicts import SideVerdict, VerdictRow
from runs.selectors.histories import moments, revisions
from runs.selectors.histories import points as history_points
from runs.selectors.runs import jobs

POINTS = 20
MOST_ROWS = 10


@dataclass(frozen=True)
class Trail:
    """The last medians of a row's history, the oldest first; that of the head is the last."""

    row: VerdictRow
    values: tuple[float, ...]


def of(found: SideVerdict) -> list[Trail]:
    """The trails of the rows that decide, of a head that is a commit. Three queries a metric."""
    head = found.head
    if head.revision is None:
        return []
    keys = {cell.pk: cell.series_key for cell in head.cells if cell.series_key}
    rows = [row for row in found.rows if row.is_asked and row.head_cell in keys][:MOST_ROWS]
    ref = _branch(found)
    at = moments.of(head.revision)
    earlier = revisions.last(head.campaign, head.revision, ref, POINTS)
    if not earlier:
        return []
    begin = moments.of(earlier[-1])
    trails = []
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        found_points = history_points.of(
            head.campaign,
            metric,
            {keys[row.head_cell or 0] for row in of_metric},
            ref=ref,
            since=begin,
        )
        for row in of_metric:
            before = [
                point.median
                for point in found_points.get(keys[row.head_cell or 0], [])
                if point.at <= at and point.cell != row.head_cell
            ]
            if row.head is not None and before:
                trails.append(Trail(row, (*before[-POINTS:], row.head.median)))
    return trails


def job_of(found: SideVerdict) -> str:
    """The address of the CI job that uploaded the head; empty where none is known. One query."""
    runs = [row.head_runs.first for row in found.rows if row.head_runs.first]
    if not runs:
        return ""
    labels = Run.objects.filter(pk=max(runs)).values_list("labels", flat=True).first()
    return jobs.address(labels) if labels else ""


def _branch(found: SideVerdict) -> str:
    """The branch whose points they are: that of the base, where it is one."""
    kind, _colon, name = found.base.text.partition(":")
    head = found.head
    if kind == "history":
        return name
    is_branch = kind == "revision" and (
        revisions.measured(head.campaign).filter(revisions.on_ref(name)).exists()
    )
    return name if is_branch else head.campaign.tracked_ref
