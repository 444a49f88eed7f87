"""Campaigns whose slug is not what uploads call them, since others hide theirs."""

from django.db import migrations, models
from django.db.models import Q

from benchlab.gentle_migrations import InSteps


class Migration(InSteps):
    dependencies = [("runs", "0061_metrics_of_projects")]

    operations = [
        migrations.AddField(
            "campaign",
            "uploaded_as",
            models.SlugField(
                blank=True, db_default="", db_index=False, default="", max_length=120
            ),
        ),
        migrations.AddConstraint(
            "campaign",
            models.UniqueConstraint(
                condition=~Q(uploaded_as=""),
                fields=["project", "uploaded_as"],
                name="campaign_once_as_uploaded",
            ),
        ),
    ]
