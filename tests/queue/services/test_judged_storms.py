"""How a storm is judged: whatever must not be is seen, and what may be is not."""

import random
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from benchmarks import own_queue, storm_judgement
from benchmarks.processes import Span
from runs.models import Campaign, Lease, Run, Server
from runs.queue.services import leases, transitions
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def rack():
    server = factories.server("rack", versions=["16.14"])
    Lease.objects.create(server=server)
    return server


@pytest.fixture
def campaign(rack):
    return factories.campaign(
        on=rack, factors={"version": ["16.14"], "clients": [1]}, repeats=2
    )


def end(run, state=Run.State.FAILED):
    claim = leases.claim(server_id=run.server_id, holder="worker")
    assert claim.run_id == run.pk
    transitions.transition(run_id=run.pk, to=state, code="x", token=claim.token)


def by_hand(campaign, _chance):
    """Somebody else cancels a run."""
    transitions.cancel(run=campaign.runs.first(), by="nobody")


@pytest.mark.parametrize(
    ("cancel", "is_wrong"),
    [
        (lambda _campaign, chance: own_queue.cancel_run(chance), False),
        (lambda _campaign, chance: own_queue.cancel_campaign(chance), False),
        (by_hand, True),
    ],
    ids=["a-run", "a-campaign", "by-nobody"],
)
def test_only_what_the_storm_has_cancelled_may_be(
    campaign, monkeypatch, cancel, is_wrong
):
    monkeypatch.setattr(own_queue, "AT_WORK", 0.0)
    cancel(campaign, random.Random(1))
    assert campaign.runs.filter(state=Run.State.CANCELLED).exists()
    assert bool(storm_judgement.wrongly_cancelled()) == is_wrong


def test_a_run_that_waits_again_after_its_cancel_is_seen(campaign, rack):
    run = campaign.runs.order_by("pk").first()
    claim = leases.claim(server_id=rack.pk, holder="worker")
    transitions.cancel(run=run, by=f"{own_queue.STORM}run {run.pk}")
    assert storm_judgement.wrongly_cancelled() == []
    transitions.transition(
        run_id=claim.run_id, to=Run.State.QUEUED, code="x", token=claim.token
    )
    [wrong] = storm_judgement.wrongly_cancelled()
    assert "waited again" in wrong


def test_a_campaign_whose_state_does_not_follow_from_its_runs_is_seen(campaign):
    for run in campaign.runs.order_by("pk"):
        end(run)
    assert storm_judgement.inconsistent_campaigns() == []
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CANCELLED)
    assert len(storm_judgement.inconsistent_campaigns()) == 1


def test_a_campaign_of_which_one_run_was_cancelled_is_finished_or_incomplete(campaign):
    first, second = campaign.runs.order_by("pk")
    transitions.cancel(run=first, by="storm")
    end(second)
    assert Campaign.objects.get().state == Campaign.State.INCOMPLETE
    assert storm_judgement.inconsistent_campaigns() == []


def test_two_runs_on_one_machine_are_seen_by_their_records(campaign, rack):
    first, second = campaign.runs.order_by("pk")
    end(first)
    end(second)
    overlapping = partial(storm_judgement.overlapping_stays, {rack.pk: 0})
    assert overlapping() == []
    ended = first.events.get(to_state=Run.State.FAILED)
    type(ended).objects.filter(pk=ended.pk).update(
        at=timezone.now() + timedelta(minutes=1)
    )
    [wrong] = overlapping()
    assert f"runs {first.pk} and {second.pk}" in wrong


def test_runs_of_one_round_have_their_machine_together_by_one_claim_only(rack):
    campaign = factories.campaign(
        on=rack, factors={"version": ["16.14"], "clients": [1, 2]}, repeats=1
    )
    Campaign.objects.update(slice_seconds=1)
    claim = leases.claim(server_id=rack.pk, holder="worker")
    first, second = campaign.runs.filter(state=Run.State.CLAIMED).order_by("pk")
    overlapping = partial(storm_judgement.overlapping_stays, {rack.pk: 0})
    for run in (first, second):
        transitions.transition(
            run_id=run.pk, to=Run.State.FAILED, code="x", token=claim.token
        )
    assert overlapping() == []
    claimed = second.events.get(to_state=Run.State.CLAIMED)
    ended = first.events.get(to_state=Run.State.FAILED)
    later = timezone.now() + timedelta(minutes=1)
    events = type(ended).objects
    events.filter(pk=claimed.pk).update(at=later)
    events.filter(pk=ended.pk).update(at=later + timedelta(minutes=1))
    second_end = second.events.get(to_state=Run.State.FAILED)
    events.filter(pk=second_end.pk).update(at=later + timedelta(minutes=1))
    [wrong] = overlapping()
    assert f"runs {first.pk} and {second.pk}" in wrong


class Seen:
    """Loads with these spans."""

    def __init__(self, *spans):
        self.spans = [Span(*span) for span in spans]


def test_loads_on_one_machine_overlap_when_both_were_seen_at_one_moment():
    base, twin = Seen(("1-1", 0.0, 3.0)), Seen(("2-1", 3.5, 5.0))
    assert storm_judgement.overlapping_loads([base, twin]) == []
    twin.spans.append(Span("3-1", 2.5, 3.2))
    [wrong] = storm_judgement.overlapping_loads([base, twin])
    assert "1-1 and 3-1" in wrong


def test_slices_of_one_run_overlap_when_both_were_seen_at_one_moment():
    turns = Seen(("1-1", 0.0, 1.0, ("1",)), ("1-1", 1.2, 2.0, ("2",)))
    assert storm_judgement.overlapping_loads([turns]) == []
    turns.spans.append(Span("1-1", 1.9, 3.0, ("3",)))
    assert len(storm_judgement.overlapping_loads([turns])) == 1


def test_servers_that_are_held_and_machines_that_are_mixed_up_are_seen(rack):
    shelf = factories.server("shelf")
    Server.objects.exclude(pk=rack.pk).update(host_key="key")
    Server.objects.update(state=Server.State.READY)
    apart = [{rack.pk}, {shelf.pk}]
    assert storm_judgement.still_held() == []
    assert storm_judgement.wrong_machines(apart) == []
    assert len(storm_judgement.wrong_machines([{rack.pk, shelf.pk}])) == 1
    Server.objects.filter(pk=shelf.pk).update(state="refused", problem_code="x")
    assert len(storm_judgement.still_held()) == 1
