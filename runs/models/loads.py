"""Loads that people bring: statements and data of their own, encrypted."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class LoadQuerySet(models.QuerySet["Load"]):
    """Loads."""

    def kept(self) -> "LoadQuerySet":
        """Those whose time is not over."""
        return self.filter(expires_at__gt=timezone.now())

    def expired(self) -> "LoadQuerySet":
        """Those that are to be removed."""
        return self.filter(expires_at__lte=timezone.now())


class Load(models.Model):
    """A load of a project: what its members alone see, whether the project is public or not.

    `content` has its statements with their values and its data, encrypted with a key of its own
    (`runs.statements.content`); so are the files in which runs keep what they found. Who removes
    the row, and its key with it, makes all of these unreadable. The counts are what the list shows.
    """

    slug = models.SlugField(max_length=80, unique=True)
    project = models.ForeignKey("Project", models.CASCADE, related_name="loads")
    name = models.CharField(_("name"), max_length=200)
    key_encrypted = models.BinaryField()
    content = models.BinaryField()
    format = models.CharField(max_length=20)
    data_kind = models.CharField(max_length=10)
    units = models.PositiveIntegerField()
    left_out = models.PositiveIntegerField()
    calls = models.BigIntegerField()
    masked = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("kept until"))
    # Of a dump that is uploaded, 0 without one.
    dump_bytes = models.BigIntegerField(default=0, db_default=0)

    objects = LoadQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["expires_at"], name="load_expiry")]

    def __str__(self) -> str:
        return self.name


class LoadPart(models.Model):
    """A part of a load's dump, encrypted with the load's own key."""

    load = models.ForeignKey(Load, models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["load", "number"], name="load_part_once")
        ]

    def __str__(self) -> str:
        return f"{self.load_id}/{self.number}"
