"""Judging again costs nothing while nothing was judged by older rules."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.analysis import inference, monitoring
from runs.histories.services import changes
from tests.domain.cost.gate import buffers

pytestmark = pytest.mark.django_db

ROWS = 20_000
# Rows without their runs and campaigns: these two tables alone count.
LOOSEN = """
DO $$ DECLARE held record; BEGIN
    FOR held IN SELECT conname, conrelid::regclass AS of FROM pg_constraint
        WHERE contype = 'f' AND conrelid IN ('runs_change'::regclass, 'runs_bisection'::regclass)
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', held.of, held.conname); END LOOP;
END $$;
ALTER TABLE runs_change ALTER campaign_id DROP NOT NULL"""
CHANGES = """
INSERT INTO runs_change (cell_id, run_id, metric_id, kind, ratio, before, after, rules, found_at,
                         decision, note)
SELECT i, i, 1, 'step', 0.9, 1000, 900, %s, now(), 'open', '' FROM generate_series(1, %s) i"""
BISECTIONS = """
INSERT INTO runs_bisection (campaign_id, server_id, state, asked, draft, builds, followed, low,
                            high, verdict, is_found, rules, message, fingerprint, created_at)
SELECT i, 1, 'finished', '{}', '{}', '[]', '{}', 0, 1, 'same', false, %s, '', i, now()
FROM generate_series(1, %s) i"""


@pytest.fixture
def archive(db):
    """Many changes and bisections that these rules have judged."""
    with connection.cursor() as cursor:
        # What other tests have rolled back stays in tables and indexes, and is read as well.
        cursor.execute("TRUNCATE runs_change, runs_bisection CASCADE")
        cursor.execute(LOOSEN)
        cursor.execute(CHANGES, [monitoring.RULES, ROWS])
        cursor.execute(BISECTIONS, [inference.RULES, ROWS])


@pytest.mark.parametrize("is_analysed", [False, True])
def test_a_turn_with_nothing_to_do_reads_some_buffers_of_a_large_archive(
    archive, is_analysed
):
    if is_analysed:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE runs_change, runs_bisection")

    with CaptureQueriesContext(connection) as asked:
        assert changes.judge_some() == 0

    selects = [each["sql"] for each in asked if each["sql"].startswith("SELECT")]
    assert len(selects) == 2
    # Reading all 20,000 rows takes hundreds of them.
    assert sum(map(buffers, selects)) < 60


@pytest.mark.parametrize("key", [1, 2**31, 2**63 - 1])
def test_a_campaign_of_any_key_can_be_locked(db, key):
    assert changes.lock(campaign_id=key)
