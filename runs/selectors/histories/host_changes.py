"""Where the machine of a history changed: its hardware, its system, its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.models import Environment, HardwareProfile, Run
from runs.selectors.histories.histories import History
from runs.selectors.servers.host_facts import Difference, Profile, differences

# More lines in one chart are unreadable: the newest stay.
MOST_LINES = 20


@dataclass(frozen=True)
class HostChange:
    """From this point on the runs were made on other hardware or in another environment."""

    at: datetime
    run: int
    differences: tuple[Difference, ...]


Known = tuple[int | None, int | None]


def of(series: Sequence[History]) -> dict[str, tuple[HostChange, ...]]:
    """The changes of each history, by its key, the oldest first. Three queries at most.

    A point is represented by its first run. A fact that a run does not state is not a change: the
    next run is compared with the last one that stated it.
    """
    runs = {point.run for each in series for point in each.points if point.run}
    if not runs:
        return {}
    rows = Run.objects.filter(pk__in=runs).order_by()
    known = {pk: (hard, env) for pk, hard, env in rows.values_list(
        "pk", "hardware_id", "environment_id")}  # fmt: skip
    hardware = _profiles(HardwareProfile, {hard for hard, _env in known.values()})
    environments = _profiles(Environment, {env for _hard, env in known.values()})
    found = {each.key: _changes(each, known, (hardware, environments)) for each in series}
    return {key: tuple(changes[-MOST_LINES:]) for key, changes in found.items()}


def _changes(
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
