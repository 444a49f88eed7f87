"""Annotations: what people write about campaigns and points."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Annotation(models.Model):
    """A note on a campaign or one of its cells, a conclusion, or a report's discussion."""

    class Kind(models.TextChoices):
        NOTE = "note", _("note")
        CONCLUSION = "conclusion", _("conclusion")
        DISCUSSION = "discussion", _("discussion")

    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="annotations")
    cell = models.ForeignKey("Cell", models.CASCADE, null=True, related_name="annotations")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.NOTE)
    text = models.TextField(_("text"))
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["campaign", "created_at", "pk"]

    def __str__(self) -> str:
        return self.text[:60]
