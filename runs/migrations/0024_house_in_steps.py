"""0004, whose constraints are validated while runs are stored."""

from importlib import import_module

from benchlab.gentle_migrations import InSteps, in_steps

landed = import_module("runs.migrations.0004_house").Migration


class Migration(InSteps):
    replaces = [("runs", "0004_house")]
    dependencies = landed.dependencies

    operations = in_steps(landed.operations)
