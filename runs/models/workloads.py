"""Workloads: users' own pgbench scripts, in versions that never change."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


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


class Workload(models.Model):
    """A name for versions of scripts of a project. A level `slug@3` is its third version."""

    slug = models.SlugField(max_length=80, unique=True)
    project = models.ForeignKey("Project", models.CASCADE, null=True, related_name="workloads")
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class WorkloadVersion(models.Model):
    """A version of a workload since `created_at`; runs refer to it, so it never changes.

    `scripts` are objects of `name`, `text` and `weight`, in order; `variables` maps names to
    values. The tables are those of `pgbench -i` with `init_options`, unless `has_own_tables`;
    `init_sql` is run after that.
    """

    workload = models.ForeignKey(
        "Workload", models.PROTECT, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField()
    scripts = models.JSONField()
    variables = models.JSONField(default=dict)
    init_options = models.CharField(_("options of pgbench -i"), max_length=200, blank=True)
    init_sql = models.TextField(_("SQL before the load"), blank=True)
    has_own_tables = models.BooleanField(_("own tables"), default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["workload", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["workload", "number"], name="workload_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.workload.slug}@{self.number}"
