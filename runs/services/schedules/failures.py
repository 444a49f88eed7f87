"""Failing schedules: each failure is an event, and a schedule that keeps failing is paused."""

from django.utils.translation import gettext as _

from runs.models import Schedule, ScheduleEvent

MOST_IN_A_ROW = 5
QUEUED, SKIPPED, PAUSED, RESUMED, ERROR = "queued", "skipped", "paused", "resumed", "error"
_ENDS_A_ROW = {QUEUED, PAUSED, RESUMED}
LONGEST_REASON = 500


def unexpected(schedule: Schedule, error: Exception) -> None:
    """Record an error of BenchLab itself; the log has it in full."""
    reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
    message = _("BenchLab could not queue the campaign: %(reason)s") % {"reason": reason}
    ScheduleEvent.objects.create(schedule=schedule, code=ERROR, message=message)
    pause_if_it_keeps_failing(schedule)


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


def note_resumed(schedule: Schedule) -> None:
    """Failures before it was switched on again do not count any more."""
    newest = schedule.events.order_by("-pk").first()
    if newest is not None and newest.code not in _ENDS_A_ROW - {PAUSED}:
        ScheduleEvent.objects.create(schedule=schedule, code=RESUMED)
