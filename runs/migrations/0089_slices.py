"""Runs of a round may be measured in turn, in slices: one leads, and the others share its lease."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

from benchlab.gentle_migrations import InSteps

ACTIVE = ["claimed", "preparing", "measuring", "collecting"]
ONE_LEADING = """
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS one_leading_run_a_server ON runs_run (server_id)
    WHERE led_by_id IS NULL AND state IN ('claimed', 'preparing', 'measuring', 'collecting')
"""
ONE_ACTIVE = """
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS one_active_run_a_server ON runs_run (server_id)
    WHERE state IN ('claimed', 'preparing', 'measuring', 'collecting')
"""


class Migration(InSteps):
    dependencies = [("runs", "0088_quiet")]

    operations = [
        migrations.AddField(
            "campaign",
            "slice_seconds",
            models.PositiveSmallIntegerField(null=True, verbose_name="seconds of a slice"),
        ),
        migrations.AddField(
            "run",
            "led_by",
            models.ForeignKey(
                "runs.Run",
                models.SET_NULL,
                null=True,
                related_name="led",
                db_index=False,
                db_constraint=False,
            ),
        ),
        AddIndexConcurrently(
            "run",
            models.Index(fields=["led_by"], condition=Q(led_by__isnull=False), name="run_led"),
        ),
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    ONE_LEADING, "DROP INDEX CONCURRENTLY IF EXISTS one_leading_run_a_server"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS one_active_run_a_server", ONE_ACTIVE
                ),
            ],
            [
                migrations.RemoveConstraint("run", "one_active_run_a_server"),
                migrations.AddConstraint(
                    "run",
                    models.UniqueConstraint(
                        fields=["server"],
                        condition=Q(led_by__isnull=True, state__in=ACTIVE),
                        name="one_leading_run_a_server",
                    ),
                ),
            ],
        ),
    ]
