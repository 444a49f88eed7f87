"""Lists of a state or a validity begin with what everybody may see, as those of other filters do."""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps

PUBLIC = models.Q(is_public=True)


class Migration(InSteps):
    dependencies = [("runs", "0076_newest_commits")]

    operations = in_steps(
        [
            migrations.AddIndex(
                "run",
                models.Index(
                    fields=[name, "-id"], condition=condition & PUBLIC, name=f"run_public_by_{name}"
                ),
            )
            for name, condition in (
                ("state", ~models.Q(state="finished")),
                ("validity", ~models.Q(validity="")),
            )
        ]
    )
