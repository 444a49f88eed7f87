"""0005, whose constraints are validated while artifacts are stored."""

from importlib import import_module

from benchlab.gentle_migrations import InSteps, in_steps

landed = import_module("runs.migrations.0005_access").Migration


class Migration(InSteps):
    replaces = [("runs", "0005_access")]
    dependencies = landed.dependencies

    operations = in_steps(landed.operations)
