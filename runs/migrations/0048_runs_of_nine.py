"""An index for the newest runs of 9, which stands for seven major versions."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0042_sought_rows")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["-id"],
                    condition=models.Q(cell_major__in=[f"9.{minor}" for minor in range(7)]),
                    name="run_of_nine",
                ),
            ),
        ]
    )
