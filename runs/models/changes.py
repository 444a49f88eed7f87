"""Changes found in histories: steps and alarms, and what people decided about them."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Change(models.Model):
    """A point of a history from which on the metric is another. Each is told once.

    `cell` is the first point after the change, `ratio` that of the medians after and before.
    """

    class Kind(models.TextChoices):
        STEP = "step", _("step")
        ALARM = "alarm", _("single run")

    class Decision(models.TextChoices):
        OPEN = "open", _("open")
        CONFIRMED = "confirmed", _("confirmed")
        DISMISSED = "dismissed", _("dismissed")

    cell = models.ForeignKey("Cell", models.CASCADE, related_name="changes")
    metric = models.ForeignKey("Metric", models.PROTECT)
    kind = models.CharField(max_length=10, choices=Kind)
    ratio = models.FloatField()
    before = models.FloatField()
    after = models.FloatField()
    p_value = models.FloatField(null=True)
    found_at = models.DateTimeField(auto_now_add=True)
    decision = models.CharField(max_length=10, choices=Decision, default=Decision.OPEN)
    note = models.TextField(blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-found_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["cell", "metric", "kind"], name="change_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ratio:.3f}"
