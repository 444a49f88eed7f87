"""Histories for readers: points, changes, changes of the machine, and the badge."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from runs.access.selectors.projects import Reader
from runs.analysis.inference import Inference, Verdict
from runs.cells.selectors import metrics, series_cells
from runs.charts.timeline import thin
from runs.compare.selectors.address import head_and_base as sides
from runs.compare.selectors.address.head_and_base import BadSide
from runs.compare.selectors.judge import gate
from runs.compare.selectors.judge.gate import Criteria, SideVerdict
from runs.grouping import by_key
from runs.histories.selectors import points as history_points
from runs.histories.selectors.points import FirstRun, HistoryPoint
from runs.models import Campaign, Change, Environment, HardwareProfile, Metric, Run
from runs.servers.selectors.hardware import Difference, Profile, differences

MOST_SERIES = 20
# The newest commits of a series that are read at once, and of all series together.
WINDOW, WINDOW_OF_ALL = 500, 1_000
LONGEST_SKIP = 9  # digits
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
    # How many of the newest commits of each series the pages before and after this one leave out.
    older: int | None = None
    newer: int | None = None


def histories(
    campaign: Campaign,
    *,
    metric: Metric | None = None,
    levels: Sequence[tuple[str, str]] = (),
    ref: str = "",
    skip: int = 0,
    most: int = MOST_POINTS,
) -> Histories:
    """The histories under these levels (text), of the campaign's first metric if none is given.

    Without a `ref` it uses the branch that the campaign tracks. Of long ones the newest commits,
    behind the `skip` newest of each series; of all together at most so many points, with every
    spike and change. Nine queries at most.
    """
    metric = metric or metrics.primary(campaign)
    ref = ref or campaign.tracked_ref
    if metric is None:
        return Histories(campaign, None, ref)
    found = _series(campaign, levels)
    shown = dict(list(found.items())[:MOST_SERIES])
    number = min(WINDOW, WINDOW_OF_ALL // max(len(shown), 1))
    window = history_points.newest(campaign, list(shown), ref=ref, number=number, skip=skip)
    points = history_points.of(campaign, metric, list(shown), ref=ref, window=window)
    cells = {point.cell for each in points.values() for point in each}
    listed = changes(campaign, metric, list(shown), cells if window.is_part else None)
    known = by_key((change.cell.series_key, change) for change in listed)
    each = most // max(len(points), 1)
    made = [
        _history(key, shown[key], points[key], known[key], each) for key in shown if key in points
    ]
    return Histories(
        campaign,
        metric,
        ref,
        _with_runs(made),
        more=len(found) - len(shown),
        older=skip + number if window.has_older else None,
        newer=max(0, skip - number) if skip else None,
    )


def skipped(text: str) -> int | None:
    """How many commits or values an address leaves out; None if that is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_SKIP else None


def _series(campaign: Campaign, levels: Sequence[tuple[str, str]]) -> dict[str, Mapping[str, Any]]:
    found = {}
    for cell in history_points.series(campaign):
        under = ({series_cells.VERSION: cell.version} if cell.version else {}) | cell.levels
        if series_cells.have_levels(under, levels):
            found[cell.series_key] = under
    return dict(sorted(found.items(), key=lambda each: _by_value(each[1])))


_NUMBER = re.compile("[0-9]{1,20}")


def _by_value(levels: Mapping[str, Any]) -> list[tuple[str, bool, float, str]]:
    """The order of series: 2 clients before 16, and 3.9 before 3.10."""
    return [
        (name, False, level, "")
        if isinstance(level, int | float)
        else (name, True, 0, _NUMBER.sub(lambda found: found[0].zfill(20), str(level)))
        for name, level in sorted(levels.items())
    ]


def all_changes() -> QuerySet[Change]:
    """Every change with what its row shows, the newest first."""
    related = ("cell__campaign__scenario", "cell__revision", "metric", "run", "decided_by")
    found = Change.objects.select_related(*related).defer("run__plan")
    return found.order_by("-pk")


def standing(campaign: Campaign) -> QuerySet[Change]:
    """The changes of a campaign that nobody and nothing took back."""
    return Change.objects.filter(campaign=campaign).exclude(decision__in=Change.GONE)


# Of the rows next to a change, what histories show of them: to read them whole takes longer.
_SHOWN = (
    "cell__campaign_id",
    "cell__levels",
    "cell__series_key",
    *(f"cell__revision__{name}" for name in ("sha", "ref", "url")),
    "run__started_at",
    "decided_by__username",
)


