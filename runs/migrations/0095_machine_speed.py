"""How fast the machines of a run were before and after it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0094_worker_hosts")]

    operations = in_steps(
        [
            migrations.AddField(
                model_name="run", name="speed", field=models.JSONField(null=True)
            ),
            AddIndexConcurrently(
                model_name="run",
                index=models.Index(
                    fields=["server", "-finished_at"],
                    condition=models.Q(speed__isnull=False),
                    name="run_with_speed",
                ),
            ),
        ]
    )
