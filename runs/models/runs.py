"""Runs, their states, and the events that record each change of state."""

import re
import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.campaigns import Origin
from runs.models.constraints import is_one_of, seen_by_readers


class Hold(models.TextChoices):
    """Why a results database may be a copy; see `Instance.Hold`."""

    RESTORED = "restored", _("It was restored from a backup.")
    MOVED = "moved", _("Its files were moved or copied to another place.")
    BEHIND = "behind", _("A server was claimed by a copy of it.")


class Instance(models.Model):
    """The one row that names this results database, so that targets can distinguish BenchLabs.

    A copy has the same name. Its host signs name and `epoch` with a key that no backup has
    (`runs.operations.services.copies`); `places` are the folders of that key that are known. A copy
    is held until a person says of each server who uses it, and then has a higher epoch.
    """

    Hold = Hold

    name = models.UUIDField(default=uuid.uuid4, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # The rules by which all runs are certified; while older, some runs are judged again each time.
    judged_rules = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Since this update, services of an older release may have stored what has no mark; None: no
    # more. Authenticated by its own mark (`runs.access.selectors.macs`).
    unsealed_since = models.DateTimeField(null=True)
    unsealed_mark = models.CharField(
        max_length=64, blank=True, default="", db_default=""
    )
    epoch = models.PositiveIntegerField(default=1, db_default=1)
    signature = models.CharField(max_length=64, blank=True, default="", db_default="")
    places = models.JSONField(default=list, db_default=[])
    held_since = models.DateTimeField(null=True)
    # One of `Hold`, while it is held.
    held_by = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Of `behind`: which server it was, and who has claimed it since.
    held_at = models.CharField(max_length=80, blank=True, default="", db_default="")
    # The newest release that has been in control here, in the order of text
    # (`runs.shared.releases`): a worker of an older one takes nothing.
    release = models.CharField(max_length=40, blank=True, default="", db_default="")

    class Meta:
        constraints = [models.CheckConstraint(name="one_instance", condition=Q(pk=1))]

    def __str__(self) -> str:
        return str(self.name)

    @property
    def why_held(self) -> str:
        """In words; empty where it is not held."""
        return str(Hold(self.held_by).label) if self.held_by else ""


class Import(models.Model):
    """An export that was stored here: where its runs came from, and what was proved of them.

    `instance` is the name that the sending BenchLab gives itself, `key` the public key (64
    hexadecimal digits) that signed the last entry of its chain; both are what the file says.
    `is_verified`: each run was as that key had sealed it, by a complete chain; else `fault` says
    what was not. Whether the key is whose it should be is for people to compare.
    """

    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=200, blank=True)
    instance = models.CharField(max_length=40, blank=True)
    key = models.CharField(max_length=64, blank=True)
    is_verified = models.BooleanField(default=False)
    fault = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.instance}: {self.at}"


# The repeat of a published run with what is printed for a cell besides its repeats.
SUMMARY_REPEAT = 0


def _listed(
    field: str, condition: Q, *, name: str, in_campaign: bool = False
) -> list[models.Index]:
    """The indexes of a filter of lists, for those who see all and for those who do not.

    And within a campaign that may be long, of what few of its runs have, and many of others.
    """
    indexes = [
        models.Index(fields=[field, "-id"], condition=condition, name=f"run_by_{name}"),
        models.Index(
            fields=[field, "-id"],
            condition=condition & Q(is_public=True),
            name=f"run_public_by_{name}",
        ),
    ]
    if in_campaign:
        fields = ["campaign", field, "-id"]
        indexes.append(
            models.Index(
                fields=fields, condition=condition, name=f"run_by_campaign_{name}"
            )
        )
    return indexes


class RunState(models.TextChoices):
    """The state of a run; see `Run.State`."""

    QUEUED = "queued", _("queued")
    CLAIMED = "claimed", _("claimed")
    PREPARING = "preparing", _("preparing")
    MEASURING = "measuring", _("measuring")
    COLLECTING = "collecting", _("collecting")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")
    ERRORED = "errored", _("error in BenchLab")
    CANCELLED = "cancelled", _("cancelled")
    LOST = "lost", _("lost its worker")
    WITHDRAWN = "withdrawn", _("withdrawn")


class RunValidity(models.TextChoices):
    """What a run's certificate says of its result; see `Run.Validity`."""

    VALID = "valid", _("valid")
    DOUBTFUL = "doubtful", _("doubtful")
    INVALID = "invalid", _("invalid")


