"""Stored numbers of runs are those that counting gives, after every kind of change."""

from collections import Counter

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from runs.models import Campaign, Run, RunCount
from runs.models.campaigns import Origin
from runs.selectors.campaigns import campaigns
from runs.services.operations import doctor
from runs.services.runs import counts, runs
from tests import factories
from tests.api.upload_bodies import run as upload

pytestmark = pytest.mark.django_db


def assert_right():
    """What pages show is what is there, before rows are added up and after that."""
    stored = set(RunCount.objects.exclude(campaign=0).values_list("campaign", flat=True))
    for _time in range(2):
        for campaign in {*stored, *Campaign.objects.values_list("pk", flat=True)}:
            counted = Counter(Run.objects.filter(campaign=campaign).values_list("state", flat=True))
            assert campaigns.run_counts([campaign])[campaign] == counted
        here = Run.objects.filter(origin=Origin.EXECUTED, state=Run.State.FINISHED)
        assert campaigns.finished_here() == here.count()
        counts.add_up()
    names = list(RunCount.objects.values_list("campaign", "origin", "state"))
    assert len(names) == len(set(names))
    assert not RunCount.objects.filter(number=0).exists()


def test_every_way_of_changing_runs_is_counted(client, bearer):
    one, other = (
        factories.campaign(slug, factors={"version": ["16.14", "18.4"]}, repeats=3)
        for slug in ("one", "other")
    )
    assert_right()

    bodies = {"runs": [upload(levels={"clients": number + 1}) for number in range(70)]}
    sent = {"content_type": "application/json", "headers": bearer}
    assert client.post("/api/v1/uploads/batch/", bodies, **sent).status_code == 201
    assert client.post("/api/v1/uploads/", upload(status="partial"), **sent).status_code == 201
    assert_right()

    first, *rest = one.runs.order_by("pk")
    assert runs.transition(run_id=first.pk, to=Run.State.CANCELLED, code="cancelled")
    Run.objects.filter(pk__in=[each.pk for each in rest]).update(state=Run.State.FINISHED)
    Run.objects.filter(pk=rest[0].pk).update(message="the state stays")
    assert_right()
    Run.objects.filter(pk=rest[0].pk).update(campaign=other)
    assert_right()

    rest[1].delete()
    Campaign.objects.get(slug="other").runs.all().delete()
    assert_right()
    one.delete()
    assert_right()
    assert campaigns.finished_here() == 0


def test_what_is_rolled_back_is_not_counted():
    campaign = factories.campaign("one", factors={"version": ["16.14"]}, repeats=2)
    with transaction.atomic():
        campaign.runs.update(state=Run.State.LOST)
        transaction.set_rollback(True)
    assert_right()


@pytest.mark.django_db(transaction=True)
def test_a_request_reads_few_rows_however_many_uploads_came():
    campaign = factories.campaign("one", factors={"version": ["16.14"]}, repeats=2)
    run = campaign.runs.first()
    for state in 20 * (Run.State.LOST, Run.State.QUEUED):
        Run.objects.filter(pk=run.pk).update(state=state)
    assert RunCount.objects.filter(campaign=campaign.pk).count() > 20

    counts.add_up()

    assert RunCount.objects.filter(campaign=campaign.pk).count() == 1
    assert campaigns.run_counts([campaign.pk])[campaign.pk] == {"queued": 2}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM runs_runcount WHERE NOT is_sum")
        assert cursor.fetchone()[0] == 0


def test_a_broken_number_is_reported_and_corrected():
    campaign = factories.campaign("one", factors={"version": ["16.14"]}, repeats=3)
    counts.add_up()
    assert counts.drift() == counts.recount() == 0
    RunCount.objects.filter(campaign=campaign.pk).update(number=70)
    assert counts.drift() == 1
    told = next(each for each in doctor.examine() if each.check == "counts")
    assert (told.status, "recount_runs" in told.remedy) == ("warning", True)

    RunCount.objects.filter(campaign=0).delete()
    call_command("recount_runs")
    assert counts.drift() == 0
    assert_right()
