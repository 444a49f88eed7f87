"""Observations: a design that comes back, such as each autumn, and its editions."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Releases(models.TextChoices):
    """Which of several installed releases of a major version an edition measures."""

    ALIKE = "alike", _("one of each version, built alike where there is a choice")
    NEWEST = "newest", _("the newest release of each version")
    ALL = "all", _("every release, minor ones too")


class Observation(models.Model):
    """What is measured again and again on one server, so that its editions can be compared.

    Each of `designs` becomes a campaign of each edition: its scenario, levels, parameters and
    repeats, as a Draft has them. `versions` are major versions; empty for all that are installed.
    `releases` says which of several releases of a version.
    `anchor` is the major version that every edition measures: its own change from one edition to
    the next is that of the machine. From `night_from` to `night_until` in `time_zone` it is
    measured; both are null for day and night.
    """

    slug = models.SlugField(max_length=120, unique=True)
    title = models.CharField(_("title"), max_length=150)
    project = models.ForeignKey(
        "Project", models.CASCADE, null=True, related_name="observations"
    )
    server = models.ForeignKey("Server", models.CASCADE, related_name="observations")
    designs = models.JSONField()
    versions = models.JSONField(default=list)
    # Those of a release of BenchLab without this choice measure what they did.
    releases = models.CharField(
        _("releases"), max_length=10, default=Releases.ALIKE, db_default=Releases.NEWEST
    )
    anchor = models.CharField(_("anchor"), max_length=10)
    configuration = models.ForeignKey("Configuration", models.SET_NULL, null=True)
    night_from = models.TimeField(null=True)
    night_until = models.TimeField(null=True)
    time_zone = models.CharField(_("time zone"), max_length=60, default="UTC")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.title


class Edition(models.Model):
    """One time that an observation is measured: a campaign of each design, and people's words.

    `purpose`, `discussion`, `conclusion`, the report's revision `history` and its `licence` are
    what people write; they stay when figures change.
    """

    observation = models.ForeignKey(
        "Observation", models.CASCADE, related_name="editions"
    )
    # Such as 2026.
    label = models.CharField(_("edition"), max_length=40)
    campaigns = models.ManyToManyField("Campaign", related_name="editions")  # type: ignore[var-annotated]
    purpose = models.TextField(_("purpose"), blank=True)
    discussion = models.TextField(_("discussion"), blank=True)
    conclusion = models.TextField(_("conclusion"), blank=True)
    history = models.TextField(_("revision history"), blank=True, db_default="")
    licence = models.TextField(_("licence"), blank=True, db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["observation", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["observation", "label"], name="edition_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.observation_id}: {self.label}"

    @property
    def published_as(self) -> str:
        """The slug of its publication, and the name of the publication's file."""
        return published_as(self.observation.slug, self.label)


def published_as(observation: str, label: str) -> str:
    """The slug of the publication of an edition, by the observation's slug and its label."""
    slug = "".join(
        character if character.isalnum() else "-" for character in label.lower()
    )
    return f"{observation}-{slug}"


def published_campaign(observation: str, label: str, scenario: str) -> str:
    """The slug of a campaign of an edition's publication; that of its own stays beside it."""
    return f"{published_as(observation, label)}-{scenario}-published"
