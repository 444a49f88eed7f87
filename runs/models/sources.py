"""Sources: publications, their tables, and every figure that they print."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of
from runs.models.measurements import OneToOneByKey, Statistic


class Upload(models.Model):
    """A request with an `Idempotency-Key`: the same body gets the same answer again."""

    project = models.ForeignKey(
        "Project", models.CASCADE, related_name="uploads", db_index=False
    )
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=201)
    answer = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="upload_once_a_key")
        ]

    def __str__(self) -> str:
        return self.key


class Revision(models.Model):
    """A commit, as the uploader names it. `parents` is a list of sha.

    `subject` is the first line of its message, `author` a name without an address. `merge_base` is
    where it left the branch that it is compared with, also where the commits between the two are
    not known here, and `merge_base_at` when that one was committed.
    """

    project = models.ForeignKey(
        "Project", models.CASCADE, related_name="revisions", db_index=False
    )
    sha = models.CharField(max_length=64)
    ref = models.CharField(_("branch or tag"), max_length=200, blank=True)
    url = models.URLField(max_length=500, blank=True)
    committed_at = models.DateTimeField(_("committed"), null=True)
    parents = models.JSONField(default=list)
    subject = models.CharField(max_length=200, blank=True, db_default="")
    author = models.CharField(max_length=100, blank=True, db_default="")
    merge_base = models.CharField(max_length=64, blank=True, db_default="")
    merge_base_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project", "-committed_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "sha"], name="revision_once")
        ]
        # The newest of a history, and the one before a commit.
        indexes = [
            models.Index(
                fields=["project", "-committed_at", "-id"],
                condition=models.Q(committed_at__isnull=False),
                name="revision_by_date",
            ),
            models.Index(
                fields=["project"],
                condition=models.Q(committed_at=None),
                name="revision_without_date",
            ),
        ]

    def __str__(self) -> str:
        return self.sha[:12]

    @property
    def described(self) -> str:
        """Its subject and author: "“Drop the index”, Jane Doe"; empty where neither is known."""
        if not self.subject:
            return self.author
        words = {"subject": self.subject, "author": self.author}
        if not self.author:
            return gettext("“%(subject)s”") % words
        return gettext("“%(subject)s”, %(author)s") % words


class RevisionRef(models.Model):
    """A further branch or tag that a commit is on, besides the `ref` it was first uploaded with."""

    revision = models.ForeignKey(
        "Revision", models.CASCADE, related_name="further_refs"
    )
    ref = models.CharField(_("branch or tag"), max_length=200)
    # Null for what was noted before this was kept.
    known_at = models.DateTimeField(auto_now_add=True, null=True)

    class Meta:
        ordering = ["revision", "ref"]
        constraints = [
            models.UniqueConstraint(fields=["revision", "ref"], name="ref_once")
        ]

    def __str__(self) -> str:
        return self.ref


class Source(models.Model):
    """A publication. `year` is the year observed; `published` as printed ("2014", "2012-12-22")."""

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(_("title"), max_length=300)
    title_ja = models.CharField(max_length=300, blank=True)
    publisher = models.CharField(_("publisher"), max_length=200, blank=True)
    publisher_ja = models.CharField(max_length=200, blank=True)
    year = models.PositiveSmallIntegerField(_("year"))
    published = models.CharField(_("published"), max_length=20, blank=True)
    language = models.CharField(max_length=8, default="ja")
    url = models.URLField(blank=True)
    # Addresses that lead towards an original whose own is not known: [{"url", "note"}].
    traces = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField())
    )
    licence = models.CharField(_("licence"), max_length=200, blank=True)
    licence_url = models.URLField(blank=True)
    summary = models.TextField(blank=True)
    summary_ja = models.TextField(blank=True)
    transcribed_on = models.DateField(_("transcribed on"), null=True)
    data_version = models.CharField(_("version of the data"), max_length=20, blank=True)
    # What was wrong in an earlier edition: [{"date", "table", "figures", "was", "now", "reason"}].
    corrections = models.JSONField(default=list)
    # The hash of the data file: a file that has not changed is not loaded again.
    content_hash = models.CharField(max_length=64, blank=True)
    loaded_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["year", "slug"]

    def __str__(self) -> str:
        return self.title


class PublishedTable(models.Model):
    """What a published campaign says about itself besides its numbers, in both languages.

    `number` is the table's number as printed, or a short name where it has none. `columns`
    describes each column ({"label": {"en", "ja"}, "group", "metric", "levels", ...}) and `grid`
    holds the texts of all rows as printed. `notes` is a list of {"en", "ja"}; `findings` too, with
    who concludes it in "by" (publication, benchlab, disagree) and the section. `repeats` is null
    and `statistic` empty where the publication does not print how often it measured.
    """

    campaign = models.OneToOneField(
        "Campaign", models.CASCADE, related_name="published"
    )
    source = models.ForeignKey("Source", models.CASCADE, related_name="tables")
    ordinal = models.PositiveSmallIntegerField()
    number = models.CharField(_("table"), max_length=40)
    section = models.CharField(_("section"), max_length=40, blank=True)
    page = models.CharField(_("page"), max_length=40, blank=True)
    figure = models.CharField(_("figure"), max_length=40, blank=True)
    # False where the publication shows the figures in a picture only.
    has_figures = models.BooleanField(default=True)
    repeats = models.PositiveIntegerField(_("repeats"), null=True)
    statistic = models.CharField(max_length=10, choices=Statistic, blank=True)
    method = models.JSONField(default=dict)
    # What readers of the first page ask ("yes_if" says which ratios mean yes), and the least and
    # greatest ratio that answer it.
    asked = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    answer = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField())
    )
    findings = models.JSONField(default=list)
    notes = models.JSONField(default=list)
    columns = models.JSONField(default=list)
    grid = models.JSONField(default=list)
    chart = models.JSONField(default=dict)
    reproduce = models.JSONField(default=dict)
    # The major versions that it is about: measured, varied, or stated for its software.
    versions = models.JSONField(default=list)
    # The words of both languages by weight, as runs.published.search_words cuts them.
    search = SearchVectorField(null=True)

    class Meta:
        ordering = ["source", "ordinal"]
        constraints = [
            is_one_of(
                "statistic", Statistic, name="table_statistic_is_known", or_empty=True
            ),
            models.UniqueConstraint(
                fields=["source", "number"], name="published_table_once"
            ),
        ]
        indexes = [GinIndex(fields=["search"], name="published_table_search")]

    def __str__(self) -> str:
        return f"{self.source_id}: {self.number}"


class PublishedNode(models.Model):
    """A machine of a published campaign: its role, and what is printed about it."""

    table = models.ForeignKey("PublishedTable", models.CASCADE, related_name="nodes")
    ordinal = models.PositiveSmallIntegerField()
    role = models.CharField(_("role"), max_length=40)
    name = models.JSONField(default=dict)
    software = models.CharField(_("software"), max_length=200, blank=True)
    hardware = models.ForeignKey("HardwareProfile", models.PROTECT, null=True)
    environment = models.ForeignKey("Environment", models.PROTECT, null=True)
    configuration = models.ForeignKey("Configuration", models.PROTECT, null=True)

    class Meta:
        ordering = ["table", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["table", "ordinal"], name="published_node_once"
            ),
        ]

    def __str__(self) -> str:
        return self.role


class FigureKind(models.TextChoices):
    """Where a printed figure comes from; see `PrintedFigure.Kind`."""

    MEASURED = "measured", _("measured")
    DERIVED = "derived", _("derived from other figures")
    NOT_MEASURED = "not_measured", _("printed, but not measured")


class PrintedFigure(models.Model):
    """A number in a table, as printed, and the value that BenchLab computes for it.

    `row` and `column` count from 0 in the table's grid. `recomputed` is null if the figure
    is not derived from others of the publication. `n` is null and `statistic` empty if the
    publication does not print how often it measured. `exact` is false if the publication
    itself says that the figure is not exact. `node` is the machine that it was measured on.
    `measured_run`, `measured_metric` and `measured_statistic` are the key of `measurement`.
    """

    Kind = FigureKind

    table = models.ForeignKey("PublishedTable", models.CASCADE, related_name="printed")
    row = models.PositiveSmallIntegerField()
    column = models.PositiveSmallIntegerField()
    text = models.CharField(max_length=60)
    n = models.PositiveIntegerField(null=True)
    statistic = models.CharField(max_length=10, choices=Statistic, blank=True)
    exact = models.BooleanField(default=True)
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.MEASURED)
    # No foreign keys of their own: the three together have one, to the measurement.
    measured_run = models.ForeignKey(
        "Run",
        models.CASCADE,
        null=True,
        db_index=False,
        db_constraint=False,
        related_name="+",
    )
    measured_metric = models.ForeignKey(
        "Metric",
        models.PROTECT,
        null=True,
        db_index=False,
        db_constraint=False,
        related_name="+",
    )
    measured_statistic = models.CharField(max_length=10, blank=True, db_default="")
    measurement = OneToOneByKey(
        "Measurement",
        models.CASCADE,
        from_fields=["measured_run", "measured_metric", "measured_statistic"],
        to_fields=["run", "metric", "statistic"],
        null=True,
        unique=True,
        related_name="printed",
    )
    # No index: nobody looks for the figures of a machine, and its table's go with it.
    node = models.ForeignKey("PublishedNode", models.CASCADE, null=True, db_index=False)
    recomputed = models.FloatField(null=True)
    differs = models.BooleanField(default=False)

    class Meta:
        ordering = ["table", "row", "column"]
        constraints = [
            is_one_of("kind", FigureKind, name="figure_kind_is_known"),
            is_one_of(
                "statistic", Statistic, name="figure_statistic_is_known", or_empty=True
            ),
            models.UniqueConstraint(
                fields=["table", "row", "column"], name="figure_once"
            ),
            models.UniqueConstraint(
                fields=["measured_run", "measured_metric", "measured_statistic"],
                name="figure_of_measurement",
            ),
        ]

    def __str__(self) -> str:
        return self.text


# Who states a figure, by its kind. BenchLab's own values are never stored as printed figures.
SAID_BY: dict[str, str] = {
    PrintedFigure.Kind.MEASURED: "printed",
    PrintedFigure.Kind.DERIVED: "derived",
    PrintedFigure.Kind.NOT_MEASURED: "not_measured",
}


class DiscrepancyKind(models.TextChoices):
    """What contradicts a figure; see `Discrepancy.Kind`."""

    RATIO = "ratio", _("ratio")
    MEDIAN = "median", _("median")
    SUM = "sum", _("sum")
    OTHER_TABLE = "other_table", _("another table says otherwise")
    REPEATED_ROW = "repeated_row", _("repeated row")
    NOT_MEASURED = "not_measured", _("printed, but not measured")
    TEXT = "text", _("the text says otherwise")


class DiscrepancyWeight(models.IntegerChoices):
    """How much a discrepancy matters, the most serious first."""

    WRONG_CONCLUSION = 1, _("wrong conclusion")
    WRONG_FIGURE = 2, _("wrong figure")
    ROUNDING = 3, _("rounding")
    WORDING = 4, _("wording")


class Discrepancy(models.Model):
    """Where a publication contradicts itself: found by recomputation, or reported by a reader.

    `figures` are those of its table that are concerned; `figure` is the first of them.
    """

    Weight = DiscrepancyWeight
    Kind = DiscrepancyKind

    table = models.ForeignKey(
        "PublishedTable", models.CASCADE, related_name="discrepancies"
    )
    figure = models.ForeignKey("PrintedFigure", models.CASCADE, null=True)
    figures = models.ManyToManyField("PrintedFigure", related_name="disputed")  # type: ignore[var-annotated]
    weight = models.PositiveSmallIntegerField(
        choices=Weight, default=Weight.WRONG_FIGURE
    )
    ordinal = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=20, choices=Kind)
    printed = models.CharField(max_length=100)
    recomputed = models.CharField(max_length=100, blank=True)
    explanation = models.JSONField(default=dict)

    class Meta:
        ordering = ["table", "ordinal"]
        verbose_name_plural = "discrepancies"
        constraints = [
            is_one_of("kind", DiscrepancyKind, name="discrepancy_kind_is_known"),
            is_one_of("weight", DiscrepancyWeight, name="discrepancy_weight_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.printed}"

    @property
    def weight_code(self) -> str:
        """How much it matters, as a word: wrong_conclusion, wrong_figure, rounding, wording."""
        return Discrepancy.Weight(self.weight).name.lower()


# The words for a discrepancy's weight, the most serious first.
WEIGHTS = tuple(
    discrepancy_weight.name.lower() for discrepancy_weight in Discrepancy.Weight
)
