"""Schedules with the latest events of each."""

from django.db.models import Prefetch, QuerySet

from runs.access.selectors.projects import Reader, visible
from runs.models import Schedule, ScheduleEvent
from runs.shared.newest import take_newest

EVENTS_SHOWN = 5


def listed(*, to: Reader) -> QuerySet[Schedule]:
    """Schedules that a reader may see, with server and `newest_events`."""
    events = take_newest(
        ScheduleEvent.objects.select_related("campaign"),
        Schedule.objects.all(),
        foreign_key="schedule",
        number=EVENTS_SHOWN,
    )
    return (
        visible(Schedule.objects.all(), to=to)
        .select_related("server", "created_by")
        .prefetch_related(Prefetch("events", events, to_attr="newest_events"))
        .order_by("title", "pk")
    )
