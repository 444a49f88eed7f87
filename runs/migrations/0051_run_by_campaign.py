"""An index for the newest runs of a campaign."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0050_packs")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                "run", models.Index(fields=["campaign", "-id"], name="run_by_campaign")
            ),
        ]
    )
