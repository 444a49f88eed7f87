"""Leases: a server runs one run at a time."""

from django.db import models


class Lease(models.Model):
    """Who holds a server. One row per server; `token` grows with each claim (fencing).

    A run whose load comes from other machines holds the leases of all of them, with one token.
    """

    server = models.OneToOneField("Server", models.CASCADE, primary_key=True)
    run = models.ForeignKey("Run", models.SET_NULL, null=True, related_name="leases")
    token = models.BigIntegerField(default=0)
    holder = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.server_id}: {self.run_id} ({self.token})"


class PreparedCluster(models.Model):
    """A loaded cluster in `directory` on a server, made by `prepared_by`, until removed."""

    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="clusters")
    server = models.ForeignKey("Server", models.CASCADE, related_name="clusters")
    key = models.CharField(max_length=64)
    directory = models.CharField(max_length=500)
    prepared_by = models.ForeignKey("Run", models.SET_NULL, null=True, related_name="+")
    prepared_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["campaign", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["server", "directory"],
                condition=models.Q(removed_at=None),
                name="prepared_cluster_once",
            ),
        ]

    def __str__(self) -> str:
        return self.directory
