"""Topologies: nodes and their roles."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Topology(models.Model):
    """A named arrangement of servers. Its kind says which roles it needs."""

    class Kind(models.TextChoices):
        SINGLE = "single", _("single server")
        CLIENT = "client", _("database and load generator apart")
        STREAMING = "streaming", _("streaming replication")
        LOGICAL = "logical", _("logical replication")
        FDW = "fdw", _("foreign tables")
        SHARDED = "sharded", _("sharded")
        POOLED = "pooled", _("connection pool")
        VARIED = "varied", _("several arrangements")

    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=200)
    name_ja = models.CharField(max_length=200, blank=True, db_default="", default="")
    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        verbose_name_plural = "topologies"

    def __str__(self) -> str:
        return self.name


class TopologyNode(models.Model):
    """One role in a topology, played by one server."""

    class Role(models.TextChoices):
        DATABASE = "database", _("database")
        LOAD_GENERATOR = "load_generator", _("load generator")
        CLUSTERS = "clusters", _("further clusters")

    topology = models.ForeignKey("Topology", models.CASCADE, related_name="nodes")
    server = models.ForeignKey("Server", models.PROTECT, related_name="nodes")
    role = models.CharField(max_length=20, choices=Role)
    ordinal = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ["topology", "role", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["topology", "role", "ordinal"], name="node_once"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.ordinal}"
