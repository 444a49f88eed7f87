"""A change knows its campaign; indexes for what grows with a campaign, a commit or a server."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import CASCADE, PROTECT, Q

from benchlab.gentle_migrations import InSteps, in_steps

BATCH = 5000
OF_MACHINE = Q(code__in=["hardware_changed", "environment_changed"])

FUNCTION = """
CREATE FUNCTION runs_take_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT campaign_id INTO NEW.campaign_id FROM runs_cell WHERE id = NEW.cell_id;
    RETURN NEW;
END $$;
CREATE TRIGGER change_takes_campaign BEFORE INSERT OR UPDATE OF cell_id, campaign_id ON runs_change
    FOR EACH ROW EXECUTE FUNCTION runs_take_campaign();
"""
UNDONE = """
DROP TRIGGER change_takes_campaign ON runs_change;
DROP FUNCTION runs_take_campaign();
"""


def fill(apps, schema_editor):
    """Give the changes that are there their campaign, some thousands at a time."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM runs_change")
        last = cursor.fetchone()[0]
        for first in range(0, last + 1, BATCH):
            cursor.execute(
                "UPDATE runs_change SET cell_id = cell_id"
                " WHERE id > %s AND id <= %s AND campaign_id IS NULL",
                [first, first + BATCH],
            )


def campaign(**how):
    return models.ForeignKey(
        "runs.Campaign", CASCADE, related_name="+", editable=False, db_index=False, **how
    )


class Migration(InSteps):
    dependencies = [("runs", "0053_newest_of_each")]

    operations = in_steps(
        [
            migrations.AddField("change", "campaign", campaign(null=True)),
            migrations.RunSQL(FUNCTION, UNDONE),
            migrations.RunPython(fill, migrations.RunPython.noop, atomic=False),
            migrations.AlterField("change", "campaign", campaign()),
            AddIndexConcurrently(
                "change", models.Index(fields=["campaign", "-id"], name="change_by_campaign")
            ),
            AddIndexConcurrently(
                "cell",
                models.Index(
                    fields=["revision", "campaign"],
                    condition=Q(revision__isnull=False),
                    name="cell_by_revision",
                ),
            ),
            # That of the key alone, which the one above replaces.
            migrations.SeparateDatabaseAndState(
                [
                    migrations.RunSQL(
                        "DROP INDEX CONCURRENTLY IF EXISTS runs_cell_revision_id_e7d58aa2",
                        "CREATE INDEX CONCURRENTLY runs_cell_revision_id_e7d58aa2"
                        " ON runs_cell (revision_id)",
                    )
                ],
                [
                    migrations.AlterField(
                        "cell",
                        "revision",
                        models.ForeignKey(
                            "runs.Revision",
                            PROTECT,
                            null=True,
                            related_name="cells",
                            db_index=False,
                        ),
                    )
                ],
            ),
            AddIndexConcurrently(
                "serverevent",
                models.Index(
                    fields=["server", "-at", "-id"],
                    condition=OF_MACHINE,
                    name="server_event_of_machine",
                ),
            ),
            AddIndexConcurrently(
                "serverevent",
                models.Index(
                    fields=["server", "-at", "-id"],
                    condition=~OF_MACHINE,
                    name="server_event_of_others",
                ),
            ),
            # What few runs of a long campaign have.
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["campaign", "cell_major", "-id"],
                    condition=~Q(cell_major=""),
                    name="run_by_campaign_major",
                ),
            ),
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["campaign", "validity", "-id"],
                    condition=~Q(validity=""),
                    name="run_by_campaign_validity",
                ),
            ),
            AddIndexConcurrently(
                "run",
                models.Index(
                    fields=["campaign", "server", "-id"],
                    condition=Q(server__isnull=False),
                    name="run_by_campaign_server",
                ),
            ),
            # A version says its major version: without this PostgreSQL takes both for a coincidence.
            migrations.RunSQL(
                "CREATE STATISTICS run_versions (dependencies)"
                " ON cell_version, cell_major FROM runs_run",
                "DROP STATISTICS run_versions",
            ),
            # The first cell of each series.
            AddIndexConcurrently(
                "cell",
                models.Index(
                    fields=["campaign", "series_key", "ordinal"], name="cell_by_series_ordinal"
                ),
            ),
            RemoveIndexConcurrently("cell", "cell_by_series"),
        ]
    )
