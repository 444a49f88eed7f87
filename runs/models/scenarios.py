"""Scenarios as the archive knows them; those that can run have a module in `runs.scenarios`."""

from django.db import models


class Scenario(models.Model):
    """A procedure with factors and metrics. `runnable` ones have code, the others only data."""

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    runnable = models.BooleanField(default=False)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.title
