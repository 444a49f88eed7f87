"""Histories for readers: points, changes, changes of the machine, and the badge."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Window
from django.db.models.functions import RowNumber

from runs.cells.selectors import history_points, metrics, series_cells
from runs.cells.selectors.history_points import FirstRun, HistoryPoint
from runs.grouping import group_by_key
from runs.models import Campaign, Change, Environment, HardwareProfile, Metric, Run
from runs.servers.selectors.hardware import Difference, Profile, differences

MOST_SERIES = 20
# The newest commits of a series that are read at once, and of all series together: beyond, a page
# leads to older ones. All of what is read is shown.
WINDOW, WINDOW_OF_ALL = 5_000, 12_000


@dataclass(frozen=True)
class History:
    """One series: its levels, and all its points with the changes."""

    key: str
    levels: Mapping[str, Any]
    points: tuple[HistoryPoint, ...]
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
) -> Histories:
    """The histories under these levels (text), of the campaign's first metric if none is given.

    Without a `ref` it uses the branch that the campaign tracks. Of long ones the newest commits,
    behind the `skip` newest of each series. Nine queries at most.
    """
    metric = metric or metrics.primary(campaign)
    ref = ref or campaign.tracked_ref
    if metric is None:
        return Histories(campaign, None, ref)
    series_found = _series(campaign, levels)
    series_shown = dict(list(series_found.items())[:MOST_SERIES])
    number = min(WINDOW, WINDOW_OF_ALL // max(len(series_shown), 1))
    window = history_points.newest(
        campaign, list(series_shown), ref=ref, number=number, skip=skip
    )
    points = history_points.find_points(
        campaign, metric, list(series_shown), ref=ref, window=window
    )
    cells = {
        point.cell for history_points in points.values() for point in history_points
    }
    change_list = changes(
        campaign, metric, list(series_shown), cells if window.is_part else None
    )
    changes_of = group_by_key(
        (change.cell.series_key, change) for change in change_list
    )
    histories_made = [
        History(key, series_shown[key], tuple(points[key]), tuple(changes_of[key]))
        for key in series_shown
        if key in points
    ]
    return Histories(
        campaign,
        metric,
        ref,
        _add_first_runs(histories_made),
        more=len(series_found) - len(series_shown),
        older=skip + number if window.has_older else None,
        newer=max(0, skip - number) if skip else None,
    )


def _series(
    campaign: Campaign, levels: Sequence[tuple[str, str]]
) -> dict[str, Mapping[str, Any]]:
    series_found = {}
    for cell in history_points.series(campaign):
        all_levels = (
            {series_cells.VERSION: cell.version} if cell.version else {}
        ) | cell.levels
        if series_cells.have_levels(all_levels, levels):
            series_found[cell.series_key] = all_levels
    return dict(
        sorted(
            series_found.items(),
            key=lambda key_and_levels: _level_order(key_and_levels[1]),
        )
    )


_NUMBER = re.compile("[0-9]{1,20}")


def _level_order(levels: Mapping[str, Any]) -> list[tuple[str, bool, float, str]]:
    """The order of series: 2 clients before 16, and 3.9 before 3.10."""
    return [
        (name, False, level, "")
        if isinstance(level, int | float)
        else (name, True, 0, _NUMBER.sub(lambda match: match[0].zfill(20), str(level)))
        for name, level in sorted(levels.items())
    ]


def all_changes() -> QuerySet[Change]:
    """Every change with what its row shows, the newest first."""
    related = (
        "cell__campaign__scenario",
        "cell__revision",
        "metric",
        "run",
        "decided_by",
    )
    own_fields = Change.objects.select_related(*related).defer("run__plan")
    return own_fields.order_by("-pk")


def standing(campaign: Campaign) -> QuerySet[Change]:
    """The changes of a campaign that nobody and nothing took back."""
    return Change.objects.filter(campaign=campaign).exclude(decision__in=Change.GONE)


def newest_standing(campaigns: Collection[Campaign], number: int) -> list[Change]:
    """So many of the newest changes of each campaign that nobody and nothing took back. Two
    queries, or one without any.
    """
    place = Window(RowNumber(), partition_by="campaign", order_by="-pk")
    changes_of_campaigns = Change.objects.filter(
        campaign__in=[one.pk for one in campaigns]
    )
    standing_ones = changes_of_campaigns.exclude(decision__in=Change.GONE).order_by()
    keys = list(
        standing_ones.annotate(place=place).filter(place__lte=number).values_list("pk")
    )
    return list(all_changes().filter(pk__in=[key for (key,) in keys])) if keys else []


# Of the rows next to a change, what histories show of them: to read them whole takes longer.
_SHOWN = (
    "cell__campaign_id",
    "cell__levels",
    "cell__series_key",
    *(
        f"cell__revision__{name}"
        for name in ("sha", "ref", "url", "committed_at", "subject", "author")
    ),
    "run__started_at",
    "decided_by__username",
)


def changes(
    campaign: Campaign,
    metric: Metric,
    keys: Collection[str],
    cells: Collection[int] | None = None,
) -> list[Change]:
    """The changes of these histories, in the order in which they were found. One query."""
    column_names = [field.attname for field in Change._meta.concrete_fields]
    changes_found = Change.objects.filter(
        metric=metric, campaign=campaign, cell__series_key__in=keys
    ).select_related("cell__revision", "run", "decided_by")
    if cells is not None:
        changes_found = changes_found.filter(
            history_points.cell_condition(cells, Change)
        )
    change_list = list(changes_found.only(*column_names, *_SHOWN).order_by("pk"))
    for change in change_list:
        change.metric, change.cell.campaign = metric, campaign
    return change_list


def place(change: Change, points: Sequence[HistoryPoint]) -> int | None:
    """The position at which a change starts; None if that point is not among these."""
    by_day = change.cell.revision_id is None
    for position, point in enumerate(points):
        if point.cell == change.cell_id and (not by_day or _is_day_of(point, change)):
            return position
    return None


def _is_day_of(point: HistoryPoint, change: Change) -> bool:
    started = change.run.started_at
    return (
        started is not None
        and started.astimezone(point.at.tzinfo).date() == point.at.date()
    )


def _add_first_runs(histories_made: Sequence[History]) -> tuple[History, ...]:
    """The same with the first run of each point."""
    cells = {
        point.cell
        for history in histories_made
        for point in history.points
        if point.run is None
    }
    runs = history_points.first_runs(cells) if cells else {}
    return tuple(
        replace(
            history,
            points=tuple(
                _add_first_run(point, runs.get(point.cell)) for point in history.points
            ),
        )
        for history in histories_made
    )


def _add_first_run(point: HistoryPoint, first_run: FirstRun | None) -> HistoryPoint:
    return point._replace(run=first_run.run, first=first_run) if first_run else point


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
    points = [point for history in series for point in history.points]
    profiles_of = {runs.first.run: runs.first[1:] for runs in points if runs.first}
    other_runs = {runs.run for runs in points if runs.run} - profiles_of.keys()
    rows = Run.objects.filter(pk__in=other_runs).order_by()
    profile_keys = rows.values_list("pk", "hardware_id", "environment_id")
    profiles_of |= {
        pk: (hardware, environment) for pk, hardware, environment in profile_keys
    }
    hardware = _profiles(HardwareProfile, {hard for hard, _env in profiles_of.values()})
    environments = _profiles(Environment, {env for _hard, env in profiles_of.values()})
    changes_of = {
        history.key: _changes_of_host(history, profiles_of, (hardware, environments))
        for history in series
    }
    return {key: tuple(changes[-MOST_LINES:]) for key, changes in changes_of.items()}


def _changes_of_host(
    history: History,
    profiles_of: Mapping[int, Known],
    profiles: tuple[Mapping[int, Profile], Mapping[int, Profile]],
) -> list[HostChange]:
    host_changes_found = []
    last_keys: list[int | None] = [None, None]
    for point in history.points:
        differing: list[Difference] = []
        for index, now in enumerate(profiles_of.get(point.run or 0, (None, None))):
            before = last_keys[index]
            if now is None:
                continue
            if before is not None and before != now:
                differing += differences(profiles[index][before], profiles[index][now])
            last_keys[index] = now
        if differing and point.run:
            host_changes_found.append(HostChange(point.at, point.run, tuple(differing)))
    return host_changes_found


def _profiles(model: Any, keys: set[int | None]) -> dict[int, Profile]:
    """One query, and none if nothing could have changed."""
    known_keys = keys - {None}
    return dict(model.objects.in_bulk(known_keys)) if len(known_keys) > 1 else {}
