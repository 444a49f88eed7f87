"""0018, which goes on where it was cut off, and drops indexes while rows are stored."""

from importlib import import_module

from django.db import migrations

from benchlab.gentle_migrations import InSteps

reads = import_module("runs.migrations.0018_reads")
landed = reads.Migration
*others, server, hardware, metric = landed.operations


def drop(index, on, altered):
    return migrations.SeparateDatabaseAndState(
        [
            migrations.RunSQL(
                f"DROP INDEX CONCURRENTLY IF EXISTS {index}",
                f"CREATE INDEX CONCURRENTLY {index} ON {on}",
            )
        ],
        [altered],
    )


class Migration(InSteps):
    replaces = [("runs", "0018_reads")]
    dependencies = landed.dependencies

    operations = [
        *(
            # It commits each of its batches, and passes over what is filled.
            migrations.RunPython(reads.fill, migrations.RunPython.noop, atomic=False)
            if isinstance(each, migrations.RunPython)
            else each
            for each in others
        ),
        server,
        drop("runs_run_hardware_id_83324c7e", "runs_run (hardware_id)", hardware),
        drop("runs_measurement_metric_id_516b9f40", "runs_measurement (metric_id)", metric),
    ]
