"""Metrics: the meaning of a measurement's number."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Metric(models.Model):
    """Name, unit and direction; the direction says which of two values is better."""

    class Direction(models.TextChoices):
        HIGHER = "higher", _("higher is better")
        LOWER = "lower", _("lower is better")
        NEUTRAL = "neutral", _("neither")

    name = models.SlugField(max_length=80, unique=True)
    unit = models.CharField(max_length=40, blank=True)
    direction = models.CharField(max_length=10, choices=Direction)
    title = models.CharField(max_length=200)
    # For metrics that come as data; the titles of metrics in code are in the message catalogue.
    title_ja = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_ratio(self) -> bool:
        """A ratio has no amount: nothing measures zero, so its axis need not begin there."""
        return self.unit == "ratio"
