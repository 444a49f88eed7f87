"""Machines of a virtualisation in the order of their list, and how often a word names a processor.

Without both PostgreSQL expects few machines that match, and looks at the runs of each.
"""

from django.db import migrations, models
from django.db.models.functions import Upper

from benchlab.gentle_migrations import InSteps, in_steps

COUNTED = (
    "CREATE STATISTICS runs_hardware_by_cpu ON (upper(cpu_model::text)) FROM runs_hardwareprofile"
)


class Migration(InSteps):
    dependencies = [("runs", "0078_builds_alike")]

    operations = in_steps(
        [
            migrations.AddIndex(
                "hardwareprofile",
                models.Index(Upper("virtualization"), "id", name="hardware_by_virtualization"),
            ),
            migrations.RunSQL(COUNTED, "DROP STATISTICS runs_hardware_by_cpu"),
        ]
    )
