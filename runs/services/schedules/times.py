"""The times of schedules: validation, and the next one."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Schedule
from runs.services.errors import ServiceError

EVERY_DAY = (1, 2, 3, 4, 5, 6, 7)


def next_time(schedule: Schedule, after: datetime) -> datetime:
    """The first time of a schedule after a moment, in UTC.

    A time that is skipped when the clocks go forward comes that much later; of a time that comes
    twice the first one counts.
    """
    zone = ZoneInfo(schedule.time_zone)
    day = after.astimezone(zone).date()
    while True:
        at = datetime.combine(day, time(schedule.hour, schedule.minute), zone).astimezone(UTC)
        if at > after and day.isoweekday() in schedule.weekdays:
            return at
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
            raise ServiceError(
                "no_such_time",
                _("That time does not exist."),
                remedy=_("Give weekdays, an hour and a minute."),
                field=field,
            )
    if time_zone not in available_timezones():
        raise ServiceError(
            "no_such_time",
            _("There is no such time zone."),
            remedy=_("Give one such as UTC or Asia/Tokyo."),
            field="time_zone",
        )
