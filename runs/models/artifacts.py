"""Artifacts: files of runs, stored by content and compressed outside the database."""

import re

from django.db import models

# The name of a stored content: SHA-256, in lower case.
DIGEST = re.compile(r"[0-9a-f]{64}")
MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*(; ?[a-z-]+=[a-zA-Z0-9._-]+)*")
# Not allowed in a name, which becomes the end of an address and part of a header.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


PLAN_PREFIX = "plan-"


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
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="artifact_once"),
            models.CheckConstraint(
                name="artifact_named_by_digest",
                condition=models.Q(sha256__regex=r"^[0-9a-f]{64}$"),
            ),
            models.CheckConstraint(name="artifact_has_size", condition=models.Q(size__gte=0)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_plan(self) -> bool:
        """Whether it is the output of EXPLAIN, judged by its name."""
        return self.name.startswith(PLAN_PREFIX)
