"""Codespeed: what its address /timeline/json/ answers, saved as a file (or several in a folder).

Source: codespeed/views.py. Ask for ?exe=1,2&base=none&ben=grid&env=1&revs=1000 in one answer.
Each executable at a revision is a run, each benchmark a metric.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from runs.importers import row
from runs.tools.adapter import Direction, MetricValue
from runs.tools.named_values import marked
from runs.tools.output import part, rows, words
from runs.wording import gettext_noop as _


class _Figure(NamedTuple):
    """A figure of a benchmark, by an executable at a commit."""

    executable: str
    sha: str
    at: datetime
    branch: str
    value: MetricValue


@dataclass
class _Point:
    at: datetime
    branch: str
    values: dict[str, MetricValue] = field(default_factory=dict)


def read(path: Path) -> row.Imported:
    """Read the answers. Raises row.NotTheirs."""
    timelines = [
        timeline
        for document in row.documents(path)
        for timeline in rows(document, "timelines")
    ]
    if not timelines:
        raise row.NotTheirs(
            _("There are no timelines: save what /timeline/json/ answers.")
        )
    imported = row.Imported()
    points: dict[tuple[str, str], _Point] = {}
    marked_names = marked(
        words(timeline.get("benchmark")) or "" for timeline in timelines
    )
    for timeline in timelines:
        for figure in _values(timeline, marked_names, imported):
            key = (figure.executable, figure.sha)
            point = points.setdefault(key, _Point(figure.at, figure.branch))
            point.values.setdefault(figure.value.metric, figure.value)
    imported.runs += [_run(path, key, point) for key, point in points.items()]
    return imported


def _values(
    timeline: dict[str, Any], marked_names: frozenset[str], imported: row.Imported
) -> Iterator[_Figure]:
    name = words(timeline.get("benchmark")) or ""
    direction: Direction = (
        "lower" if "less" in str(timeline.get("lessisbetter")) else "higher"
    )
    metric = row.named(
        name,
        words(timeline.get("units")) or "",
        direction,
        is_marked=name in marked_names,
    )
    skipped: dict[str, int] = defaultdict(int)
    for branch, executables in part(timeline, "branches").items():
        for executable, points in part({"all": executables}, "all").items():
            for point in points if isinstance(points, list) else []:
                # date, value, deviation or four of a box, then commit, tag and branch
                cells = (
                    point
                    if isinstance(point, list) and len(point) in (6, 9)
                    else [None] * 6
                )
                sha, moment = row.sha_of(cells[-3]), _date(cells[0])
                values = row.value_of(metric, cells[1])
                if not sha or moment is None or not values:
                    skipped[str(cells[-3])] += 1
                    continue
                yield _Figure(str(executable), sha, moment, str(branch), values[0])
    text = _(
        "%(name)s: %(commit)s is no commit by 7 digits or more, or has no number (%(count)s times)."
    )
    for commit, count in skipped.items():
        imported.leave_out(text, name=name, commit=commit, count=count)


def _date(text: Any) -> datetime | None:
    try:
        return datetime.strptime(str(text).strip(), "%Y/%m/%d %H:%M:%S %z")
    except ValueError:
        return row.moment(text)


def _run(path: Path, key: tuple[str, str], point: _Point) -> row.ImportedRun:
    executable, sha = key
    return row.ImportedRun(
        campaign=row.campaign_of("codespeed", path.stem),
        scenario="codespeed",
        external_id=f"{executable}@{sha}",
        started_at=point.at,
        levels={"executable": executable[:80]},
        measurements=tuple(point.values.values()),
        sha=sha,
        branch=point.branch[:200],
        committed_at=point.at,
        tool_name="codespeed",
    )
