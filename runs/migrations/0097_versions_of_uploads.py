"""The versions of uploaded campaigns: raised by what changes there, and not by an upload.

An upload only adds runs, which are counted already; to raise a version with each would let uploads
wait for each other.
"""

from django.db import migrations

from benchlab.gentle_migrations import InSteps, in_steps

FUNCTIONS = """
CREATE FUNCTION runs_raise_uploaded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(array(
        SELECT 'uploads ' || campaign.id FROM runs_campaign campaign
        WHERE campaign.origin = 'uploaded' AND campaign.id IN (SELECT campaign_id FROM changed)
    ));
    RETURN NULL;
END $$;
CREATE FUNCTION runs_raise_uploaded_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(ARRAY['uploads ' || NEW.id]);
    RETURN NULL;
END $$;
CREATE FUNCTION runs_raise_commits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(array(
        SELECT DISTINCT 'uploads ' || cell.campaign_id FROM runs_cell cell
        WHERE cell.revision_id IN (SELECT (to_jsonb(changed) ->> TG_ARGV[0])::bigint FROM changed)
    ));
    RETURN NULL;
END $$;
"""
# What an upload adds to these is counted.
CHANGED = ("cell", "run")
ADDED_TOO = ("annotation", "change", "campaignconfiguration")
EVENTS = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}
# By what the rows say of their commit.
OF_COMMITS = (
    ("revision", "id", ("UPDATE",)),
    ("revisionref", "revision_id", ("INSERT", "DELETE")),
)
OF_ROWS = """
CREATE TRIGGER raises_uploaded AFTER INSERT ON runs_campaign FOR EACH ROW
    WHEN (NEW.origin = 'uploaded') EXECUTE FUNCTION runs_raise_uploaded_campaign();
CREATE TRIGGER raises_uploaded_of_change AFTER UPDATE ON runs_campaign FOR EACH ROW
    WHEN (NEW.origin = 'uploaded' AND OLD IS DISTINCT FROM NEW)
    EXECUTE FUNCTION runs_raise_uploaded_campaign();
CREATE TRIGGER raises_versions AFTER UPDATE OF username ON auth_user FOR EACH ROW
    WHEN (OLD.username IS DISTINCT FROM NEW.username) EXECUTE FUNCTION runs_raise_shared();
"""


def of_statements(table, function, events):
    """A trigger for each event: one that sees the changed rows is for one event alone."""
    return "\n".join(
        f"CREATE TRIGGER raises_uploaded_{event.lower()} AFTER {event} ON runs_{table}"
        f" REFERENCING {EVENTS[event]} TABLE AS changed FOR EACH STATEMENT"
        f" EXECUTE FUNCTION {function};"
        for event in events
    )


TRIGGERS = [
    OF_ROWS,
    *(
        of_statements(table, "runs_raise_uploaded()", ("UPDATE", "DELETE"))
        for table in CHANGED
    ),
    *(of_statements(table, "runs_raise_uploaded()", EVENTS) for table in ADDED_TOO),
    *(
        of_statements(table, f"runs_raise_commits('{column}')", events)
        for table, column, events in OF_COMMITS
    ),
]
# For what is there already.
FIRST = """
SELECT runs_raise_versions(array(
    SELECT 'uploads ' || id FROM runs_campaign WHERE origin = 'uploaded'
))
"""
UNDONE = """
DROP TRIGGER raises_versions ON auth_user;
DROP FUNCTION runs_raise_uploaded, runs_raise_uploaded_campaign, runs_raise_commits CASCADE
"""


class Migration(InSteps):
    dependencies = [("runs", "0096_private_hardware")]

    operations = in_steps(
        [
            migrations.RunSQL(FUNCTIONS, UNDONE),
            *(migrations.RunSQL(trigger, migrations.RunSQL.noop) for trigger in TRIGGERS),
            migrations.RunSQL(FIRST, migrations.RunSQL.noop),
        ]
    )
