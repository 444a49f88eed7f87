"""0008: a release that does not know what a campaign reproduces leaves it out."""

from importlib import import_module

from django.db import migrations

from benchlab.gentle_migrations import InSteps, with_default

landed = import_module("runs.migrations.0008_factors").Migration
role, reproduces, key, *others = landed.operations


class Migration(InSteps):
    replaces = [("runs", "0008_factors")]
    dependencies = landed.dependencies

    operations = [
        role,
        with_default(reproduces, "''"),
        # Longer than before: nothing is read or written.
        migrations.RunSQL(
            "ALTER TABLE runs_cell ALTER COLUMN key TYPE varchar(1000)",
            migrations.RunSQL.noop,
            state_operations=[key],
        ),
        *others,
    ]
