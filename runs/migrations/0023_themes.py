"""The newest campaigns of a theme, which the line through versions is made of."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0022_workload_trials")]

    operations = [
        AddIndexConcurrently(
            "campaign",
            models.Index(fields=["scenario", "origin", "-id"], name="campaign_by_theme"),
        ),
    ]
