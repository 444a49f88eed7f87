"""Indexes of commits by their dates: the newest of a history is found without reading all."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0053_newest_of_each")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                "revision",
                models.Index(
                    fields=["project", "-committed_at", "-id"],
                    condition=models.Q(committed_at__isnull=False),
                    name="revision_by_date",
                ),
            ),
            AddIndexConcurrently(
                "revision",
                models.Index(
                    fields=["project"],
                    condition=models.Q(committed_at=None),
                    name="revision_without_date",
                ),
            ),
        ]
    )
