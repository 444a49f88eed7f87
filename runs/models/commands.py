"""Every command that a run executed on a target."""

from django.db import models


class Command(models.Model):
    """One durable step: argv, exit status, times and output (its first and last part if long)."""

    run = models.ForeignKey("Run", models.CASCADE, related_name="commands")
    attempt = models.PositiveSmallIntegerField()
    ordinal = models.PositiveIntegerField()
    step = models.CharField(max_length=80)
    host = models.CharField(max_length=255)
    argv = models.JSONField()
    stdin = models.TextField(blank=True)
    exit_status = models.IntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    stdout = models.TextField(blank=True)
    stderr = models.TextField(blank=True)
    truncated = models.BooleanField(default=False)

    class Meta:
        ordering = ["run", "attempt", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt", "step"], name="command_once"),
        ]

    def __str__(self) -> str:
        return f"{self.step}: {self.exit_status}"
