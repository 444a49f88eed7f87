"""Builds: installations that BenchLab makes from a commit, on the server that measures them."""

from typing import TypeAlias

from django.db import models
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class BuildState(models.TextChoices):
    """How far a build is; see `Build.State`."""

    WAITING = "waiting", _("waiting")
    BUILDING = "building", _("being built")
    DONE = "done", _("built")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    REMOVED = "removed", _("removed")


class Build(models.Model):
    """A commit of PostgreSQL, built from the server's clone into BenchLab's base directory there.

    `bindir` is where its programs are, `options` those of `configure`. `log` is the end of what
    the build printed, as far as it failed. Nothing is measured on the server while it is BUILDING.
    """

    State: TypeAlias = BuildState
    OPEN = (BuildState.WAITING, BuildState.BUILDING)
    LIVE = (*OPEN, BuildState.DONE)

    server = models.ForeignKey("Server", models.CASCADE, related_name="builds")
    commit = models.CharField(max_length=64)
    bindir = models.CharField(max_length=500)
    options = models.JSONField(default=list)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    code = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    log = models.TextField(blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    # A worker is looking at it since then.
    looked_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            is_one_of("state", BuildState, name="build_state_is_known"),
            models.UniqueConstraint(
                fields=["server", "commit"],
                condition=models.Q(state__in=["waiting", "building", "done"]),
                name="build_once",
            ),
            models.UniqueConstraint(
                fields=["server"],
                condition=models.Q(state="building"),
                name="build_one_at_a_time",
            ),
        ]
        # Those of a bisection, which may be removed by now.
        indexes = [models.Index(fields=["server", "commit"], name="build_by_commit")]

    def __str__(self) -> str:
        return f"{self.commit[:12]} on {self.server_id}: {self.state}"
