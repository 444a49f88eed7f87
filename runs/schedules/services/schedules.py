"""Schedules: queueing a campaign again, at certain times or for each new installation."""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.campaigns.services import campaigns
from runs.campaigns.services.drafts import Draft
from runs.models import Campaign, Schedule, ScheduleEvent, Server
from runs.schedules.services import servers
from runs.shared.copies import not_held
from runs.shared.errors import ServiceError

EVERY_DAY = (1, 2, 3, 4, 5, 6, 7)


def next_time(schedule: Schedule, after: datetime) -> datetime:
    """The first time of a schedule after a moment, in UTC.

    A time that is skipped when the clocks go forward comes that much later; of a time that comes
    twice the first one counts.
    """
    zone = ZoneInfo(schedule.time_zone)
    day = after.astimezone(zone).date()
    while True:
        moment = datetime.combine(
            day, time(schedule.hour, schedule.minute), zone
        ).astimezone(UTC)
        if moment > after and day.isoweekday() in schedule.weekdays:
            return moment
        day += timedelta(days=1)


def begin(schedule: Schedule) -> None:
    """Set the next time from now; does not save the row."""
    is_timed = schedule.kind == Schedule.Kind.TIMES
    schedule.next_at = next_time(schedule, timezone.now()) if is_timed else None


def check(weekdays: Sequence[int], hour: int, minute: int, time_zone: str) -> None:
    """Raise ServiceError `no_such_time` for a time that does not exist."""
    faults = {
        "weekdays": not weekdays or not set(weekdays) <= set(EVERY_DAY),
        "hour": not 0 <= hour <= 23,
        "minute": not 0 <= minute <= 59,
    }
    for field, is_wrong in faults.items():
        if is_wrong:
            message = _("That time does not exist.")
            remedy = _("Give weekdays, an hour and a minute.")
            raise ServiceError("no_such_time", message, remedy=remedy, field=field)
    if time_zone not in available_timezones():
        message = _("There is no such time zone.")
        remedy = _("Give one such as UTC or Asia/Tokyo.")
        raise ServiceError("no_such_time", message, remedy=remedy, field="time_zone")


MOST_IN_A_ROW = 5
QUEUED = "queued"
SKIPPED = "skipped"
PAUSED = "paused"
RESUMED = "resumed"
ERROR = "error"
_ENDS_A_ROW = {QUEUED, PAUSED, RESUMED}
LONGEST_REASON = 500


def pause_if_it_keeps_failing(schedule: Schedule) -> None:
    """Switch a schedule off after this many failures in a row, and say why."""
    tried = schedule.events.exclude(code=SKIPPED).order_by("-pk")
    newest = list(tried.values_list("code", flat=True)[:MOST_IN_A_ROW])
    if len(newest) < MOST_IN_A_ROW or _ENDS_A_ROW & set(newest):
        return
    schedule.enabled = False
    schedule.save(update_fields=["enabled"])
    message = _(
        "Paused, as it failed %(times)d times in a row. Fix what the last failures report, and "
        "switch it on again."
    ) % {"times": MOST_IN_A_ROW}
    ScheduleEvent.objects.create(schedule=schedule, code=PAUSED, message=message)


# The length of Campaign.title.
LONGEST_TITLE = 200

logger = logging.getLogger(__name__)


@transaction.atomic
def create(
    *,
    title: str,
    campaign: Campaign,
    kind: str = Schedule.Kind.TIMES,
    weekdays: Sequence[int] = EVERY_DAY,
    hour: int = 0,
    minute: int = 0,
    time_zone: str = "UTC",
    by: User | None = None,
    may_prioritise: bool = True,
) -> Schedule:
    """Queue a campaign's design again automatically.

    A campaign that goes before others does so again only if whoever asks may decide that.

    Raises ServiceError as `Draft.of_campaign`, and `no_such_time` for a time of day, weekday or
    time zone that does not exist.
    """
    draft = Draft.of_campaign(campaign)
    check(weekdays, hour, minute, time_zone)
    if not may_prioritise:
        draft = replace(draft, priority=min(draft.priority, 0))
    schedule = Schedule(
        title=title.strip() or campaign.title,
        project=campaign.project,
        server=draft.server,
        kind=kind,
        draft=draft.to_json(),
        weekdays=sorted(set(weekdays)),
        hour=hour,
        minute=minute,
        time_zone=time_zone,
        created_by=by,
    )
    schedule.seen_installations = servers.present(schedule)
    begin(schedule)
    schedule.save()
    _record("schedule_made", schedule, after=_described(schedule))
    return schedule


