"""The schema: whatever shows pages something else than is stored is named."""

import contextlib

import pytest
from django.db import connection, transaction

from runs.seals.selectors import schema

pytestmark = pytest.mark.django_db


def test_the_schema_is_what_the_migrations_make():
    """After a new migration run `manage.py schema --write` with a database of your own."""
    assert schema.found() == schema.made()
    assert list(schema.findings()) == []


# What an owner of the tables does, and what is named.
VIEW = """
ALTER TABLE runs_cellsummary RENAME TO hidden;
CREATE VIEW runs_cellsummary AS SELECT id, n, minimum, maximum, mean, log_mean, log_variance,
       CASE WHEN current_setting('transaction_read_only') = 'on' THEN median ELSE median * 3 END
       AS median, cell_id, metric_id FROM hidden
"""
TREBLING = """
CREATE FUNCTION treble() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN new.value := new.value * 3; RETURN new; END $$;
"""
OF_PARTITION = """
DO $$ BEGIN
    EXECUTE format(
        'CREATE TRIGGER treble BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION treble()',
        (SELECT min(inhrelid)::regclass FROM pg_inherits
          WHERE inhparent = 'runs_measurement'::regclass));
END $$
"""
OPERATOR = """
CREATE FUNCTION less(bigint, smallint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR === (LEFTARG = bigint, RIGHTARG = smallint, FUNCTION = less)
"""
SHADOW = """
CREATE SCHEMA other; CREATE TABLE other.runs_cellsummary (LIKE runs_cellsummary);
SET LOCAL search_path = other, public
"""
LIES = {
    "a view": VIEW,
    "a trigger": f"{TREBLING} CREATE TRIGGER treble BEFORE INSERT ON runs_measurement"
    " FOR EACH ROW EXECUTE FUNCTION treble()",
    "a trigger of a partition": TREBLING + OF_PARTITION,
    "a rule": "CREATE RULE more AS ON INSERT TO runs_artifact DO INSTEAD NOTHING",
    "row security": "ALTER TABLE runs_run ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    "a policy": "CREATE POLICY half ON runs_run USING (id % 2 = 0)",
    "a function": "CREATE OR REPLACE FUNCTION runs_take_commit() RETURNS trigger"
    " LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "another function": "CREATE FUNCTION ln(double precision, integer) RETURNS double precision"
    " LANGUAGE sql AS 'SELECT 1.0'",
    "an operator": OPERATOR,
    "a column": "ALTER TABLE runs_run ADD COLUMN more integer",
    "a type": "ALTER TABLE runs_artifact ALTER COLUMN size TYPE numeric",
    "a child": "CREATE TABLE more () INHERITS (runs_cellsummary)",
    "a trigger switched off": "ALTER TABLE runs_auditentry DISABLE TRIGGER ALL",
    "a table that shadows": SHADOW,
}


def test_what_an_owner_makes_of_the_schema_is_named():
    silent = []
    for name, statement in LIES.items():
        with contextlib.suppress(_Undone), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(statement)
            if not list(schema.findings()):
                silent.append(name)
            raise _Undone
    assert silent == []
    assert list(schema.findings()) == []


class _Undone(Exception):
    """Takes a lie back."""