def changes(
    campaign: Campaign, metric: Metric, keys: Collection[str], cells: Collection[int] | None = None
) -> list[Change]:
    """The changes of these histories, in the order in which they were found. One query."""
    own = [field.attname for field in Change._meta.concrete_fields]
    found = Change.objects.filter(
        metric=metric, campaign=campaign, cell__series_key__in=keys
    ).select_related("cell__revision", "run", "decided_by")
    if cells is not None:
        found = found.filter(history_points.among(cells, Change))
    listed = list(found.only(*own, *_SHOWN).order_by("pk"))
    for change in listed:
        change.metric, change.cell.campaign = metric, campaign
    return listed


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
        replace(each, points=tuple(_with_run(point, runs.get(point.cell)) for point in each.points))
        for each in made
    )


def _with_run(point: HistoryPoint, first: FirstRun | None) -> HistoryPoint:
    return point._replace(run=first.run, first=first) if first else point


# More lines in one chart are unreadable: the newest stay.
MOST_LINES = 20


@dataclass(frozen=True)
class HostChange:
    """From this point on the runs were made on other hardware or in another environment."""

    at: datetime
    run: int
    differences: tuple[Difference, ...]


Known = tuple[int | None, int | None]


def host_changes(series: Sequence[History]) -> dict[str, tuple[HostChange, ...]]:
    """The changes of each history, by its key, the oldest first. Three queries at most, two if
    no point is a day's.

    A point is represented by its first run. A fact that a run does not state is not a change: the
    next run is compared with the last one that stated it.
    """
    points = [point for each in series for point in each.points]
    known = {each.first.run: each.first[1:] for each in points if each.first}
    others = {each.run for each in points if each.run} - known.keys()
    rows = Run.objects.filter(pk__in=others).order_by()
    listed = rows.values_list("pk", "hardware_id", "environment_id")
    known |= {pk: (hardware, environment) for pk, hardware, environment in listed}
    hardware = _profiles(HardwareProfile, {hard for hard, _env in known.values()})
    environments = _profiles(Environment, {env for _hard, env in known.values()})
    found = {each.key: _changes_of_host(each, known, (hardware, environments)) for each in series}
    return {key: tuple(changes[-MOST_LINES:]) for key, changes in found.items()}


def _changes_of_host(
    history: History,
    known: Mapping[int, Known],
    profiles: tuple[Mapping[int, Profile], Mapping[int, Profile]],
) -> list[HostChange]:
    found = []
    last: list[int | None] = [None, None]
    for point in history.points:
        differing: list[Difference] = []
        for place, now in enumerate(known.get(point.run or 0, (None, None))):
            before = last[place]
            if now is None:
                continue
            if before is not None and before != now:
                differing += differences(profiles[place][before], profiles[place][now])
            last[place] = now
        if differing and point.run:
            found.append(HostChange(point.at, point.run, tuple(differing)))
    return found


def _profiles(model: Any, keys: set[int | None]) -> dict[int, Profile]:
    """One query, and none if nothing could have changed."""
    wanted = keys - {None}
    return dict(model.objects.in_bulk(wanted)) if len(wanted) > 1 else {}


@dataclass(frozen=True)
class Badge:
    """`verdict` is None if there is nothing to compare; `inferences` are the rows behind it.

    These are the ones with that verdict, of `number` rows, the largest effect first.
    """

    verdict: Verdict | None
    inferences: Sequence[Inference] = ()
    number: int = 0


def badge(campaign: Campaign, *, base: str = "", metric: str = "", reader: Reader) -> Badge:
    """The newest revision against `base` (as in a comparison), or against the one before it.

    A badge is shown elsewhere, so what cannot be compared gives a badge that says so.
    """
    try:
        pair = sides.both(base, "", campaign=campaign.slug, reader=reader)
    except BadSide:
        return Badge(None)
    found = gate.between(*pair, Criteria(metrics=(metric,) if metric else ()))
    return Badge(found.overall, _behind(found), len(found.rows))


def _behind(found: SideVerdict) -> list[Inference]:
    rows = [
        row.comparison
        for row in found.rows
        if row.comparison.verdict == found.overall and row.comparison.ratio
    ]
    return sorted(rows, key=lambda row: abs(math.log(row.ratio or 1.0)), reverse=True)
