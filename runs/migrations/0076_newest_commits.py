"""Cells say when their commit was made, so that a history begins with its newest ones."""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps

# A commit without a date has the time when it was first named.
TAKE = """
CREATE FUNCTION runs_take_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.commit_at := (
        SELECT coalesce(committed_at, created_at) FROM runs_revision WHERE id = NEW.revision_id);
    RETURN NEW;
END $$;
CREATE TRIGGER cell_takes_commit BEFORE INSERT OR UPDATE OF revision_id ON runs_cell
    FOR EACH ROW EXECUTE FUNCTION runs_take_commit();
CREATE FUNCTION runs_tell_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs_cell SET commit_at = coalesce(NEW.committed_at, NEW.created_at)
    WHERE revision_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER revision_tells_commit AFTER UPDATE OF committed_at ON runs_revision
    FOR EACH ROW WHEN (OLD.committed_at IS DISTINCT FROM NEW.committed_at)
    EXECUTE FUNCTION runs_tell_commit();
"""
FIRST = """
UPDATE runs_cell cell SET commit_at = coalesce(committed_at, revision.created_at)
FROM runs_revision revision WHERE revision.id = revision_id AND commit_at IS NULL;
"""


class Migration(InSteps):
    dependencies = [("runs", "0075_private_projects")]

    operations = in_steps(
        [
            migrations.AddField(
                "cell", "commit_at", models.DateTimeField(null=True, editable=False)
            ),
            migrations.RunSQL(TAKE, migrations.RunSQL.noop),
            migrations.RunSQL(FIRST, migrations.RunSQL.noop),
            migrations.AddIndex(
                "cell",
                models.Index(
                    fields=["campaign", "series_key", "-commit_at", "-id"],
                    condition=models.Q(revision__isnull=False),
                    name="cell_by_commit",
                ),
            ),
        ]
    )
