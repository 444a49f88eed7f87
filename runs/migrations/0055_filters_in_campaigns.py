"""Indexes for what few of a campaign's runs have: a version, a validity or a server."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models
from django.db.models import Q

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0054_changes_by_campaign")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["campaign", "cell_major", "-id"],
                    condition=~Q(cell_major=""),
                    name="run_by_campaign_major",
                ),
            ),
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["campaign", "validity", "-id"],
                    condition=~Q(validity=""),
                    name="run_by_campaign_validity",
                ),
            ),
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["campaign", "server", "-id"],
                    condition=Q(server__isnull=False),
                    name="run_by_campaign_server",
                ),
            ),
        ]
    )
