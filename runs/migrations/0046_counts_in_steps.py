"""0019, which goes on where it was cut off."""

from importlib import import_module

from benchlab.gentle_migrations import InSteps, in_steps

landed = import_module("runs.migrations.0019_counts").Migration


class Migration(InSteps):
    replaces = [("runs", "0019_counts")]
    dependencies = landed.dependencies

    operations = in_steps(landed.operations)
