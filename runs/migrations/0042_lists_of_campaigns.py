"""Campaigns by scenario and by state, for lists that must not read all of them."""

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
    ]
