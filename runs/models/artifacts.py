"""Artifacts: files of runs, kept content-addressed and compressed outside the database."""

from django.db import models


class Artifact(models.Model):
    """A file of a run. `size` is in bytes, uncompressed; `sha256` names the stored content."""

    run = models.ForeignKey("Run", models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=200)
    media_type = models.CharField(max_length=100, default="text/plain")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run", "name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="artifact_once")]

    def __str__(self) -> str:
        return self.name
