"""Schedules with the latest events of each."""

from django.db.models import Prefetch, QuerySet

from runs.access.selectors.projects import DEFAULT, Reader, hidden
from runs.models import Schedule, ScheduleEvent, Token
from runs.shared.newest import of_each

EVENTS_SHOWN = 5


def listed(*, to: Reader) -> QuerySet[Schedule]:
    """Schedules that a reader may see, with server and `newest_events`. Three queries at most."""
    events = of_each(
        ScheduleEvent.objects.select_related("campaign"),
        Schedule.objects.all(),
        foreign_key="schedule",
        number=EVENTS_SHOWN,
    )
    private = list(hidden(to).values_list("pk", flat=True))
    return (
        Schedule.objects.exclude(draft__project__in=private)
        .select_related("server", "created_by")
        .prefetch_related(Prefetch("events", events, to_attr="newest_events"))
        .order_by("title", "pk")
    )


def is_own(schedule: Schedule, token: Token) -> bool:
    """Whether the campaigns of a schedule belong to the token's project."""
    project_id = schedule.draft.get("project")
    if project_id is None:
        return bool(token.project.slug == DEFAULT)
    return bool(project_id == token.project_id)
