"""Alarms are no longer of single runs; the column stays as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0065_public_rows")]

    operations = [
        migrations.AlterField(
            "change",
            "kind",
            models.CharField(max_length=10, choices=[("step", "step"), ("alarm", "alarm")]),
        )
    ]
