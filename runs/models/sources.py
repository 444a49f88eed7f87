"""Sources: publications, their tables, and every figure that they print."""

from django.db import models
from django.utils.translation import gettext_lazy as _


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
    licence = models.CharField(_("licence"), max_length=200, blank=True)
    licence_url = models.URLField(blank=True)
    summary = models.TextField(blank=True)
    summary_ja = models.TextField(blank=True)
    # Of the data file: a file that has not changed is not loaded again.
    content_hash = models.CharField(max_length=64, blank=True)
    loaded_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["year", "slug"]

    def __str__(self) -> str:
        return self.title


class PublishedTable(models.Model):
    """What a published campaign says of itself beyond its numbers, in both languages.

    `number` is the table's number as printed, or a short name where it has none. `columns`
    describes each column ({"label": {"en", "ja"}, "group", "metric", "levels", ...}) and `grid`
    holds the texts of all rows as printed. `findings` and `notes` are lists of {"en", "ja"}.
    """

    campaign = models.OneToOneField("Campaign", models.CASCADE, related_name="published")
    source = models.ForeignKey("Source", models.CASCADE, related_name="tables")
    ordinal = models.PositiveSmallIntegerField()
    number = models.CharField(_("table"), max_length=40)
    section = models.CharField(_("section"), max_length=40, blank=True)
    page = models.CharField(_("page"), max_length=40, blank=True)
    figure = models.CharField(_("figure"), max_length=40, blank=True)
    # False where the publication shows the figures in a picture only.
    has_figures = models.BooleanField(default=True)
    method = models.JSONField(default=dict)
    findings = models.JSONField(default=list)
    notes = models.JSONField(default=list)
    columns = models.JSONField(default=list)
    grid = models.JSONField(default=list)
    chart = models.JSONField(default=dict)
    reproduce = models.JSONField(default=dict)
    # All words of both languages and the factors' levels, for the search.
    search_text = models.TextField(blank=True)

    class Meta:
        ordering = ["source", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["source", "number"], name="published_table_once"),
        ]

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
            models.UniqueConstraint(fields=["table", "ordinal"], name="published_node_once"),
        ]

    def __str__(self) -> str:
        return self.role


class PrintedFigure(models.Model):
    """A number in a table, as printed, and what BenchLab computes in its place.

    `row` and `column` count from 0 in the table's grid. `recomputed` is null where the figure
    is not derived from others of the publication.
    """

    class Kind(models.TextChoices):
        MEASURED = "measured", _("measured")
        DERIVED = "derived", _("derived from other figures")
        NOT_MEASURED = "not_measured", _("printed, but not measured")

    table = models.ForeignKey("PublishedTable", models.CASCADE, related_name="printed")
    row = models.PositiveSmallIntegerField()
    column = models.PositiveSmallIntegerField()
    text = models.CharField(max_length=60)
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.MEASURED)
    measurement = models.OneToOneField(
        "Measurement", models.CASCADE, null=True, related_name="printed"
    )
    recomputed = models.FloatField(null=True)
    differs = models.BooleanField(default=False)

    class Meta:
        ordering = ["table", "row", "column"]
        constraints = [
            models.UniqueConstraint(fields=["table", "row", "column"], name="figure_once"),
        ]

    def __str__(self) -> str:
        return self.text


class Discrepancy(models.Model):
    """Where a publication contradicts itself: found by recomputation, or told by a reader."""

    class Kind(models.TextChoices):
        RATIO = "ratio", _("ratio")
        MEDIAN = "median", _("median")
        SUM = "sum", _("sum")
        OTHER_TABLE = "other_table", _("another table says otherwise")
        REPEATED_ROW = "repeated_row", _("repeated row")
        NOT_MEASURED = "not_measured", _("printed, but not measured")
        TEXT = "text", _("the text says otherwise")

    table = models.ForeignKey("PublishedTable", models.CASCADE, related_name="discrepancies")
    figure = models.ForeignKey("PrintedFigure", models.CASCADE, null=True)
    ordinal = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=20, choices=Kind)
    printed = models.CharField(max_length=100)
    recomputed = models.CharField(max_length=100, blank=True)
    explanation = models.JSONField(default=dict)

    class Meta:
        ordering = ["table", "ordinal"]
        verbose_name_plural = "discrepancies"

    def __str__(self) -> str:
        return f"{self.kind}: {self.printed}"
