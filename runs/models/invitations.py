"""Invitations: a link that makes somebody a member of a project, once."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.models.projects import Membership


class Invitation(models.Model):
    """Only a hash of the link is stored, so nobody who reads the database can use it."""

    project = models.ForeignKey("Project", models.CASCADE, related_name="invitations")
    role = models.CharField(_("role"), max_length=12, choices=Membership.Role)
    secret_hash = models.CharField(max_length=64, unique=True)
    note = models.CharField(_("for whom"), max_length=200, blank=True)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitations"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.project_id}: {self.role}"

    @property
    def is_open(self) -> bool:
        """Somebody can still use it."""
        return self.ended_at is None and self.expires_at > timezone.now()
