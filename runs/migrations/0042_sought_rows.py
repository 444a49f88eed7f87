"""Indexes for lists of campaigns, and for what each claim looks for, that must not read all rows."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0041_mailing")]

    operations = [
        AddIndexConcurrently(
            "campaign",
            models.Index(fields=["scenario", "project"], name="campaign_by_scenario"),
        ),
        AddIndexConcurrently(
            "campaign",
            models.Index(
                fields=["state", "-id"],
                condition=~models.Q(state="finished"),
                name="campaign_by_state",
            ),
        ),
        AddIndexConcurrently(
            "runevent",
            models.Index(
                fields=["run"],
                condition=models.Q(code="passed_over"),
                name="run_event_passed_over",
            ),
        ),
    ]
