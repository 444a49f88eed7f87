"""Runs that are measured in turn are claimed, shown alive, lost and taken over together."""

from datetime import timedelta
from functools import partial

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.execution.watch import Order
from runs.models import Campaign, Lease, Run
from runs.queue.services import leases, transitions
from tests import factories
from tests.at_once import at_once

pytestmark = pytest.mark.django_db
S = Run.State


@pytest.fixture
def server():
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    return server


@pytest.fixture
def campaign(server):
    """Three cells in two rounds."""
    campaign = factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1, 2, 4]}, repeats=2
    )
    Campaign.objects.filter(pk=campaign.pk).update(slice_seconds=1)
    return campaign


def claimed(server):
    return leases.claim(server_id=server.pk, holder="a")


def keys(claim):
    return [claim.run_id, *(led.run_id for led in claim.led)]


def states(campaign, repeat=1):
    return list(
        campaign.runs.filter(repeat=repeat)
        .order_by("pk")
        .values_list("state", flat=True)
    )


def enter(claim, *path):
    for to in path:
        assert transitions.transition(
            run_id=claim.run_id, to=to, code=to, token=claim.token
        )


TO_THE_END = (S.PREPARING, S.MEASURING, S.COLLECTING, S.FINISHED)


def test_all_waiting_runs_of_a_round_are_claimed_with_one_lease(server, campaign):
    claim = claimed(server)

    of_round = campaign.runs.filter(repeat=1).order_by("pk")
    assert sorted(keys(claim)) == [run.pk for run in of_round]
    assert states(campaign) == [S.CLAIMED] * 3
    assert states(campaign, repeat=2) == [S.QUEUED] * 3
    assert {led.token for led in claim.led} == {claim.token}
    assert Lease.objects.get(server=server).run_id == claim.run_id
    assert claimed(server) is None


def test_a_run_that_was_cancelled_before_is_left_out(server, campaign):
    first, second, _third = campaign.runs.filter(repeat=1).order_by("pk")
    transitions.cancel(run=second)

    claim = claimed(server)

    assert claim.run_id == first.pk
    assert second.pk not in keys(claim)
    assert len(claim.led) == 1


def test_each_has_the_lease_with_its_token_alone(server, campaign):
    claim = claimed(server)

    with transaction.atomic():
        for key in keys(claim):
            assert transitions.holds(key, claim.token)
            assert not transitions.holds(key, claim.token + 1)


def test_signs_of_life_are_shown_and_orders_heard_by_each(server, campaign):
    claim = claimed(server)
    Lease.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    cancelled = claim.led[1].run_id
    transitions.cancel(run=Run.objects.get(pk=cancelled))

    heard = leases.pulse([(key, claim.token) for key in keys(claim)])

    expected: dict[int, Order] = dict.fromkeys(keys(claim), "go_on") | {
        cancelled: "cancel"
    }
    assert {key: order for (key, _token), order in heard.items()} == expected
    assert Lease.objects.get().heartbeat_at > timezone.now() - timedelta(minutes=1)
    assert leases.pulse([(claim.led[0].run_id, claim.token + 1)]) == {
        (claim.led[0].run_id, claim.token + 1): "detach"
    }


def test_a_silent_worker_loses_all_of_them_and_the_next_one_gets_all(server, campaign):
    claim = claimed(server)
    enter(claim.led[0], *TO_THE_END)
    Lease.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))

    assert leases.give_up_the_silent() == [claim.run_id]

    assert sorted(states(campaign)) == sorted([S.FINISHED, S.LOST, S.LOST])
    assert Lease.objects.get().run_id is None
    again = claimed(server)
    assert sorted(keys(again)) == sorted({*keys(claim)} - {claim.led[0].run_id})
    assert again.taken_over
    assert [led.taken_over for led in again.led] == [True]
    assert again.token > claim.token


def test_the_lease_goes_on_to_the_others_and_ends_with_the_last(server, campaign):
    claim = claimed(server)

    enter(claim, *TO_THE_END)

    lease = Lease.objects.get()
    assert lease.run_id == claim.led[0].run_id
    assert lease.token == claim.token
    assert lease.heartbeat_at is not None
    for led in claim.led:
        with transaction.atomic():
            assert transitions.holds(led.run_id, led.token)
        assert claimed(server) is None
        enter(led, *TO_THE_END)
    assert Lease.objects.get().run_id is None
    assert sorted(keys(claimed(server))) == [
        run.pk for run in campaign.runs.filter(repeat=2).order_by("pk")
    ]


def test_a_run_that_is_queued_again_is_claimed_alone(server, campaign):
    claim = claimed(server)
    enter(claim.led[0], S.FAILED)
    for one in (claim, claim.led[1]):
        enter(one, *TO_THE_END)
    Run.objects.filter(repeat=2).update(state=S.CANCELLED)
    assert transitions.transition(
        run_id=claim.led[0].run_id, to=S.QUEUED, code="queued_again"
    )

    again = claimed(server)

    assert keys(again) == [claim.led[0].run_id]
    assert Run.objects.get(pk=again.run_id).led_by_id is None


def test_a_campaign_of_whole_runs_is_claimed_run_by_run(server, campaign):
    Campaign.objects.update(slice_seconds=None)

    assert claimed(server).led == ()


def test_the_database_allows_one_run_a_server_that_nobody_leads(server, campaign):
    claimed(server)
    run = campaign.runs.filter(repeat=2).first()

    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state=S.CLAIMED)


@pytest.mark.django_db(transaction=True)
def test_runs_that_end_at_the_same_moment_all_end(server, campaign):
    claim = claimed(server)
    claims = (claim, *claim.led)
    for one in claims:
        enter(one, S.PREPARING, S.MEASURING, S.COLLECTING)

    at_once([partial(enter, one, S.FINISHED) for one in claims])

    assert states(campaign) == [S.FINISHED] * 3
    assert Lease.objects.get().run_id is None