def judgement(state: str, validity: str) -> str:
    """The word for a run in this state whose stored `validity` is this."""
    has_result = state in {RunState.FINISHED, RunState.WITHDRAWN}
    return validity or "unknown" if has_result else ""


class Run(models.Model):
    """One execution of one cell.

    `plan` is frozen when the run is queued: the run does what it was queued to do, even if the
    database changes afterwards. `attempt` counts how often it was started from the beginning; a
    run that a new worker takes over continues in the same attempt.

    CONTRIBUTING.md says where a new field has to be named.
    """

    State = RunState
    Validity = RunValidity

    DOUBTED = (Validity.DOUBTFUL, Validity.INVALID)
    ACTIVE = (State.CLAIMED, State.PREPARING, State.MEASURING, State.COLLECTING)
    UNSUCCESSFUL = (State.FAILED, State.ERRORED, State.CANCELLED)
    # A withdrawn run had finished; no result uses it any more.
    WITH_RESULT = (State.FINISHED, State.WITHDRAWN)
    ENDED = (*WITH_RESULT, *UNSUCCESSFUL)
    # An imported run has a plan as well, but no server that could execute it.
    RETRIABLE = Q(state__in=UNSUCCESSFUL, plan__isnull=False, server__isnull=False)
    # It counts, and its certificate says that it cannot be relied on.
    DOUBTFUL = Q(state=State.FINISHED, validity__in=DOUBTED)
    # Withdrawn by rule: invalid, and nobody has said that it counts all the same.
    LEFT_OUT = Q(state=State.WITHDRAWN, code=Validity.INVALID)
    # Measured to its end, whether it counts by its certificate or not.
    MEASURED = Q(state=State.FINISHED) | LEFT_OUT

    # Each is the first column of indexes below: another one would only make uploads slower.
    campaign = models.ForeignKey(
        "Campaign", models.CASCADE, related_name="runs", db_index=False
    )
    # The constraint is on both, so that a cell is the campaign's (migration 0082).
    cell = models.ForeignKey(
        "Cell", models.CASCADE, related_name="runs", db_index=False, db_constraint=False
    )
    # Those of the cell, for lists by version; kept by triggers (migration 0018).
    cell_version = models.CharField(
        max_length=40, blank=True, db_default="", editable=False
    )
    cell_major = models.CharField(
        max_length=40, blank=True, db_default="", editable=False
    )
    # Whether everybody may see it; kept by triggers (migration 0065).
    is_public = models.BooleanField(default=True, db_default=True, editable=False)
    # Else the project whose members may; kept by triggers (migration 0075).
    private_project = models.BigIntegerField(null=True, editable=False)
    repeat = models.PositiveIntegerField()
    # Runs of one round were made together. Null: as `repeat` for runs executed here, else unknown.
    round = models.PositiveIntegerField(null=True)
    position = models.PositiveIntegerField()
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.EXECUTED)
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    code = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)
    # The message as text and values (`runs.wording`), where it is made of them.
    wording = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    attempt = models.PositiveSmallIntegerField(default=1)
    cancel_requested_at = models.DateTimeField(null=True)
    plan = models.JSONField(null=True)

    server = models.ForeignKey(
        "Server", models.PROTECT, null=True, related_name="runs", db_index=False
    )
    hardware = models.ForeignKey(
        "HardwareProfile", models.PROTECT, null=True, db_index=False
    )
    # Asked for with its campaign only; environments are never deleted.
    environment = models.ForeignKey(
        "Environment", models.PROTECT, null=True, db_index=False
    )
    settings = models.ForeignKey("SettingsSnapshot", models.PROTECT, null=True)
    cluster = models.ForeignKey(
        "PreparedCluster", models.SET_NULL, null=True, db_index=False
    )
    server_version = models.CharField(max_length=40, blank=True)
    tool_name = models.CharField(max_length=40, blank=True)
    tool_version = models.CharField(max_length=40, blank=True)
    quality = models.JSONField(default=list)
    # The doubtful run that this one measures again.
    again_of = models.ForeignKey(
        "Run", models.SET_NULL, null=True, related_name="again", db_index=False
    )
    # The active run whose lease it shares: both are measured in turn by one worker.
    led_by = models.ForeignKey(
        "Run",
        models.SET_NULL,
        null=True,
        related_name="led",
        db_index=False,
        db_constraint=False,
    )
    # How far it can be relied on; empty if not judged. See runs.analysis.certificate.
    validity = models.CharField(
        max_length=10, choices=Validity, blank=True, db_default=""
    )
    certificate = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    # What each machine did of a fixed piece of work before and after the load, by its name in the
    # run: `before` and `after` are rates by part, of `program` on `processors`. Null: not known.
    # See runs.execution.machine.speed.
    speed = models.JSONField(null=True)
    # The import that brought it; null for what was executed here or uploaded. Each constraint is
    # work for every upload, and imports are never deleted.
    imported = models.ForeignKey(
        "Import",
        models.PROTECT,
        null=True,
        related_name="runs",
        db_index=False,
        db_constraint=False,
    )
    # An uploader's name for the run, and other information about it.
    external_id = models.CharField(max_length=200, blank=True)
    labels = models.JSONField(default=dict)

    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            is_one_of(
                "validity", RunValidity, name="run_validity_is_known", or_empty=True
            ),
            is_one_of("state", RunState, name="run_state_is_known"),
            is_one_of("origin", Origin, name="run_origin_is_known"),
            models.UniqueConstraint(
                fields=["cell", "repeat"], name="run_once_a_repeat"
            ),
            models.UniqueConstraint(
                fields=["campaign", "external_id"],
                condition=~Q(external_id=""),
                name="run_once_an_external_id",
            ),
            models.UniqueConstraint(
                fields=["server"],
                condition=Q(
                    state__in=["claimed", "preparing", "measuring", "collecting"],
                    led_by__isnull=True,
                ),
                name="one_leading_run_a_server",
            ),
        ]
        indexes = [
            models.Index(fields=["campaign", "state"], name="run_by_campaign_state"),
            # Its first is the newest upload of a campaign, which is queried every few seconds.
            models.Index(fields=["campaign", "-id"], name="run_by_campaign"),
            # The filters of lists, the newest first; most uploads have the default and are not
            # indexed.
            *_listed("cell_major", ~Q(cell_major=""), name="major", in_campaign=True),
            *_listed("cell_version", ~Q(cell_version=""), name="version"),
            # 9 is asked for as seven major versions: their newest, in one order.
            models.Index(
                fields=["-id"],
                condition=Q(cell_major__in=[f"9.{minor}" for minor in range(7)]),
                name="run_of_nine",
            ),
            *_listed("state", ~Q(state="finished"), name="state"),
            *_listed("origin", ~Q(origin="uploaded"), name="origin"),
            *_listed("validity", ~Q(validity=""), name="validity", in_campaign=True),
            *_listed(
                "server", Q(server__isnull=False), name="server", in_campaign=True
            ),
            *_listed("hardware", Q(hardware__isnull=False), name="hardware"),
            # The last certificates of a server, behind whatever waits for it.
            *_listed(
                "server",
                Q(origin="executed", state__in=["finished", "withdrawn"]),
                name="ended_here",
            ),
            models.Index(
                fields=["private_project", "hardware", "-id"],
                condition=Q(private_project__isnull=False, hardware__isnull=False),
                name="run_private_by_hardware",
            ),
            models.Index(
                fields=["again_of"],
                condition=Q(again_of__isnull=False),
                name="run_measured_again",
            ),
            models.Index(
                fields=["led_by"], condition=Q(led_by__isnull=False), name="run_led"
            ),
            # The last speeds of a server, by which those of a run are judged.
            models.Index(
                fields=["server", "-finished_at"],
                condition=Q(speed__isnull=False),
                name="run_with_speed",
            ),
            # Judged again when the rules change.
            models.Index(
                fields=["id"],
                condition=Q(origin="executed", state="finished"),
                name="run_executed_here",
            ),
            models.Index(
                fields=["campaign", "hardware"], name="run_by_campaign_hardware"
            ),
            models.Index(
                fields=["campaign", "environment"], name="run_by_campaign_environment"
            ),
            models.Index(
                fields=["cluster"],
                condition=Q(cluster__isnull=False),
                name="run_by_cluster",
            ),
            models.Index(fields=["-finished_at", "-id"], name="run_by_end"),
            # Lists begin with what their reader may see: what is public, and own projects.
            *seen_by_readers("-id", public="run_public", private="run_private"),
            *seen_by_readers(
                "-finished_at",
                "-id",
                public="run_public_by_end",
                private="run_private_by_end",
            ),
            # A claim steps over each campaign's runs in it (`queue.services.leases`).
            models.Index(
                fields=["server", "campaign", "state", "id"],
                condition=Q(state__in=["queued", "lost"]),
                name="run_waiting_by_campaign",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pk}: {self.state}"

    def get_state_display(self) -> str:  # type: ignore[no-redef]  # by django-stubs
        """As Django's, which asks for the words of all states to find those of one."""
        return str(RunState(self.state).label)

    @property
    def is_active(self) -> bool:
        """A worker has it."""
        return self.state in self.ACTIVE

    @property
    def judgement(self) -> str:
        """Valid, doubtful, invalid or unknown; empty while there is no result to judge."""
        return judgement(self.state, self.validity)

    @property
    def has_ended(self) -> bool:
        """It will not change any more automatically."""
        return self.state in self.ENDED

    @property
    def can_retry(self) -> bool:
        """As RETRIABLE."""
        is_ours = self.plan is not None and self.server_id is not None
        return is_ours and self.state in self.UNSUCCESSFUL


class RunCount(models.Model):
    """How many runs a campaign has in a state, or all campaigns of an origin (`campaign` is 0).

    The sum over the rows of the same names. Triggers add rows (migration 0019), and nothing else
    does; `runs.queue.services.transitions` replaces them by their sum.
    """

    campaign = models.BigIntegerField()
    origin = models.CharField(max_length=10, blank=True)
    state = models.CharField(max_length=12)
    number = models.BigIntegerField()
    is_sum = models.BooleanField()

    class Meta:
        ordering = ["campaign", "origin", "state"]
        indexes = [
            models.Index(fields=["campaign", "origin"], name="run_count_by_campaign"),
            models.Index(
                fields=["campaign"], condition=Q(is_sum=False), name="run_count_to_add"
            ),
        ]
        constraints = [
            is_one_of("state", RunState, name="run_count_state_is_known"),
            is_one_of(
                "origin", Origin, name="run_count_origin_is_known", or_empty=True
            ),
        ]

    def __str__(self) -> str:
        return f"{self.campaign or self.origin}: {self.number} {self.state}"


class RunEvent(models.Model):
    """One thing that happened to a run: a change of state, or a note."""

    run = models.ForeignKey("Run", models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    from_state = models.CharField(max_length=12, blank=True)
    to_state = models.CharField(max_length=12, blank=True)
    code = models.CharField(max_length=60)
    message = models.TextField(blank=True)
    wording = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    attempt = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ["run", "id"]
        indexes = [
            # The few runs that were passed over, for which each claim looks.
            models.Index(
                fields=["run"],
                condition=Q(code="passed_over"),
                name="run_event_passed_over",
            ),
        ]
        constraints = [
            is_one_of(
                "from_state", RunState, name="event_from_state_is_known", or_empty=True
            ),
            is_one_of(
                "to_state", RunState, name="event_to_state_is_known", or_empty=True
            ),
        ]

    def __str__(self) -> str:
        return f"{self.from_state} -> {self.to_state}: {self.code}"


# The name of a stored content: SHA-256, in lower case.
DIGEST = re.compile(r"[0-9a-f]{64}")
MEDIA_TYPE = re.compile(
    r"\A[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*(; ?[a-z-]+=[a-zA-Z0-9._-]+)*"
)
# Not allowed in a name, which becomes the end of an address and part of a header.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


PLAN_PREFIX = "plan-"


class Artifact(models.Model):
    """A file of a run. `size` is in bytes, uncompressed; `sha256` names the stored content."""

    run = models.ForeignKey("Run", models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=200)
    media_type = models.CharField(max_length=100, default="text/plain")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run", "name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="artifact_once"),
            models.CheckConstraint(
                name="artifact_named_by_digest",
                condition=Q(sha256__regex=r"^[0-9a-f]{64}$"),
            ),
            models.CheckConstraint(name="artifact_has_size", condition=Q(size__gte=0)),
        ]
        indexes = [
            models.Index(fields=["sha256"], name="artifact_by_content"),
            # The few profiles, which are compared with others of the campaign.
            models.Index(
                fields=["run"],
                condition=Q(name="perf-folded.txt"),
                name="artifact_profile",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_plan(self) -> bool:
        """Whether it is the output of EXPLAIN, judged by its name."""
        return self.name.startswith(PLAN_PREFIX)


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
            models.UniqueConstraint(
                fields=["run", "attempt", "step"], name="command_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step}: {self.exit_status}"
