"""Indexes by which control finds what older rules judged, without reading all that is stored."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0028_traces")]

    operations = [
        migrations.AddIndex(
            "change", models.Index(fields=["rules", "id"], name="change_by_rules")
        ),
        migrations.AddIndex(
            "bisection",
            models.Index(
                fields=["rules", "id"],
                condition=models.Q(state="finished"),
                name="bisection_by_rules",
            ),
        ),
    ]
