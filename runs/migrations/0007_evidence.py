"""What an uploaded run's load was, as part of its cell."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_inference")]

    operations = [
        migrations.AddField(
            model_name="cell",
            name="workload",
            field=models.JSONField(
                default=dict, db_default=models.Value({}, models.JSONField())
            ),
        ),
    ]
