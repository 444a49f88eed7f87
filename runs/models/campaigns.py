"""Campaigns, their cells, and the stored summary of each cell."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class CacheVersion(models.Model):
    """The version of a subject, which triggers raise in the transaction that changes its rows.

    Subjects are "campaign 12" (its cells, finished runs, figures and notes), "campaign 12 runs"
    (all of its runs), "machines" (how the runs of executed campaigns that have ended scatter) and
    "shared" (metrics, scenarios, servers' names: what any answer may show). "uploads 12" is
    that of an uploaded campaign, which an upload does not raise (`shared.caching.of_uploads`). A
    version is never used twice: the microseconds since 1970, or the one after the last.
    """

    subject = models.CharField(max_length=40, primary_key=True)
    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.subject}: {self.number}"


class Scenario(models.Model):
    """A procedure with factors and metrics. `runnable` ones have code, the others only data."""

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    runnable = models.BooleanField(default=False)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.title


class Workload(models.Model):
    """A name for versions of scripts of a project. A level `slug@3` is its third version."""

    slug = models.SlugField(max_length=80, unique=True)
    project = models.ForeignKey(
        "Project", models.CASCADE, null=True, related_name="workloads"
    )
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class WorkloadVersion(models.Model):
    """A version of a workload since `created_at`; runs refer to it, so it never changes.

    `scripts` are objects of `name`, `text` and `weight`, in order; `variables` maps names to
    values. The tables are those of `pgbench -i` with `init_options`, unless `has_own_tables`;
    `init_sql` is run after that.
    """

    workload = models.ForeignKey(
        "Workload", models.PROTECT, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField()
    scripts = models.JSONField()
    variables = models.JSONField(default=dict)
    init_options = models.CharField(
        _("options of pgbench -i"), max_length=200, blank=True
    )
    init_sql = models.TextField(_("SQL before the load"), blank=True)
    has_own_tables = models.BooleanField(_("own tables"), default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["workload", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "number"], name="workload_version_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload.slug}@{self.number}"


class Origin(models.TextChoices):
    """Where results come from."""

    EXECUTED = "executed", _("executed")
    PUBLISHED = "published", _("published")
    UPLOADED = "uploaded", _("uploaded")
    # Executed elsewhere, by what an export says (`runs.models.runs.Import`).
    IMPORTED = "imported", _("imported")


class CampaignState(models.TextChoices):
    """The state of a campaign; see `Campaign.State`."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    FINISHED = "finished", _("finished")
    INCOMPLETE = "incomplete", _("ended with failures")
    CANCELLED = "cancelled", _("cancelled")


class Campaign(models.Model):
    """One question: scenario x factor levels x repeats, in a random order with a stored seed.

    `factors` maps each factor to its levels in display order; `parameters` has the constants of the
    scenario (scale, duration in seconds, ...).
    """

    State = CampaignState

    LIVE = (State.QUEUED, State.RUNNING)
    ENDED = (State.FINISHED, State.INCOMPLETE, State.CANCELLED)

    slug = models.SlugField(max_length=120, unique=True)
    # What uploads of its project call it, where a private campaign of others has that slug.
    uploaded_as = models.SlugField(
        max_length=120, blank=True, default="", db_default="", db_index=False
    )
    title = models.CharField(_("title"), max_length=200)
    title_ja = models.CharField(max_length=200, blank=True)
    question = models.TextField(_("question"), blank=True)
    question_ja = models.TextField(blank=True)
    # The slug of the published campaign that it repeats; empty for most.
    reproduces = models.SlugField(max_length=120, blank=True, db_index=False)
    # What it has otherwise than that publication, as runs.archive.selectors.reproduction computes
    # it once. Null: not computed.
    changes = models.JSONField(null=True)
    project = models.ForeignKey(
        "Project", models.PROTECT, null=True, related_name="campaigns"
    )
    # Whether everybody may see it; kept by triggers (migration 0075).
    is_public = models.BooleanField(default=True, db_default=True, editable=False)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.EXECUTED)
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    scenario = models.ForeignKey("Scenario", models.PROTECT, related_name="campaigns")
    topology = models.ForeignKey("Topology", models.PROTECT, null=True)
    configuration = models.ForeignKey("Configuration", models.PROTECT, null=True)
    # The content of the configuration when the campaign was queued. Both are null if the
    # configuration is a factor: see CampaignConfiguration.
    configuration_revision = models.ForeignKey(
        "ConfigurationRevision", models.PROTECT, null=True
    )
    factors = models.JSONField(default=dict)
    parameters = models.JSONField(default=dict)
    # The chosen parts of a runs.execution.machine.treatment.Treatment; empty for most.
    treatment = models.JSONField(default=dict)
    repeats = models.PositiveSmallIntegerField(_("repeats"), default=3)
    seed = models.BigIntegerField(default=0)
    # A cell whose interval is wider than this (0.02 is 2 % to each side) gets further repeats, up
    # to `most_repeats`; null if the repeats are fixed.
    wanted_half_width = models.FloatField(null=True)
    most_repeats = models.PositiveSmallIntegerField(null=True)
    # The runs of a round are measured in turn, in slices of so many seconds; null: one by one.
    slice_seconds = models.PositiveSmallIntegerField(_("seconds of a slice"), null=True)
    # After how many rounds somebody looked and added more: each look costs its part of the 5 %.
    looks = models.JSONField(default=list)
    # How often a doubtful run is measured again, if its doubt may be avoided.
    remeasures = models.PositiveSmallIntegerField(
        _("repeats of doubtful runs"), default=1, db_default=1
    )
    # Whether doubtful runs are withdrawn when the campaign has ended: a rule stated beforehand.
    leaves_out_doubtful = models.BooleanField(
        _("leaves out doubtful runs"), default=False, db_default=False
    )
    # Of the runs that wait for a server, those with the highest priority go first, then the oldest.
    priority = models.SmallIntegerField(_("priority"), default=0)
    paused_at = models.DateTimeField(null=True)
    # Its runs start on a server only while other programs leave it alone.
    waits_for_quiet = models.BooleanField(default=False, db_default=False)
    # When somebody cancelled all of it; a run that is cancelled alone is another thing.
    cancelled_at = models.DateTimeField(null=True)
    # How often each run is started at most automatically.
    most_attempts = models.PositiveSmallIntegerField(_("attempts at most"), default=3)
    year = models.PositiveSmallIntegerField(_("year"), null=True)
    # If no upload comes for longer than this, that is reported.
    expected_every = models.DurationField(_("expected every"), null=True)
    # When the missing uploads were reported; once for each absence.
    missing_told_at = models.DateTimeField(null=True)
    # The absence (its missing_told_at) that was mailed, or that had no recipient.
    missing_mailed_at = models.DateTimeField(null=True)
    # When a worker began to mail it; null when nobody does.
    mailing_since = models.DateTimeField(null=True)
    # The history has only the revisions of this branch; if empty, it has all.
    tracked_ref = models.CharField(
        _("branch of the history"), max_length=200, blank=True
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            is_one_of("state", CampaignState, name="campaign_state_is_known"),
            is_one_of("origin", Origin, name="campaign_origin_is_known"),
            models.UniqueConstraint(
                fields=["project", "uploaded_as"],
                condition=~models.Q(uploaded_as=""),
                name="campaign_once_as_uploaded",
            ),
        ]
        indexes = [
            models.Index(fields=["origin", "-id"], name="campaign_by_origin"),
            # The newest that everybody may see, and those of a private project.
            models.Index(
                fields=["-id"],
                condition=models.Q(is_public=True),
                name="campaign_public",
            ),
            models.Index(
                fields=["origin", "-id"],
                condition=models.Q(is_public=True),
                name="campaign_public_by_origin",
            ),
            models.Index(
                fields=["project", "-id"],
                condition=models.Q(is_public=False),
                name="campaign_private",
            ),
            # The newest of a theme for the line through versions.
            models.Index(
                fields=["scenario", "origin", "-id"], name="campaign_by_theme"
            ),
            # The few in progress.
            models.Index(
                fields=["state", "-id"],
                condition=~models.Q(state="finished"),
                name="campaign_by_state",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_state_display(self) -> str:  # type: ignore[no-redef]  # by django-stubs
        """As Django's, which asks for the words of all states to find those of one."""
        return str(CampaignState(self.state).label)

    def get_origin_display(self) -> str:  # type: ignore[no-redef]  # by django-stubs
        """As get_state_display."""
        return str(Origin(self.origin).label)

    @property
    def known_repeats(self) -> int | None:
        """How often each cell is measured; None if a publication does not print it."""
        table = (
            getattr(self, "published", None)
            if self.origin == Origin.PUBLISHED
            else None
        )
        return table.repeats if table else self.repeats


class CampaignConfiguration(models.Model):
    """A configuration of a campaign with several: its content when the campaign was queued.

    The first is the baseline. Cells name it by its slug, the level of their factor.
    """

    campaign = models.ForeignKey(
        "Campaign", models.CASCADE, related_name="configurations"
    )
    configuration = models.ForeignKey("Configuration", models.PROTECT, related_name="+")
    revision = models.ForeignKey("ConfigurationRevision", models.PROTECT)
    ordinal = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["campaign", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "configuration"], name="campaign_configuration_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.campaign_id}: {self.configuration_id}"


class Cell(models.Model):
    """One combination of levels. `levels` maps factor to level; `key` is its canonical text.

    An uploaded cell also belongs to a revision, which is then part of its key; cells that
    differ only in their revision share `series_key` and are the points of one history.
    `workload` is what an upload says about the load (script, query mode, rate ...).
    """

    # The first column of indexes below; so are the other keys without an index of their own.
    campaign = models.ForeignKey(
        "Campaign", models.CASCADE, related_name="cells", db_index=False
    )
    # From 1. Cells of uploads made at the same time may have the same one: order by the key, too.
    ordinal = models.PositiveIntegerField()
    levels = models.JSONField()
    workload = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    key = models.CharField(max_length=1000)
    series_key = models.CharField(max_length=300, blank=True)
    revision = models.ForeignKey(
        "Revision", models.PROTECT, null=True, related_name="cells", db_index=False
    )
    # When its commit was made; kept by triggers (migration 0076).
    commit_at = models.DateTimeField(null=True, editable=False)
    installation = models.ForeignKey("Installation", models.PROTECT, null=True)
    version = models.CharField(max_length=40, blank=True)
    version_num = models.PositiveIntegerField(null=True)
    # The names in a level of users' own scripts.
    workload_version = models.ForeignKey(
        "WorkloadVersion",
        models.PROTECT,
        null=True,
        related_name="cells",
        db_index=False,
    )

    class Meta:
        ordering = ["campaign", "ordinal", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["campaign", "key"], name="cell_once")
        ]
        indexes = [
            models.Index(
                fields=["campaign", "series_key", "ordinal"],
                name="cell_by_series_ordinal",
            ),
            # The newest points of a history.
            models.Index(
                fields=["campaign", "series_key", "-commit_at", "-id"],
                condition=models.Q(revision__isnull=False),
                name="cell_by_commit",
            ),
            # Whether a campaign has measured a commit, which many campaigns may have.
            models.Index(
                fields=["revision", "campaign"],
                condition=models.Q(revision__isnull=False),
                name="cell_by_revision",
            ),
            # The last ordinal, which each new cell of an upload follows.
            models.Index(fields=["campaign", "ordinal"], name="cell_by_ordinal"),
            # Also finds by prefix, whatever the database's collation.
            models.Index(
                fields=["version", "campaign"],
                opclasses=["varchar_pattern_ops", "int8_ops"],
                name="cell_by_version",
            ),
            # The newest campaigns of a workload.
            models.Index(
                fields=["workload_version", "campaign"],
                condition=models.Q(workload_version__isnull=False),
                name="cell_by_workload",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class CellSummary(models.Model):
    """A metric over the finished repeats of a cell, kept current by the write that changes them.

    `log_mean` and `log_variance` are those of the natural logarithms (sample variance, n - 1), null
    if a value is not positive, and the variance also if n < 2. `n` is null if a publication does
    not print how many repeats its value is based on.
    """

    cell = models.ForeignKey(
        "Cell", models.CASCADE, related_name="summaries", db_index=False
    )
    metric = models.ForeignKey("Metric", models.PROTECT)
    n = models.PositiveIntegerField(null=True)
    median = models.FloatField()
    minimum = models.FloatField()
    maximum = models.FloatField()
    mean = models.FloatField()
    log_mean = models.FloatField(null=True)
    log_variance = models.FloatField(null=True)

    class Meta:
        ordering = ["cell", "metric"]
        constraints = [
            models.UniqueConstraint(fields=["cell", "metric"], name="cell_summary_once")
        ]

    def __str__(self) -> str:
        return f"{self.median} ({self.n})"


class AnnotationKind(models.TextChoices):
    """What an annotation is; see `Annotation.Kind`."""

    NOTE = "note", _("note")
    CONCLUSION = "conclusion", _("conclusion")
    DISCUSSION = "discussion", _("discussion")


class Annotation(models.Model):
    """A note on a campaign or one of its cells, a conclusion, or a report's discussion."""

    Kind = AnnotationKind

    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="annotations")
    cell = models.ForeignKey(
        "Cell", models.CASCADE, null=True, related_name="annotations"
    )
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.NOTE)
    text = models.TextField(_("text"))
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["campaign", "created_at", "pk"]
        constraints = [
            is_one_of("kind", AnnotationKind, name="annotation_kind_is_known")
        ]

    def __str__(self) -> str:
        return self.text[:60]


class SavedComparison(models.Model):
    """`query` is the query string of the compare page, which holds its whole state."""

    slug = models.SlugField(max_length=120, unique=True)
    title = models.CharField(_("title"), max_length=200)
    note = models.TextField(_("note"), blank=True)
    query = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.title
