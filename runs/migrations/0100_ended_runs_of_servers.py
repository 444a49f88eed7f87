"""Indexes by which the last certificates of a server are found behind what waits for it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0099_waiting_and_hourly_loads")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                model_name="run",
                index=models.Index(
                    fields=["server", "-id"],
                    condition=models.Q(
                        origin="executed", state__in=["finished", "withdrawn"]
                    ),
                    name="run_by_ended_here",
                ),
            ),
            AddIndexConcurrently(
                model_name="run",
                index=models.Index(
                    fields=["server", "-id"],
                    condition=models.Q(
                        ("origin", "executed"),
                        ("state__in", ["finished", "withdrawn"]),
                        ("is_public", True),
                    ),
                    name="run_public_by_ended_here",
                ),
            ),
        ]
    )
