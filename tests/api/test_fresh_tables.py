"""Lists right after a large batch, of tables that PostgreSQL has not analysed yet."""

import json

import pytest
from django.contrib.auth.models import User
from django.db import connection

from runs.models import Run
from runs.operations.services import partitions
from runs.workloads.services import scenarios
from tests.api.upload_bodies import run
from tests.domain.cost import gate

pytestmark = pytest.mark.django_db

RUNS = 1000
# Of uploads: what an upload stores, and what shows it.
PAGES = (
    "/",
    "/campaigns/",
    "/campaigns/new-ci/",
    "/campaigns/new-ci/history/",
    "/changes/",
    "/hardware/",
    "/compare/",
    "/compare/?q=new-ci",
    "/versions/",
    "/topics/",
    "/topics/storage/",
    "/help/",
)
LISTS = ("campaigns", "changes", "hardware", "measurements", "runs", "scenarios")
FILTERS = (
    "campaigns/?origin=uploaded",
    "hardware/?cpu_model=nothing",
    "measurements/?campaign=new-ci",
    "measurements/?campaign=new-ci&metric=tps",
    "measurements/?metric=tps",
    "measurements/?version=18",
    "runs/?campaign=new-ci",
    "runs/?origin=executed",
    "runs/?origin=uploaded",
    "runs/?state=failed",
    "runs/?version=18",
    "runs/?version=9",
)

# TRUNCATE does so itself, but of the partitions only.
FORGET = """
SELECT pg_clear_relation_stats('public', of.relname),
       pg_clear_attribute_stats('public', of.relname, attname, inherited => true)
FROM pg_class of JOIN pg_attribute ON attrelid = of.oid AND attnum > 0
WHERE of.relname = ANY(%s)"""


def body(number):
    return run(campaign="new-ci", revision={"sha": f"{number + 1:040x}"})


def test_lists_read_no_more_right_after_a_batch_than_when_all_is_analysed(
    client, bearer, settings, django_capture_on_commit_callbacks
):
    settings.RATE_ANONYMOUS = 0
    scenarios.sync()
    User.objects.create_superuser("cost")
    with connection.cursor() as cursor:
        # Nothing is known of new tables, and nothing dead of other tests is in them.
        cursor.execute(
            "TRUNCATE runs_campaign, runs_revision, runs_hardwareprofile CASCADE"
        )
        cursor.execute(FORGET, [list(partitions.TABLES)])
    many = json.dumps({"runs": [body(number) for number in range(RUNS)]})
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(
            "/api/v1/uploads/batch/", many, "application/json", headers=bearer
        )
    assert answer.status_code == 201
    assert Run.objects.count() == RUNS

    asked = [
        *PAGES,
        *(f"/api/v1/{each}" for each in (*(f"{name}/" for name in LISTS), *FILTERS)),
    ]
    before = gate.measure({}, asked)
    connection.cursor().execute("ANALYZE")
    after = gate.measure({}, asked)
    # Small tables hold dead rows of other tests: a page of them more is not what is looked for.
    slower = [
        f"{each}: {before[each]}, then {after[each]}"
        for each in asked
        if after[each].grown(before[each])
        and before[each].buffers > 1.1 * after[each].buffers
    ]
    assert slower == [], "\n".join(slower)
