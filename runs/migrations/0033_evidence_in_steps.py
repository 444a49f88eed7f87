"""0007: one lock at a time, and an index that is built while runs are stored."""

from importlib import import_module

from benchlab.gentle_migrations import InSteps, in_steps

landed = import_module("runs.migrations.0007_evidence").Migration


class Migration(InSteps):
    replaces = [("runs", "0007_evidence")]
    dependencies = landed.dependencies

    operations = in_steps(landed.operations)
