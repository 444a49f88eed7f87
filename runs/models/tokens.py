"""Tokens with which programs use the API."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Token(models.Model):
    """`blab_<prefix>_<secret>`: only a hash of the secret is stored.

    `scopes` is a list of `read`, `upload`, `queue`, `server`, `monitor`, `admin`.
    """

    class Scope(models.TextChoices):
        READ = "read", _("read")
        UPLOAD = "upload", _("upload results")
        QUEUE = "queue", _("queue runs")
        SERVER = "server", _("upload for registered servers")
        MONITOR = "monitor", _("monitor BenchLab itself")
        ADMIN = "admin", _("administer")

    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    scopes = models.JSONField(_("scopes"), default=list)
    project = models.ForeignKey("Project", models.CASCADE, related_name="tokens")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(_("last used"), null=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    @property
    def state(self) -> str:
        """`good`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= timezone.now():
            return "expired"
        return "good"
