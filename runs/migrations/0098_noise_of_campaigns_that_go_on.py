"""A campaign that goes on changes how machines are known to scatter, as one that ends does."""

from django.db import migrations

from benchlab.gentle_migrations import InSteps, in_steps

RAISED_BY_BOTH_STATES = """
CREATE OR REPLACE FUNCTION runs_raise_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was_noise boolean := TG_OP = 'UPDATE' AND OLD.state NOT IN ('queued', 'running');
    is_noise boolean := NEW.state NOT IN ('queued', 'running');
BEGIN
    PERFORM runs_raise_versions(ARRAY['campaign ' || NEW.id,
        CASE WHEN NEW.origin = 'executed' AND (was_noise OR is_noise) THEN 'machines' END]);
    RETURN NULL;
END $$;
"""
RAISED_BY_THE_NEW_STATE = """
CREATE OR REPLACE FUNCTION runs_raise_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_raise_versions(ARRAY['campaign ' || NEW.id,
        CASE WHEN NEW.origin = 'executed' AND NEW.state NOT IN ('queued', 'running')
            THEN 'machines' END]);
    RETURN NULL;
END $$;
"""


class Migration(InSteps):
    dependencies = [("runs", "0097_versions_of_uploads")]

    operations = in_steps(
        [migrations.RunSQL(RAISED_BY_BOTH_STATES, RAISED_BY_THE_NEW_STATE)]
    )
