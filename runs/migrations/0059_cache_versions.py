"""The versions of what kept answers are made of, and the triggers that raise them."""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps

# Subjects in their order, so that two transactions wait for each other in one direction.
RAISE = """
CREATE FUNCTION runs_raise_versions(subjects text[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO runs_cacheversion (subject, number)
    SELECT subject, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    FROM unnest(subjects) AS given (subject)
    WHERE subject IS NOT NULL GROUP BY subject ORDER BY subject
    ON CONFLICT (subject) DO UPDATE
    SET number = greatest(runs_cacheversion.number + 1, EXCLUDED.number)
$$;
"""

# Rows that belong to a campaign: by its key, or by that of a published table.
OF_CAMPAIGN = """
CREATE FUNCTION runs_raise_campaigns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(array(
        SELECT 'campaign ' || campaign.id FROM runs_campaign campaign
        WHERE campaign.origin <> 'uploaded' AND campaign.id IN (SELECT campaign_id FROM changed)
    ));
    RETURN NULL;
END $$;
CREATE FUNCTION runs_raise_tables() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(array(
        SELECT 'campaign ' || campaign_id FROM runs_publishedtable
        WHERE id IN (SELECT table_id FROM changed)
    ));
    RETURN NULL;
END $$;
"""

# Only finished runs are judged; the others are seen where a campaign's runs are listed. How the
# machines of a campaign scatter is asked once it has ended.
OF_RUNS = """
CREATE FUNCTION runs_raise_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(array(
        WITH changed AS (
            SELECT campaign_id, bool_or(state IN ('finished', 'withdrawn')) AS is_result
            FROM changed GROUP BY campaign_id
        ), campaign AS (
            SELECT 'campaign ' || id AS subject, is_result,
                origin = 'executed' AND state NOT IN ('queued', 'running') AS is_noise
            FROM changed JOIN runs_campaign ON id = campaign_id WHERE origin <> 'uploaded'
        )
        SELECT subject || ' runs' FROM campaign
        UNION ALL SELECT subject FROM campaign WHERE is_result
        UNION ALL SELECT 'machines' FROM campaign WHERE is_result AND is_noise
    ));
    RETURN NULL;
END $$;
"""

OF_THE_CAMPAIGN_ITSELF = """
CREATE FUNCTION runs_raise_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(ARRAY['campaign ' || NEW.id,
        CASE WHEN NEW.origin = 'executed' AND NEW.state NOT IN ('queued', 'running')
            THEN 'machines' END]);
    RETURN NULL;
END $$;
CREATE TRIGGER raises_versions AFTER INSERT ON runs_campaign FOR EACH ROW
    WHEN (NEW.origin <> 'uploaded') EXECUTE FUNCTION runs_raise_campaign();
CREATE TRIGGER raises_versions_of_change AFTER UPDATE ON runs_campaign FOR EACH ROW
    WHEN (NEW.origin <> 'uploaded' AND OLD IS DISTINCT FROM NEW)
    EXECUTE FUNCTION runs_raise_campaign();
"""

SHARED = """
CREATE FUNCTION runs_raise_shared() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(ARRAY['shared']);
    RETURN NULL;
END $$;
"""
# Which rows any answer may show. Of hardware and environments only what publications name can
# change; a server is looked at all the time.
SHOWN = {
    "source": None,
    "metric": None,
    "scenario": None,
    "topology": None,
    "topologynode": None,
    "configuration": None,
    "installation": None,
    "hardwareprofile": "{}.slug <> ''",
    "environment": "{}.slug <> ''",
    "server": None,
}
CHANGED = {"server": "(OLD.slug, OLD.name) IS DISTINCT FROM (NEW.slug, NEW.name)"}
BY_CAMPAIGN = ("cell", "annotation", "campaignconfiguration", "publishedtable")
BY_TABLE = ("printedfigure", "discrepancy", "publishednode")


def of_statements(table, function):
    """A trigger for each event: one that sees the changed rows is for one event alone."""
    return "\n".join(
        f"CREATE TRIGGER raises_versions_{event.lower()} AFTER {event} ON runs_{table}"
        f" REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {function}();"
        for event, rows in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD"))
    )


def of_rows(table, condition):
    """Triggers of a shared table, which fire for rows that are stored, changed or removed."""
    changed = CHANGED.get(table, "OLD IS DISTINCT FROM NEW")
    events = (("INSERT", "NEW", ""), ("UPDATE", "NEW", changed), ("DELETE", "OLD", ""))
    return "\n".join(
        f"CREATE TRIGGER raises_versions_{event.lower()} AFTER {event} ON runs_{table}"
        f" FOR EACH ROW {when(condition and condition.format(row), fires)}"
        " EXECUTE FUNCTION runs_raise_shared();"
        for event, row, fires in events
    )


def when(*conditions):
    """The clause of a trigger; empty without conditions."""
    wanted = " AND ".join(filter(None, conditions))
    return f"WHEN ({wanted})" if wanted else ""


FUNCTIONS = RAISE + OF_CAMPAIGN + OF_RUNS + SHARED
TRIGGERS = [
    OF_THE_CAMPAIGN_ITSELF,
    *(of_statements(table, "runs_raise_campaigns") for table in BY_CAMPAIGN),
    *(of_statements(table, "runs_raise_tables") for table in BY_TABLE),
    of_statements("run", "runs_raise_runs"),
    *(of_rows(table, condition) for table, condition in SHOWN.items()),
]
# For what is there already.
FIRST = """
SELECT runs_raise_versions(array(
    SELECT 'campaign ' || id FROM runs_campaign WHERE origin <> 'uploaded'
))
"""
UNDONE = """
DROP FUNCTION runs_raise_campaigns, runs_raise_tables, runs_raise_runs, runs_raise_campaign,
    runs_raise_shared, runs_raise_versions CASCADE
"""


class Migration(InSteps):
    dependencies = [("runs", "0058_configurations_of_projects")]

    operations = in_steps(
        [
            migrations.CreateModel(
                "CacheVersion",
                [
                    ("subject", models.CharField(max_length=40, primary_key=True, serialize=False)),
                    ("number", models.BigIntegerField()),
                ],
            ),
            migrations.RunSQL(FUNCTIONS, UNDONE),
            *(migrations.RunSQL(each, migrations.RunSQL.noop) for each in TRIGGERS),
            migrations.RunSQL(FIRST, migrations.RunSQL.noop),
        ]
    )
