"""Checks of servers that somebody asked for: a request stores one, and a worker makes it."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.constraints import is_one_of


class ServerCheckKind(models.TextChoices):
    """What a worker does; see `ServerCheck.Kind`."""

    HOST_KEY = "host_key"
    EDIT = "edit"
    INSPECTION = "inspection"
    PREFLIGHT = "preflight"
    CAMPAIGN = "campaign"
    TRIAL = "trial"


class ServerCheckState(models.TextChoices):
    """How far it is; see `ServerCheck.State`."""

    WAITING = "waiting"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


class ServerCheck(models.Model):
    """Who asked what of which machines, and the answer, or why there is none.

    `server` is null for a campaign's preflight, which may concern several. `given` is the edit, the
    draft or the workload that is tried. A check that is open after `deadline` has no worker, or
    none any more.
    """

    Kind = ServerCheckKind
    State = ServerCheckState

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=12, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    server = models.ForeignKey(
        "Server", models.CASCADE, null=True, related_name="checks"
    )
    given = models.JSONField(default=dict)
    # Of the person who asked: the answer is in their language.
    language = models.CharField(max_length=12, blank=True)
    asked_by = models.CharField(max_length=150, blank=True)
    by_way_of = models.CharField(max_length=200, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    deadline = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    answer = models.JSONField(null=True)
    code = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)

    class Meta:
        ordering = ["-asked_at"]
        constraints = [
            is_one_of("kind", ServerCheckKind, name="server_check_kind_is_known"),
            is_one_of("state", ServerCheckState, name="server_check_state_is_known"),
        ]
        indexes = [
            models.Index(
                fields=["deadline"],
                condition=Q(state__in=["waiting", "active"]),
                name="server_check_open",
            ),
            models.Index(fields=["asked_at"], name="server_check_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def is_open(self) -> bool:
        """Whether it waits for a worker, or for the machines."""
        return self.state in {self.State.WAITING, self.State.ACTIVE}

    @property
    def is_preflight(self) -> bool:
        """Whether its answer is a preflight's findings; what others find is the server's."""
        return self.kind in {self.Kind.PREFLIGHT, self.Kind.CAMPAIGN}

    @property
    def prevents(self) -> bool:
        """Whether it is a preflight that could not be made, or found what prevents a campaign."""
        if not self.is_preflight or self.is_open:
            return False
        return not (self.answer and self.answer["is_clear"])

    @property
    def has_a_form(self) -> bool:
        """Whether it was asked for in a form that is not stored yet."""
        return self.kind in {self.Kind.CAMPAIGN, self.Kind.TRIAL}

    @property
    def is_about_the_server(self) -> bool:
        """Whether what it finds belongs to the server's own page."""
        return not self.is_preflight and self.kind != self.Kind.TRIAL

    @property
    def seconds(self) -> int:
        """How long ago it was asked for."""
        return int((timezone.now() - self.asked_at).total_seconds())


class CheckedServer(models.Model):
    """A server that an open check concerns. There is one row a server, so one check at a time."""

    server = models.OneToOneField("Server", models.CASCADE, primary_key=True)
    server_check = models.ForeignKey(
        ServerCheck, models.CASCADE, related_name="machines"
    )

    def __str__(self) -> str:
        return f"{self.server_id}: {self.server_check_id}"
