"""Prepared clusters: loaded databases on a target that the reading runs of a campaign share."""

from django.db import models


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
