"""Lists that are served by an index: a run knows its cell's version, and measurements follow runs.

Nothing here locks a large table for longer than it takes to change its description: columns have
constant defaults, rows are filled in batches, indexes are made concurrently.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

BATCH = 20_000

# The version's text, and 9.6 of 9.6.24, 16 of 16.14, 19 of 19beta1: selectors.archive.versions.major.
FUNCTIONS = r"""
CREATE FUNCTION runs_major(version text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(substring(version FROM '^(?:\d\.\d+|\d+)'), '')
$$;
CREATE FUNCTION runs_take_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT version, runs_major(version) INTO NEW.cell_version, NEW.cell_major
    FROM runs_cell WHERE id = NEW.cell_id;
    RETURN NEW;
END $$;
CREATE FUNCTION runs_give_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs_run SET cell_id = cell_id WHERE cell_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER run_takes_version BEFORE INSERT OR UPDATE OF cell_id ON runs_run
    FOR EACH ROW EXECUTE FUNCTION runs_take_version();
CREATE TRIGGER cell_gives_version AFTER UPDATE OF version ON runs_cell
    FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version)
    EXECUTE FUNCTION runs_give_version();
"""
UNDONE = """
DROP TRIGGER cell_gives_version ON runs_cell;
DROP TRIGGER run_takes_version ON runs_run;
DROP FUNCTION runs_give_version();
DROP FUNCTION runs_take_version();
DROP FUNCTION runs_major(text);
"""


def fill(apps, schema_editor):
    """Give the runs that are there their version, some thousands at a time."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM runs_run")
        last = cursor.fetchone()[0]
        for first in range(0, last + 1, BATCH):
            cursor.execute(
                "UPDATE runs_run run SET cell_version = cell.version,"
                " cell_major = runs_major(cell.version) FROM runs_cell cell"
                " WHERE cell.id = run.cell_id AND run.id > %s AND run.id <= %s"
                " AND cell.version <> '' AND run.cell_version = ''",
                [first, first + BATCH],
            )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0017_archive")]

    operations = [
        migrations.AddField(
            "run",
            "cell_version",
            models.CharField(max_length=40, blank=True, db_default="", editable=False),
        ),
        migrations.AddField(
            "run",
            "cell_major",
            models.CharField(max_length=40, blank=True, db_default="", editable=False),
        ),
        migrations.RunSQL(FUNCTIONS, UNDONE),
        migrations.RunPython(fill, migrations.RunPython.noop),
        AddIndexConcurrently("run", models.Index(fields=["cell_major", "-id"], name="run_by_major")),
        AddIndexConcurrently(
            "run", models.Index(fields=["cell_version", "-id"], name="run_by_version")
        ),
        AddIndexConcurrently(
            "run",
            models.Index(
                fields=["state", "-id"], condition=~Q(state="finished"), name="run_by_state"
            ),
        ),
        AddIndexConcurrently(
            "run",
            models.Index(
                fields=["origin", "-id"], condition=~Q(origin="uploaded"), name="run_by_origin"
            ),
        ),
        AddIndexConcurrently(
            "run",
            models.Index(
                fields=["validity", "-id"], condition=~Q(validity=""), name="run_by_validity"
            ),
        ),
        AddIndexConcurrently("run", models.Index(fields=["server", "-id"], name="run_by_server")),
        AddIndexConcurrently(
            "run", models.Index(fields=["hardware", "-id"], name="run_by_hardware")
        ),
        AddIndexConcurrently(
            "measurement", models.Index(fields=["metric", "-run"], name="measurement_by_metric")
        ),
        # Those of the keys alone, which the ones above replace.
        # By its name: Django would drop the unique index of a server's active run, too.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS runs_run_server_id_41b0088c",
                    "CREATE INDEX CONCURRENTLY runs_run_server_id_41b0088c ON runs_run (server_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "run",
                    "server",
                    models.ForeignKey(
                        "runs.Server", models.PROTECT, null=True, related_name="runs", db_index=False
                    ),
                )
            ],
        ),
        migrations.AlterField(
            "run",
            "hardware",
            models.ForeignKey(
                "runs.HardwareProfile", models.PROTECT, null=True, db_index=False
            ),
        ),
        migrations.AlterField(
            "measurement",
            "metric",
            models.ForeignKey("runs.Metric", models.PROTECT, db_index=False),
        ),
    ]
