"""Hardware profiles, and the environments (OS, kernel, tools) that can change on them."""

from django.db import models
from django.db.models.functions import Upper
from django.utils.translation import gettext_lazy as _


class HardwareProfile(models.Model):
    """A machine's hardware, stored once per content. Sizes in bytes; unknown is null."""

    fingerprint = models.CharField(max_length=64, unique=True)
    slug = models.SlugField(max_length=120, blank=True)
    name = models.CharField(_("name"), max_length=200)
    name_ja = models.CharField(max_length=200, blank=True, db_default="", default="")
    cpu_model = models.CharField(_("CPU model"), max_length=200, blank=True)
    sockets = models.PositiveIntegerField(_("sockets"), null=True)
    cores = models.PositiveIntegerField(_("cores"), null=True)
    threads = models.PositiveIntegerField(_("hardware threads"), null=True)
    memory_bytes = models.BigIntegerField(_("memory"), null=True)
    # "2 TB" as a publication prints it, whether it means 10^12 or 2^40.
    memory_printed = models.CharField(max_length=20, blank=True, db_default="", default="")
    virtualization = models.CharField(_("virtualisation"), max_length=60, blank=True)
    # As runs/execution/machine/machine_facts.py reads them of a target, or as an upload gives them.
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug"], condition=~models.Q(slug=""), name="hardware_slug_once"
            ),
        ]
        indexes = [
            # The order of lists.
            models.Index(fields=["name", "id"], name="hardware_by_name"),
            # A filter, whose newest are few or most of all: in their order either way.
            models.Index(Upper("virtualization"), "id", name="hardware_by_virtualization"),
        ]

    def __str__(self) -> str:
        return self.name


class Environment(models.Model):
    """OS, kernel and tool versions of a machine, stored once per content."""

    fingerprint = models.CharField(max_length=64, unique=True)
    slug = models.SlugField(max_length=120, blank=True)
    os_name = models.CharField(_("operating system"), max_length=200, blank=True)
    kernel = models.CharField(_("kernel"), max_length=200, blank=True)
    architecture = models.CharField(_("architecture"), max_length=40, blank=True)
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["os_name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug"], condition=~models.Q(slug=""), name="environment_slug_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.os_name} ({self.kernel})"
