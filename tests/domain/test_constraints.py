"""The database refuses states that no model knows, even from raw SQL."""

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, models, transaction
from django.test.utils import CaptureQueriesContext

from benchmarks import cost, cost_database
from runs.models import Run
from runs.services.campaigns import scenarios
from runs.services.runs import leases
from tests import factories
from tests.each import check_each

pytestmark = pytest.mark.django_db

STATES = [
    (model, field.name)
    for model in apps.get_app_config("runs").get_models()
    for field in model._meta.fields
    if isinstance(field, models.CharField)
    and (field.name in {"state", "decision", "origin"} or field.name.endswith("_state"))
]


def test_every_column_of_states_is_constrained():
    def check(column: tuple[type[models.Model], str]) -> None:
        model, name = column
        checks = [
            each for each in model._meta.constraints if isinstance(each, models.CheckConstraint)
        ]
        assert any(f"{name}__in" in str(each.condition) for each in checks)

    assert len(STATES) >= 10
    check_each(STATES, check)


def test_raw_sql_cannot_write_an_unknown_state():
    run = factories.campaign("one").runs.first()

    with pytest.raises(IntegrityError, match="run_state_is_known"), transaction.atomic():
        connection.cursor().execute("UPDATE runs_run SET state = 'done' WHERE id = %s", [run.pk])

    assert Run.objects.get(pk=run.pk).state == Run.State.QUEUED


@pytest.mark.django_db
def test_the_database_has_every_constraint_and_index_that_the_models_name():
    """A migration can drop one that Django takes for another: models and migrations then agree."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint UNION SELECT indexname FROM pg_indexes"
            " WHERE schemaname = current_schema()"
        )
        there = {name for (name,) in cursor.fetchall()}
    named = {
        each.name
        for model in apps.get_app_config("runs").get_models()
        for each in (*model._meta.constraints, *model._meta.indexes)
    }

    assert len(named) > 30
    assert sorted(named - there) == []


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
        cursor.execute("DROP INDEX run_by_major, run_of_nine, measurement_by_metric")
    slow = [f"/api/v1/measurements/?{each}" for each in ("version=9.4", "version=9", "metric=rare")]
    told = cost.grown({each: small[each] for each in slow}, cost.measure(slow))
    assert [each.partition(": ")[0] for each in told] == slow
