"""Uploads: answers stored under an idempotency key."""

from django.db import models


class Upload(models.Model):
    """A request with an `Idempotency-Key`: the same body gets the same answer again."""

    project = models.ForeignKey("Project", models.CASCADE, related_name="uploads")
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=201)
    answer = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="upload_once_a_key"),
        ]

    def __str__(self) -> str:
        return self.key
