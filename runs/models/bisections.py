"""Bisections: builds of several commits, measured in turn until it is known which one is slower."""

from django.conf import settings
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

    State = BuildState
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


class Ablation(models.Model):
    """A campaign whose cells are A, B, B again, B with each suspect put back, and with all.

    `base` and `head` are the cells A and B whose difference it explains. `suspects` are those that
    are tried, as they were when it was queued: `name`, `a`, `b`, and `put_back`, the settings. An
    arm is the cell with the level `arm`: its name as in `runs.analysis.why.proof`.
    """

    campaign = models.OneToOneField("Campaign", models.CASCADE, related_name="ablation")
    base = models.ForeignKey("Cell", models.CASCADE, related_name="+", db_index=False)
    head = models.ForeignKey("Cell", models.CASCADE, related_name="+")
    suspects = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["base", "head", "-id"], name="ablation_by_cells")
        ]

    def __str__(self) -> str:
        return f"{self.base_id} … {self.head_id}"


class BisectionState(models.TextChoices):
    """The state of a bisection; see `Bisection.State`."""

    RUNNING = "running", _("running")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class Bisection(models.Model):
    """A red or undecided verdict, settled on a server that has installations of both commits.

    `builds` are in the order of the history, the base's first and the head's last: each has
    `installation` (its key; None: to be built), `bindir`, and `commit`, empty where it is not
    known. `is_building`: the next step waits for builds. The loss lies behind the build `low` and
    not behind `high`, two places in that list. `asked` has what was compared (base, head, metrics,
    effect); `draft` what is measured (`Draft.to_json`, without title and installations);
    `followed` the metric and levels that show the loss. `verdict` is that of base
    and head, by the version `rules` of the rules; empty until the first step has ended. `is_found`
    says whether `high` by itself is slower than the build before it.

    `message` is English, and `messages` has it in the other languages. Each step is queued in the
    name of `created_by` and `token`; `is_own` says that BenchLab itself asked. `wait_seconds`: it
    is cancelled when nobody has asked for the answer for so long, `awaited_at` being the last time.
    """

    State = BisectionState

    project = models.ForeignKey(
        "Project", models.CASCADE, null=True, related_name="bisections"
    )
    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="bisections")
    server = models.ForeignKey("Server", models.CASCADE, related_name="bisections")
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    asked = models.JSONField()
    draft = models.JSONField()
    builds = models.JSONField()
    followed = models.JSONField(default=dict)
    low = models.PositiveIntegerField(default=0)
    high = models.PositiveIntegerField()
    verdict = models.CharField(max_length=20, blank=True)
    is_found = models.BooleanField(default=False)
    rules = models.PositiveSmallIntegerField(default=0)
    message = models.TextField(blank=True)
    messages = models.JSONField(default=dict, db_default={})
    # Of what is asked and what is measured: the same question runs once at a time.
    fingerprint = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    token = models.ForeignKey("Token", models.SET_NULL, null=True)
    is_building = models.BooleanField(default=False, db_default=False)
    is_own = models.BooleanField(default=False, db_default=False)
    wait_seconds = models.PositiveIntegerField(null=True)
    awaited_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            is_one_of("state", BisectionState, name="bisection_state_is_known"),
            models.UniqueConstraint(
                fields=["campaign", "fingerprint"],
                condition=models.Q(state="running"),
                name="bisection_once_at_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                condition=models.Q(state="running"),
                name="bisection_running",
            ),
            # For judging again what older rules judged: control asks for it at each turn.
            models.Index(
                fields=["rules", "id"],
                condition=models.Q(state="finished"),
                name="bisection_by_rules",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.asked.get('base')} … {self.asked.get('head')}"

    @property
    def is_narrow(self) -> bool:
        """Whether nothing lies between `low` and `high`."""
        return self.high == self.low + 1


class BisectionStep(models.Model):
    """A campaign of a bisection: it measures the builds `low` and `high`, and one in the middle.

    Without a middle it decides whether the one is slower than the other. `table` has that answer as
    it was given, row by row (`gate.as_json`): later runs do not change it.
    """

    bisection = models.ForeignKey("Bisection", models.CASCADE, related_name="steps")
    campaign = models.OneToOneField(
        "Campaign", models.CASCADE, related_name="bisection_step"
    )
    low = models.PositiveIntegerField()
    middle = models.PositiveIntegerField(null=True)
    high = models.PositiveIntegerField()
    table = models.JSONField(null=True)

    class Meta:
        ordering = ["bisection", "pk"]

    def __str__(self) -> str:
        return f"{self.low} … {self.high}"