@transaction.atomic
def edit(*, schedule: Schedule, **changes: Any) -> Schedule:
    """Change title, kind, weekdays, hour, minute or time zone; the others stay.

    Missed times are not made up for. Raises ServiceError `no_such_time`.
    """
    locked = _locked(schedule)
    before = _described(locked)
    for name, value in changes.items():
        setattr(locked, name, value)
    check(locked.weekdays, locked.hour, locked.minute, locked.time_zone)
    locked.weekdays = sorted(set(locked.weekdays))
    if locked.kind != before["kind"]:
        locked.seen_installations = servers.present(locked)
    begin(locked)
    locked.save()
    _record("schedule_changed", locked, before=before, after=_described(locked))
    schedule.refresh_from_db()
    return schedule


def _locked(schedule: Schedule) -> Schedule:
    """The row as it is now: control may have fired or paused it since it was read."""
    return Schedule.objects.select_for_update().get(pk=schedule.pk)


def _described(schedule: Schedule) -> dict[str, Any]:
    names = ("title", "kind", "weekdays", "hour", "minute", "time_zone", "enabled")
    return {name: getattr(schedule, name) for name in names}


def _record(action: str, schedule: Schedule, **changes: dict[str, Any]) -> None:
    project = audit.find_project_id(schedule.project_id)
    audit.record(action, schedule, project=project, **changes)


@transaction.atomic
def enable(*, schedule: Schedule, enabled: bool) -> Schedule:
    """Switch a schedule on or off. Times missed while it was off are not made up for.

    Raises ServiceError `no_such_time` for one whose time zone is gone.
    """
    locked = _locked(schedule)
    before, locked.enabled = locked.enabled, enabled
    if enabled and not before:
        check(locked.weekdays, locked.hour, locked.minute, locked.time_zone)
        locked.seen_installations = servers.present(locked)
        begin(locked)
        # Failures before it was switched on again do not count any more.
        newest = locked.events.order_by("-pk").first()
        if newest is not None and newest.code not in _ENDS_A_ROW - {PAUSED}:
            ScheduleEvent.objects.create(schedule=locked, code=RESUMED)
    locked.save()
    switched = {"before": {"enabled": before}, "after": {"enabled": enabled}}
    _record("schedule_switched", locked, **switched)
    schedule.refresh_from_db()
    return schedule


def delete(*, schedule: Schedule) -> None:
    """Remove a schedule and its history; its campaigns stay."""
    _record("schedule_deleted", schedule, before=_described(schedule))
    schedule.delete()


def fire_due() -> None:
    """Fire every schedule whose time has come. Raises nothing: a fault becomes an event."""
    due = Schedule.objects.filter(not_held(), enabled=True)
    for schedule_id in due.values_list("pk", flat=True):
        try:
            _fire_if_due(schedule_id, timezone.now())
        except Exception as error:
            logger.exception("schedule %s could not be fired", schedule_id)
            with contextlib.suppress(Exception):
                _give_up_this_time(schedule_id, error)


@transaction.atomic
def _fire_if_due(schedule_id: int, now: datetime) -> None:
    """Several missed times fire once, and so do two controls at the same time."""
    locked = Schedule.objects.select_for_update(skip_locked=True, of=("self",))
    due = locked.select_related("server", "project").filter(
        pk=schedule_id, enabled=True
    )
    schedule = due.first()
    if schedule is None:
        return
    if schedule.kind == Schedule.Kind.INSTALLATION:
        _fire_for_new(schedule)
    elif schedule.next_at is not None and schedule.next_at <= now:
        schedule.next_at = next_time(schedule, now)
        schedule.save(update_fields=["next_at"])
        if _is_busy(schedule):
            message = _("The campaign before has not ended.")
            ScheduleEvent.objects.create(
                schedule=schedule, code="skipped", message=message
            )
        else:
            _fire(schedule, ())


