"""0014: runs are queued for their seals in batches, and states checked while runs are stored."""

from importlib import import_module

from django.db import migrations

from benchlab.gentle_migrations import InSteps, in_steps

BATCH = 20_000
landed = import_module("runs.migrations.0014_seals").Migration
*others, _at_once = landed.operations


def queue(apps, schema_editor):
    """What has finished until now is sealed as it stands. Goes on after the last one queued."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(run), 0) FROM runs_sealrequest")
        first = cursor.fetchone()[0]
        cursor.execute("SELECT coalesce(max(id), 0) FROM runs_run")
        last = cursor.fetchone()[0]
        for after in range(first, last, BATCH):
            cursor.execute(
                "INSERT INTO runs_sealrequest (kind, run) SELECT 'sealed', id FROM runs_run"
                " WHERE state = 'finished' AND origin <> 'published' AND id > %s AND id <= %s"
                " ORDER BY id",
                [after, min(after + BATCH, last)],
            )


class Migration(InSteps):
    replaces = [("runs", "0014_seals")]
    dependencies = landed.dependencies

    operations = [
        # Choices are nothing of the database's.
        *(
            migrations.SeparateDatabaseAndState([], [each])
            if isinstance(each, migrations.AlterField)
            else each
            for each in in_steps(others)
        ),
        migrations.RunPython(queue, migrations.RunPython.noop, atomic=False),
    ]
