"""Saved comparisons: an address of the compare page with a title and a note."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


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
