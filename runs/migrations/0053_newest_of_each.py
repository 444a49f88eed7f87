"""Indexes for lists that must not read all changes, deliveries, events, cells, builds, machines, files or commits."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0052_known_choices")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                "change",
                models.Index(
                    fields=["decision", "-id"],
                    condition=~models.Q(decision="open"),
                    name="change_by_decision",
                ),
            ),
            AddIndexConcurrently(
                "change",
                models.Index(
                    fields=["-id"], condition=models.Q(kind="alarm"), name="change_of_single_run"
                ),
            ),
            AddIndexConcurrently(
                "webhookdelivery",
                models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
            ),
            AddIndexConcurrently(
                "scheduleevent",
                models.Index(fields=["schedule", "-id"], name="schedule_event_by_schedule"),
            ),
            AddIndexConcurrently(
                "cell",
                models.Index(
                    fields=["workload_version", "campaign"],
                    condition=models.Q(workload_version__isnull=False),
                    name="cell_by_workload",
                ),
            ),
            AddIndexConcurrently(
                "hardwareprofile", models.Index(fields=["name", "id"], name="hardware_by_name")
            ),
            AddIndexConcurrently(
                "build", models.Index(fields=["server", "commit"], name="build_by_commit")
            ),
            AddIndexConcurrently(
                "artifact",
                models.Index(
                    fields=["run"],
                    condition=models.Q(name="perf-folded.txt"),
                    name="artifact_profile",
                ),
            ),
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
