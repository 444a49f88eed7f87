"""Addresses that lead towards the original of a publication."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0023_themes")]

    operations = [
        migrations.AddField(
            "source",
            "traces",
            models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
    ]
