"""Schedules: campaigns that BenchLab queues automatically, and the result of each firing."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class ScheduleKind(models.TextChoices):
    """What a schedule waits for; see `Schedule.Kind`."""

    TIMES = "times", _("at a time of day")
    INSTALLATION = "installation", _("when a new installation is found")


class Schedule(models.Model):
    """A campaign to queue at certain times, or when a new installation is found on a server.

    `draft` says what to queue (`Draft.to_json`). `weekdays` are those of ISO
    8601 (1 is Monday) in `time_zone`; `next_at` is the next time, null if the schedule waits for
    installations: then `seen_installations` has the folder and version of each known one.
    """

    Kind = ScheduleKind

    title = models.CharField(_("title"), max_length=200)
    # Null is the default one. Its campaigns belong to it.
    project = models.ForeignKey(
        "Project", models.CASCADE, null=True, related_name="schedules"
    )
    server = models.ForeignKey("Server", models.CASCADE, related_name="schedules")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.TIMES)
    draft = models.JSONField()
    weekdays = models.JSONField(default=list)
    hour = models.PositiveSmallIntegerField(_("hour"), default=0)
    minute = models.PositiveSmallIntegerField(_("minute"), default=0)
    time_zone = models.CharField(_("time zone"), max_length=60, default="UTC")
    next_at = models.DateTimeField(null=True)
    seen_installations = models.JSONField(default=list)
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["title", "pk"]
        constraints = [is_one_of("kind", ScheduleKind, name="schedule_kind_is_known")]

    def __str__(self) -> str:
        return self.title


class ScheduleEvent(models.Model):
    """One firing of a schedule: the campaign that it queued, or why it queued none."""

    schedule = models.ForeignKey("Schedule", models.CASCADE, related_name="events")
    campaign = models.ForeignKey(
        "Campaign", models.SET_NULL, null=True, related_name="schedule_events"
    )
    at = models.DateTimeField(auto_now_add=True)
    code = models.CharField(max_length=60)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ["schedule", "-pk"]
        # The newest of each schedule.
        indexes = [
            models.Index(fields=["schedule", "-id"], name="schedule_event_by_schedule")
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id}: {self.code}"
