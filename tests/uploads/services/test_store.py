"""What two uploads create at the same time: the later one sees it, and decides again."""

import threading
import time

import psycopg
import pytest
from django.db import connection

from runs.access.services import projects
from runs.models import Campaign, Measurement, Metric, Run, Scenario
from runs.shared.errors import Refused
from tests.history_points import repeats, store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other_upload():
    """A connection of another process, in a transaction."""
    with psycopg.connect(**connection.get_connection_params()) as other_connection:
        yield other_connection


def copied(other_upload, row, table):
    """Insert the row, which is not stored, by the other upload."""
    fields = [field for field in row._meta.concrete_fields if field.column != "id"]
    names = ", ".join(f'"{field.column}"' for field in fields)
    values = [
        field.get_db_prep_save(field.pre_save(row, add=True), connection)
        for field in fields
    ]
    marks = ", ".join(["%s"] * len(fields))
    other_upload.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


def stored_behind(other_upload, *runs):
    """The codes of the faults of an upload that waits until the other one has committed."""
    codes = []

    def upload():
        try:
            store(*runs)
        except Refused as refused:
            codes.extend(fault.code for fault in refused.faults)
        finally:
            connection.close()

    thread = threading.Thread(target=upload)
    thread.start()
    wait_until_one_waits_for(other_upload)
    other_upload.commit()
    thread.join(60)
    assert not thread.is_alive()
    return codes


def wait_until_one_waits_for(other_upload):
    """Until another connection waits for the end of this one's transaction."""
    deadline = time.monotonic() + 30
    with psycopg.connect(
        **connection.get_connection_params(), autocommit=True
    ) as looking:
        while time.monotonic() < deadline:
            waiting = looking.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))",
                [other_upload.info.backend_pid],
            ).fetchone()
            if waiting and waiting[0]:
                return
            time.sleep(0.05)
    raise AssertionError("nobody waits")


@pytest.mark.parametrize(
    ("unit", "codes", "values"),
    [
        ("ms", [], [2.0]),
        ("us", [], [2000.0]),
        ("MB", ["metric_conflict"], []),
    ],
)
def test_a_metric_that_another_upload_creates_first_has_its_unit(
    other_upload, unit, codes, values
):
    metric = Metric(
        name="latency",
        project=projects.default(),
        unit=unit,
        direction="lower",
        title="latency",
    )
    copied(other_upload, metric, "runs_metric")

    assert stored_behind(other_upload, repeats(latency=[2])) == codes
    assert list(Measurement.objects.values_list("value", flat=True)) == values
    assert Metric.objects.get(name="latency").unit == unit


@pytest.mark.parametrize(
    ("scenario", "codes", "number"),
    [("tpcb-like", [], 1), ("select-only", ["scenario_differs"], 0)],
)
def test_a_campaign_that_another_upload_creates_first_has_its_scenario(
    other_upload, scenario, codes, number
):
    scenarios = {
        slug: Scenario.objects.get_or_create(slug=slug, defaults={"title": slug})[0]
        for slug in ("tpcb-like", "select-only")
    }
    campaign = Campaign(
        slug="nightly",
        title="nightly",
        project=projects.default(),
        origin="uploaded",
        state=Campaign.State.FINISHED,
        scenario=scenarios[scenario],
        repeats=1,
    )
    copied(other_upload, campaign, "runs_campaign")

    assert stored_behind(other_upload, repeats(tps=[1000])) == codes
    assert Run.objects.count() == number
    assert Campaign.objects.get(slug="nightly").scenario.slug == scenario
