"""Runs and changes say whether everybody may see them, for lists in the order of time.

With the condition on the project alone a list reads all rows of private projects that are newer.
"""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps

# A run has it from its campaign's project when it is made; a campaign without one is public.
OF_RUNS = """
CREATE OR REPLACE FUNCTION runs_take_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT cell.version, runs_major(cell.version), coalesce(project.is_public, true)
    INTO NEW.cell_version, NEW.cell_major, NEW.is_public
    FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
        LEFT JOIN runs_project project ON project.id = campaign.project_id
    WHERE cell.id = NEW.cell_id;
    NEW.is_public := coalesce(NEW.is_public, true);
    RETURN NEW;
END $$;
"""
OF_CHANGES = """
CREATE OR REPLACE FUNCTION runs_take_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT campaign.id, coalesce(project.is_public, true) INTO NEW.campaign_id, NEW.is_public
    FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
        LEFT JOIN runs_project project ON project.id = campaign.project_id
    WHERE cell.id = NEW.cell_id;
    NEW.is_public := coalesce(NEW.is_public, true);
    RETURN NEW;
END $$;
"""
# A project that is opened or closed, and a campaign that is given to another, tell their rows.
FOLLOW = """
CREATE FUNCTION runs_tell_openness(projects bigint[], campaigns bigint[], public boolean)
RETURNS void LANGUAGE sql AS $$
    UPDATE runs_run SET is_public = public WHERE is_public <> public AND campaign_id IN (
        SELECT id FROM runs_campaign WHERE project_id = ANY(projects) OR id = ANY(campaigns));
    UPDATE runs_change SET is_public = public WHERE is_public <> public AND campaign_id IN (
        SELECT id FROM runs_campaign WHERE project_id = ANY(projects) OR id = ANY(campaigns));
$$;
CREATE FUNCTION runs_project_tells_openness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_tell_openness(ARRAY[NEW.id], ARRAY[]::bigint[], NEW.is_public);
    RETURN NULL;
END $$;
CREATE TRIGGER project_tells_openness AFTER UPDATE OF is_public ON runs_project
    FOR EACH ROW WHEN (OLD.is_public <> NEW.is_public)
    EXECUTE FUNCTION runs_project_tells_openness();
CREATE FUNCTION runs_campaign_tells_openness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_tell_openness(ARRAY[]::bigint[], ARRAY[NEW.id], coalesce(
        (SELECT is_public FROM runs_project WHERE id = NEW.project_id), true));
    RETURN NULL;
END $$;
CREATE TRIGGER campaign_tells_openness AFTER UPDATE OF project_id ON runs_campaign
    FOR EACH ROW WHEN (OLD.project_id IS DISTINCT FROM NEW.project_id)
    EXECUTE FUNCTION runs_campaign_tells_openness();
"""
FIRST = """
SELECT runs_tell_openness(array(SELECT id FROM runs_project WHERE NOT is_public),
                          ARRAY[]::bigint[], false);
"""

# The filters of lists, and what most uploads do not have.
FILTERS = (
    ("cell_major", ~models.Q(cell_major=""), "major"),
    ("cell_version", ~models.Q(cell_version=""), "version"),
    ("origin", ~models.Q(origin="uploaded"), "origin"),
    ("server", models.Q(server__isnull=False), "server"),
    ("hardware", models.Q(hardware__isnull=False), "hardware"),
)


def indexes():
    """Those that see all are partial now; beside each stands that of what everybody may see."""
    for field, condition, name in FILTERS:
        whole = models.Index(fields=[field, "-id"], condition=condition, name=f"run_by_{name}")
        public = condition & models.Q(is_public=True)
        if field != "origin":
            yield RemoveIndexConcurrently("run", whole.name)
            yield migrations.AddIndex("run", whole)
        yield migrations.AddIndex(
            "run",
            models.Index(fields=[field, "-id"], condition=public, name=f"run_public_by_{name}"),
        )


class Migration(InSteps):
    dependencies = [("runs", "0064_storage_metrics")]

    operations = in_steps(
        [
            migrations.AddField(
                "run", "is_public", models.BooleanField(default=True, db_default=True, editable=False)
            ),
            migrations.AddField(
                "change",
                "is_public",
                models.BooleanField(default=True, db_default=True, editable=False),
            ),
            migrations.RunSQL(OF_RUNS, migrations.RunSQL.noop),
            migrations.RunSQL(OF_CHANGES, migrations.RunSQL.noop),
            migrations.RunSQL(FOLLOW, migrations.RunSQL.noop),
            migrations.RunSQL(FIRST, migrations.RunSQL.noop),
            migrations.AddIndex(
                "run",
                models.Index(
                    fields=["-id"], condition=models.Q(is_public=True), name="run_public"
                ),
            ),
            migrations.AddIndex(
                "run",
                models.Index(
                    fields=["-finished_at", "-id"],
                    condition=models.Q(is_public=True),
                    name="run_public_by_end",
                ),
            ),
            migrations.AddIndex(
                "change",
                models.Index(
                    fields=["-id"], condition=models.Q(is_public=True), name="change_public"
                ),
            ),
            *indexes(),
        ]
    )
