"""An index by which members find the machines of their private projects."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0095_machine_speed")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                fields=["private_project", "hardware", "-id"],
                condition=models.Q(
                    private_project__isnull=False, hardware__isnull=False
                ),
                name="run_private_by_hardware",
            ),
        ),
    ]
