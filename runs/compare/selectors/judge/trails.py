"""What stands beside a verdict: the histories of its rows, and the job of its head."""

from dataclasses import dataclass

from runs.cells.selectors import history_points, metrics, revisions
from runs.compare.selectors.judge.gate import SideVerdict, VerdictRow
from runs.models import Run
from runs.queue.selectors import runs as run_selectors

POINTS = 20
MOST_ROWS = 10


@dataclass(frozen=True)
class Trail:
    """The last medians of a row's history, the oldest first; that of the head is the last."""

    row: VerdictRow
    values: tuple[float, ...]


def find_trails(side_verdict: SideVerdict) -> list[Trail]:
    """The trails of the rows that decide, of a head that is a commit. Three queries a metric."""
    head = side_verdict.head
    if head.revision is None:
        return []
    keys = {cell.pk: cell.series_key for cell in head.cells if cell.series_key}
    rows = [row for row in side_verdict.rows if row.is_asked and row.head_cell in keys][
        :MOST_ROWS
    ]
    ref = branch_of(side_verdict)
    head_moment = revisions.moment_of(head.revision)
    earlier = revisions.last(head.campaign, head.revision, ref, POINTS)
    if not earlier:
        return []
    begin = revisions.moment_of(earlier[-1])
    trails = []
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        is_of_other = metric.project_id not in {None, head.campaign.project_id}
        found_points = history_points.find_points(
            head.campaign,
            (metrics.named(metric.name, head.campaign) if is_of_other else None)
            or metric,
            {keys[row.head_cell or 0] for row in of_metric},
            ref=ref,
            since=begin,
        )
        for row in of_metric:
            before = [
                point.median
                for point in found_points.get(keys[row.head_cell or 0], [])
                if point.at <= head_moment and point.cell != row.head_cell
            ]
            if row.head is not None and before:
                trails.append(Trail(row, (*before[-POINTS:], row.head.median)))
    return trails


def job_of(side_verdict: SideVerdict) -> str:
    """The address of the CI job that uploaded the head; empty where none is known. One query."""
    runs = [row.head_runs.first for row in side_verdict.rows if row.head_runs.first]
    if not runs:
        return ""
    labels = Run.objects.filter(pk=max(runs)).values_list("labels", flat=True).first()
    return run_selectors.job_address(labels) if labels else ""


def branch_of(side_verdict: SideVerdict) -> str:
    """The branch whose points they are: that of the base, where it is one."""
    kind, _colon, name = side_verdict.base.text.partition(":")
    head = side_verdict.head
    if kind == "history":
        return name
    is_branch = kind == "revision" and revisions.is_branch(head.campaign, name)
    return name if is_branch else head.campaign.tracked_ref
