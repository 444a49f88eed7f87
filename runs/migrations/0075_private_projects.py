"""Campaigns say whether everybody may see them, and private rows whose they are.

A member's lists begin with the newest of what is public and the newest of each own project: else
they read all rows of other private projects that are newer.
"""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps

OF_CAMPAIGNS = """
CREATE FUNCTION runs_take_openness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.is_public := coalesce(
        (SELECT is_public FROM runs_project WHERE id = NEW.project_id), true);
    RETURN NEW;
END $$;
CREATE TRIGGER campaign_takes_openness BEFORE INSERT OR UPDATE OF project_id ON runs_campaign
    FOR EACH ROW EXECUTE FUNCTION runs_take_openness();
"""
OF_RUNS = """
CREATE OR REPLACE FUNCTION runs_take_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT cell.version, runs_major(cell.version), coalesce(project.is_public, true),
        CASE WHEN NOT project.is_public THEN project.id END
    INTO NEW.cell_version, NEW.cell_major, NEW.is_public, NEW.private_project
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
    SELECT campaign.id, coalesce(project.is_public, true),
        CASE WHEN NOT project.is_public THEN project.id END
    INTO NEW.campaign_id, NEW.is_public, NEW.private_project
    FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
        LEFT JOIN runs_project project ON project.id = campaign.project_id
    WHERE cell.id = NEW.cell_id;
    NEW.is_public := coalesce(NEW.is_public, true);
    RETURN NEW;
END $$;
"""
# A project that is opened or closed, and a campaign that is given to another, tell their rows.
_TELL = """
    UPDATE {table} row SET is_public = public,
        private_project = CASE WHEN NOT public THEN campaign.project_id END
    FROM runs_campaign campaign
    WHERE campaign.id = row.campaign_id
        AND (campaign.project_id = ANY(projects) OR campaign.id = ANY(campaigns))
        AND (row.is_public, row.private_project) IS DISTINCT FROM
            (public, CASE WHEN NOT public THEN campaign.project_id END);
"""
FOLLOW = f"""
CREATE OR REPLACE FUNCTION runs_tell_openness(
    projects bigint[], campaigns bigint[], public boolean
) RETURNS void LANGUAGE sql AS $$
    UPDATE runs_campaign SET is_public = public
    WHERE is_public <> public AND project_id = ANY(projects);
    {_TELL.format(table="runs_run")}
    {_TELL.format(table="runs_change")}
$$;
"""
FIRST = """
SELECT runs_tell_openness(array(SELECT id FROM runs_project WHERE NOT is_public),
                          ARRAY[]::bigint[], false);
"""
PRIVATE = models.Q(private_project__isnull=False)
PUBLIC = models.Q(is_public=True)


def _private():
    return models.BigIntegerField(null=True, editable=False)


class Migration(InSteps):
    dependencies = [("runs", "0074_ablations")]

    operations = in_steps(
        [
            migrations.AddField(
                "campaign",
                "is_public",
                models.BooleanField(default=True, db_default=True, editable=False),
            ),
            migrations.AddField("run", "private_project", _private()),
            migrations.AddField("change", "private_project", _private()),
            migrations.RunSQL(OF_CAMPAIGNS, migrations.RunSQL.noop),
            migrations.RunSQL(OF_RUNS, migrations.RunSQL.noop),
            migrations.RunSQL(OF_CHANGES, migrations.RunSQL.noop),
            migrations.RunSQL(FOLLOW, migrations.RunSQL.noop),
            migrations.RunSQL(FIRST, migrations.RunSQL.noop),
            migrations.AddIndex(
                "campaign",
                models.Index(fields=["-id"], condition=PUBLIC, name="campaign_public"),
            ),
            migrations.AddIndex(
                "campaign",
                models.Index(
                    fields=["origin", "-id"], condition=PUBLIC, name="campaign_public_by_origin"
                ),
            ),
            migrations.AddIndex(
                "campaign",
                models.Index(
                    fields=["project", "-id"],
                    condition=models.Q(is_public=False),
                    name="campaign_private",
                ),
            ),
            migrations.AddIndex(
                "run",
                models.Index(
                    fields=["private_project", "-id"], condition=PRIVATE, name="run_private"
                ),
            ),
            migrations.AddIndex(
                "run",
                models.Index(
                    fields=["private_project", "-finished_at", "-id"],
                    condition=PRIVATE,
                    name="run_private_by_end",
                ),
            ),
            migrations.AddIndex(
                "change",
                models.Index(
                    fields=["private_project", "-id"], condition=PRIVATE, name="change_private"
                ),
            ),
        ]
    )
