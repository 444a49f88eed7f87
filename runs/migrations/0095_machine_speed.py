"""How fast the machines of a run were before and after it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0094_worker_hosts")]

    operations = [
        migrations.AddField(
            model_name="run", name="speed", field=models.JSONField(null=True)
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["server", "-finished_at"],
                condition=models.Q(speed__isnull=False),
                name="run_with_speed",
            ),
        ),
    ]