@transaction.atomic
def _give_up_this_time(schedule_id: int, error: Exception) -> None:
    """Report whatever failed and rolled back the firing, and wait for the next time."""
    schedule = Schedule.objects.select_for_update().get(pk=schedule_id)
    try:
        check(schedule.weekdays, schedule.hour, schedule.minute, schedule.time_zone)
        begin(schedule)
    except Exception:
        logger.exception("schedule %s has no next time", schedule_id)
        schedule.enabled, schedule.next_at = False, None
    if schedule.kind == Schedule.Kind.INSTALLATION:
        schedule.seen_installations = servers.present(schedule)
    schedule.save()
    # Record an error of BenchLab itself; the log has it in full.
    reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
    message = _("BenchLab could not queue the campaign: %(reason)s") % {
        "reason": reason
    }
    ScheduleEvent.objects.create(schedule=schedule, code=ERROR, message=message)
    if schedule.enabled:
        pause_if_it_keeps_failing(schedule)
    else:
        message = _(
            "Paused, as its times cannot be told. Choose them and the time zone again, and switch "
            "it on again."
        )
        ScheduleEvent.objects.create(schedule=schedule, code=PAUSED, message=message)


def _fire_for_new(schedule: Schedule) -> None:
    """Measure what was found since; wait for the previous campaign, and for servers away."""
    seen_installations = {
        tuple(installation) for installation in schedule.seen_installations
    }
    present = servers.present(schedule)
    new_installations = [
        installation
        for installation in present
        if tuple(installation) not in seen_installations
    ]
    if not new_installations:
        return
    if _is_busy(schedule) or not _is_at_hand(schedule):
        return
    schedule.seen_installations = present
    schedule.save(update_fields=["seen_installations"])
    _fire(schedule, new_installations)


def _fire(schedule: Schedule, new_installations: Sequence[Sequence[str]]) -> None:
    """Queue the campaign with what is new, or store the reason why it cannot be queued."""
    campaign, code, message = None, "queued", ""
    try:
        with transaction.atomic():
            campaign = campaigns.create(
                draft=_draft(schedule, new_installations),
                by=schedule.created_by,
                project=schedule.project,
            )
    except ServiceError as error:
        code, message = error.code, f"{error.message} {error.remedy}".strip()
    ScheduleEvent.objects.create(
        schedule=schedule, campaign=campaign, code=code, message=message
    )
    if campaign is None:
        pause_if_it_keeps_failing(schedule)


def _draft(schedule: Schedule, new_installations: Sequence[Sequence[str]]) -> Draft:
    """What is measured today. Raises ServiceError as `Draft.from_json`."""
    draft = Draft.from_json(schedule.draft).installed_now()
    today = timezone.now().astimezone(ZoneInfo(schedule.time_zone)).strftime("%Y-%m-%d")
    installations = servers.installations(schedule, draft, new_installations)
    return replace(draft, title=_dated(draft.title, today), installations=installations)


def _dated(title: str, day: str) -> str:
    room = LONGEST_TITLE - len(day) - 1
    shortened = title if len(title) <= room else f"{title[: room - 1].rstrip()}…"
    return f"{shortened} {day}"


def _is_at_hand(schedule: Schedule) -> bool:
    """Whether every server that it measures on, or loads from, is ready.

    Also true for a problem that waiting does not solve: the firing then reports it.
    """
    try:
        draft = Draft.from_json(schedule.draft)
    except ServiceError:
        return True
    return all(server.state == Server.State.READY for server in draft.machines)


def _is_busy(schedule: Schedule) -> bool:
    return schedule.events.filter(campaign__state__in=Campaign.LIVE).exists()
