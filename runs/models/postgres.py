"""PostgreSQL on servers: installations, configurations, and settings as they were in a run."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of

# Imported under another name, since the models have fields called settings.
USER = settings.AUTH_USER_MODEL


class Installation(models.Model):
    """One set of PostgreSQL binaries on a server, as `pg_config` and `postgres` describe it.

    `version_num` is in the form of `server_version_num` (90224, 160014). Block size and WAL
    segment size are those of the build, in bytes; from PostgreSQL 15 on only initdb knows the
    latter. `extensions` are the names that CREATE EXTENSION would find.
    """

    server = models.ForeignKey("Server", models.CASCADE, related_name="installations")
    bindir = models.CharField(max_length=500)
    version = models.CharField(_("version"), max_length=40)
    version_num = models.PositiveIntegerField()
    vendor = models.CharField(max_length=200, blank=True)
    configure_options = models.TextField(blank=True)
    cflags = models.TextField(blank=True)
    compiler = models.CharField(max_length=200, blank=True, db_default="")
    block_size = models.PositiveIntegerField(_("block size"), null=True)
    wal_segment_size = models.PositiveIntegerField(_("WAL segment size"), null=True)
    extensions = models.JSONField(default=list)
    pgbench_version_num = models.PositiveIntegerField(null=True)
    has_psql = models.BooleanField(default=False)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["server", "version_num", "bindir"]
        constraints = [
            models.UniqueConstraint(
                fields=["server", "bindir"], name="installation_once"
            ),
        ]

    def __str__(self) -> str:
        return f"PostgreSQL {self.version}"

    @property
    def major(self) -> str:
        """The major version: 9.6, 16."""
        return major_version(self.version_num)


def major_version(version_num: int) -> str:
    """`90624` is 9.6; `160014` is 16."""
    if version_num < 100000:
        return f"{version_num // 10000}.{version_num // 100 % 100}"
    return str(version_num // 10000)


class ConfigurationOrigin(models.TextChoices):
    """Where a configuration comes from; see `Configuration.Origin`."""

    BUILT_IN = "built_in", _("built in")
    PUBLISHED = "published", _("published")
    OWN = "own", _("own")


class Configuration(models.Model):
    """Named settings (postgresql.conf) and initdb options; identical content has one hash.

    It is of a project, and as private as that; built-in and published ones have no project.
    `written_for` is the major version for which the settings are written (9.3, 18); empty if they
    belong to no version. Runs keep the content that they were queued with, so it may change; the
    earlier contents are in `revisions`, the latest of which is the present one.
    """

    Origin = ConfigurationOrigin

    slug = models.SlugField(max_length=100, unique=True)
    project = models.ForeignKey(
        "Project", models.CASCADE, null=True, related_name="configurations"
    )
    name = models.CharField(_("name"), max_length=200)
    name_ja = models.CharField(max_length=200, blank=True, db_default="", default="")
    description = models.TextField(_("description"), blank=True)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.OWN)
    written_for = models.CharField(_("written for"), max_length=8, blank=True)
    settings = models.JSONField(default=dict)
    initdb_options = models.JSONField(default=list)
    content_hash = models.CharField(max_length=64, db_index=True)
    created_by = models.ForeignKey(USER, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            is_one_of(
                "origin", ConfigurationOrigin, name="configuration_origin_is_known"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ConfigurationRevision(models.Model):
    """The content of a configuration from `created_at` until the next revision."""

    configuration = models.ForeignKey(
        "Configuration", models.CASCADE, related_name="revisions"
    )
    number = models.PositiveIntegerField()
    written_for = models.CharField(max_length=8, blank=True)
    settings = models.JSONField(default=dict)
    initdb_options = models.JSONField(default=list)
    content_hash = models.CharField(max_length=64)
    created_by = models.ForeignKey(USER, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["configuration", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["configuration", "number"], name="configuration_revision_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.configuration_id}: {self.number}"


class SettingsSnapshot(models.Model):
    """`pg_settings` of a running server, stored once per content.

    `settings` maps name to `{"setting", "unit", "source"}` as the server prints them.
    """

    content_hash = models.CharField(max_length=64, unique=True)
    settings = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.content_hash[:12]
