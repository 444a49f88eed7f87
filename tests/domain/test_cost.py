"""No request grows with the database: the small form of `benchmarks.cost`."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks import cost, cost_database
from runs.models import Run
from runs.services.campaigns import scenarios
from runs.services.runs import leases

pytestmark = pytest.mark.django_db


def test_every_list_and_filter_of_the_api_has_its_cost_measured():
    assert cost.missing() == []


def test_no_request_reads_more_in_a_database_of_ten_times_the_size(settings):
    settings.RATE_ANONYMOUS = 0
    scenarios.sync()
    cost_database.grow(20)
    small = cost.measure()
    cost_database.grow(200)

    grown = cost.grown(small, cost.measure())
    assert grown == [], "\n".join(grown)

    # A claim, while many runs wait and few of millions of events say that one was passed over.
    Run.objects.filter(campaign__slug="lab-00001").update(state="queued")
    connection.cursor().execute("ANALYZE runs_run, runs_runevent")
    with CaptureQueriesContext(connection) as captured:
        assert leases.standing(loaded=set()) == []
    assert sum(cost.buffers(each["sql"]) for each in captured.captured_queries) < 50

    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX run_by_major, measurement_by_metric")
    slow = [f"/api/v1/measurements/?{each}" for each in ("version=9.4", "metric=rare")]
    told = cost.grown({each: small[each] for each in slow}, cost.measure(slow))
    assert [each.partition(": ")[0] for each in told] == slow
