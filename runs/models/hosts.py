"""Hosts whose workers joined this BenchLab, and the secrets that each of them may read."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class WorkerHost(models.Model):
    """A host beside the first one: invited by a token, joined once, and gone when it has left.

    The token is `benchlab-join_<prefix>_<secret>`, of which only a hash is stored. `key_encrypted`
    is the host's own Fernet key under that of this BenchLab: it opens the host's copies of secrets
    (`HostSecret`) and nothing else. `database` and `redis` are the addresses (`host:port`) by which
    it reaches these; empty: that of the settings. `is_trusted_network`: neither has to use TLS.
    `role` is its own role in PostgreSQL; empty where an administrator gave an address with one.
    """

    name = models.CharField(_("name"), max_length=100, blank=True)
    prefix = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    invited_at = models.DateTimeField(auto_now_add=True)
    invited_by = models.CharField(max_length=150, blank=True)
    expires_at = models.DateTimeField(_("expires"))
    may_log_in = models.BooleanField(default=False)
    is_trusted_network = models.BooleanField(default=False)
    sites = models.CharField(max_length=500, blank=True)
    database = models.CharField(max_length=300, blank=True)
    redis = models.CharField(max_length=300, blank=True)
    key_encrypted = models.BinaryField(null=True)
    role = models.CharField(max_length=63, blank=True)
    release = models.CharField(max_length=40, blank=True)
    joined_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(joined_at__isnull=False, left_at=None),
                name="one_host_of_a_name",
            ),
            models.CheckConstraint(
                condition=Q(joined_at=None) | Q(key_encrypted__isnull=False),
                name="joined_host_has_a_key",
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.prefix

    @property
    def state(self) -> str:
        """`invited`, `expired`, `joined` or `left`, which is also a token that was revoked."""
        if self.left_at is not None:
            return "left"
        if self.joined_at is not None:
            return "joined"
        return "expired" if self.expires_at <= timezone.now() else "invited"


class HostSecret(models.Model):
    """A copy of a secret for one host, under that host's own key: of an SSH key or of a load."""

    host = models.ForeignKey("WorkerHost", models.CASCADE, related_name="secrets")
    ssh_key = models.ForeignKey("SSHKey", models.CASCADE, null=True)
    load = models.ForeignKey("Load", models.CASCADE, null=True)
    secret_encrypted = models.BinaryField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ssh_key=None, load__isnull=False)
                | Q(ssh_key__isnull=False, load=None),
                name="host_secret_of_one",
            ),
            models.UniqueConstraint(
                fields=["host", "ssh_key"], name="host_secret_of_key_once"
            ),
            models.UniqueConstraint(
                fields=["host", "load"], name="host_secret_of_load_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host}: {self.ssh_key_id or self.load_id}"
