"""0006: a release that does not know the looks of a campaign leaves them out, and a check that is
validated while runs are stored."""

from importlib import import_module

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations

from benchlab.gentle_migrations import InSteps, with_default

landed = import_module("runs.migrations.0006_inference").Migration
looks, round_of_run = landed.operations


class Migration(InSteps):
    replaces = [("runs", "0006_inference")]
    dependencies = landed.dependencies

    operations = [
        with_default(looks, "'[]'"),
        migrations.RunSQL(
            "ALTER TABLE runs_run ADD COLUMN round integer,"
            " ADD CONSTRAINT runs_run_round_check CHECK (round >= 0) NOT VALID",
            "ALTER TABLE runs_run DROP COLUMN round",
            state_operations=[round_of_run],
        ),
        ValidateConstraint("run", "runs_run_round_check"),
    ]
