"""Rounds of runs, and the looks at a campaign that decided on more of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_access")]

    operations = [
        migrations.AddField("campaign", "looks", models.JSONField(default=list)),
        migrations.AddField("run", "round", models.PositiveIntegerField(null=True)),
    ]
