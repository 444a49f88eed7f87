"""An index by which a claim steps over the campaigns of a server; its load by hours."""

from django.contrib.postgres.operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0098_noise_of_campaigns_that_go_on")]

    operations = in_steps(
        [
            AddIndexConcurrently(
                model_name="run",
                index=models.Index(
                    fields=["server", "campaign", "state", "id"],
                    condition=models.Q(state__in=["queued", "lost"]),
                    name="run_waiting_by_campaign",
                ),
            ),
            RemoveIndexConcurrently(model_name="run", name="run_waiting"),
            migrations.CreateModel(
                name="HourlyLoad",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True,
                            primary_key=True,
                            serialize=False,
                            verbose_name="ID",
                        ),
                    ),
                    ("hour", models.DateTimeField()),
                    ("looks", models.PositiveSmallIntegerField()),
                    ("share", models.FloatField()),
                    ("highest", models.FloatField()),
                    (
                        "server",
                        models.ForeignKey(
                            db_index=False,
                            on_delete=models.deletion.CASCADE,
                            related_name="hourly_loads",
                            to="runs.server",
                        ),
                    ),
                ],
                options={
                    "ordering": ["hour"],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("server", "hour"), name="load_once_an_hour"
                        )
                    ],
                },
            ),
        ]
    )
