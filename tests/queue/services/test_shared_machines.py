"""Two registrations of one machine: its runs take turns, whatever they were queued for."""

import threading
from dataclasses import replace
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from runs.execution.errors import MachineTaken
from runs.execution.machine.identity import Identity
from runs.models import Build, Campaign, Lease, Machine, Run, Server
from runs.queue.services import leases, transitions
from runs.servers.selectors.shared_machines import alike, twins_of
from runs.servers.services import shared_machines
from runs.shared.errors import ServiceError
from tests import factories
from tests.at_once import at_once

RACK = Identity(machine_id="a" * 32, boot_id="boot-1")
# One more than the pool of a worker may have ready at once for two servers.
WORKERS = 4


def registered(name, identity=RACK):
    server = factories.server(name, versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    shared_machines.keep(server_id=server.pk, identity=identity)
    server.refresh_from_db()
    return server


@pytest.fixture
def pair(db):
    """Two registrations of one machine."""
    servers = [registered("rack"), registered("rack-again")]
    return [Server.objects.get(pk=server.pk) for server in servers]


def queued(server, repeats=1, generator=None):
    campaign = factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=repeats
    )
    if generator is not None:
        campaign.runs.update(plan={"generators": [{"server_id": generator.pk}]})
    return campaign


def claim(server):
    return leases.claim(server_id=server.pk, holder="worker")


def end(claimed, state=Run.State.FAILED):
    transitions.transition(
        run_id=claimed.run_id, to=state, code="x", token=claimed.token
    )


def test_while_one_registration_measures_nothing_starts_on_the_other(pair):
    rack, again = pair
    queued(rack)
    queued(again)
    first = claim(rack)
    assert first is not None
    assert claim(again) is None
    end(first)
    assert claim(again) is not None


def test_the_run_that_is_ahead_in_the_queue_has_its_turn_first(pair, queued_messages):
    rack, again = pair
    older, newer = queued(rack), queued(again)
    assert claim(again) is None
    assert queued_messages() == {rack.pk, again.pk}
    newer.priority = 5
    newer.save()
    assert claim(rack) is None
    assert claim(again).run_id == newer.runs.get().pk
    assert older.runs.get().state == Run.State.QUEUED


@pytest.fixture
def queued_messages(monkeypatch, django_capture_on_commit_callbacks):
    """The servers that the last claim has woken a worker for."""
    woken = set()
    monkeypatch.setattr(
        "runs.celery_messages._send", lambda _task, pk, **_: woken.add(pk)
    )
    plain_claim = leases.claim

    def claim_and_send(**arguments):
        woken.clear()
        with django_capture_on_commit_callbacks(execute=True):
            return plain_claim(**arguments)

    monkeypatch.setattr(leases, "claim", claim_and_send)
    return lambda: woken


def test_a_load_generator_that_is_the_same_machine_waits_too(pair):
    rack, again = pair
    database = registered("other", Identity("b" * 32, "boot-2"))
    queued(database, generator=again)
    queued(rack)
    first = claim(rack)
    assert claim(database) is None
    end(first)
    assert claim(database) is not None
    assert claim(rack) is None


def test_a_run_whose_database_and_generator_are_one_machine_starts(pair):
    rack, again = pair
    queued(rack, generator=again)
    claimed = claim(rack)
    assert set(
        Lease.objects.filter(run=claimed.run_id).values_list("server", flat=True)
    ) == {
        rack.pk,
        again.pk,
    }


def test_what_may_still_run_under_one_name_holds_up_the_other(pair):
    rack, again = pair
    queued(rack)
    queued(again)
    end(claim(rack), Run.State.LOST)
    assert claim(again) is None
    assert leases.idle_lease(again.pk) is None


def test_a_clean_up_a_build_and_a_trial_of_one_hold_up_the_other(pair):
    rack, again = pair
    queued(again)
    Server.objects.filter(pk=rack.pk).update(needs_sweep=True)
    assert claim(again) is None
    Server.objects.filter(pk=rack.pk).update(needs_sweep=False)
    build = Build.objects.create(
        server=rack, commit="c" * 40, state=Build.State.BUILDING
    )
    assert claim(again) is None
    build.delete()
    assert claim(again) is not None
    assert leases.idle_lease(rack.pk) is None


def test_one_that_is_out_of_reach_does_not_hold_up_the_other(pair):
    rack, again = pair
    queued(rack)
    queued(again)
    Server.objects.filter(pk=rack.pk).update(
        state=Server.State.UNREACHABLE, needs_sweep=True
    )
    assert claim(again) is not None


def test_a_container_that_a_person_sets_apart_measures_at_the_same_time(pair):
    rack, again = pair
    queued(rack)
    queued(again)
    shared_machines.set_apart(server=again)
    again.refresh_from_db()
    assert list(twins_of(again)) == []
    assert list(alike(again)) == [rack]
    assert claim(rack)
    assert claim(again)
    shared_machines.keep(server_id=again.pk, identity=replace(RACK, fences=(1,)))
    assert Machine.objects.count() == 0
    with pytest.raises(ServiceError, match="only registration"):
        shared_machines.set_apart(server=again)
    assert list(twins_of(shared_machines.join(server=again))) == [rack]


def test_a_machine_that_moved_away_is_alone_again(pair):
    rack, again = pair
    shared_machines.keep(server_id=again.pk, identity=Identity("b" * 32, "boot-2"))
    assert not Server.objects.exclude(machine=None).exists()
    assert Machine.objects.count() == 0
    codes = [
        list(server.events.values_list("code", flat=True)) for server in (rack, again)
    ]
    assert codes == [[], ["machine_alone", "machine_shared"]]


def test_a_restart_that_only_one_registration_has_seen_parts_nothing(pair):
    rack, again = pair
    for identity in (replace(RACK, boot_id="boot-2"), Identity("", "boot-3")):
        shared_machines.keep(server_id=rack.pk, identity=identity)
        rack.refresh_from_db()
        assert list(twins_of(rack)) == [again]


def test_a_copy_is_told_from_a_restart_by_the_next_looks(pair):
    rack, again = pair
    copied = replace(RACK, boot_id="boot-2")
    shared_machines.keep(server_id=again.pk, identity=copied)
    again.refresh_from_db()
    assert shared_machines.find_doubtful(again) == [rack]
    shared_machines.keep(server_id=rack.pk, identity=RACK)
    rack.refresh_from_db()
    shared_machines.keep(server_id=again.pk, identity=copied)
    again.refresh_from_db()
    assert shared_machines.find_doubtful(again) == []
    assert list(twins_of(again)) == []
    assert list(alike(again)) == [rack]


def test_a_run_that_finds_its_machine_taken_under_another_name_waits(db):
    rack, other = registered("rack"), registered("other", Identity("b" * 32, "boot-2"))
    queued(rack)
    queued(other)
    taken, late = claim(rack), claim(other)
    shared_machines.keep(server_id=other.pk, identity=RACK)
    with pytest.raises(MachineTaken, match=f"measures run {taken.run_id}"):
        shared_machines.require_free(Run.objects.get(pk=late.run_id), other.pk)


def test_a_base_directory_of_the_same_machine_belongs_to_one_registration(pair):
    rack, again = pair
    there = replace(RACK, fences=(rack.pk,))
    assert shared_machines.has_its_folder(again, there) == rack
    assert shared_machines.has_its_folder(rack, there) is None
    elsewhere = replace(there, boot_id="boot-2")
    assert shared_machines.has_its_folder(again, elsewhere) is None


@pytest.mark.django_db(transaction=True)
def test_no_two_runs_of_one_machine_overlap_however_many_workers_claim():
    """As `overlap.py` asks an instance: pairs of runs of two servers that overlap in time."""
    servers = [registered("rack"), registered("rack-again")]
    # One after the other, so that the next in the queue's order is always of the other one.
    for _number in range(10):
        for server in servers:
            queued(server)

    def work(number):
        server = servers[number % 2]
        while Run.objects.filter(state=Run.State.QUEUED).exists():
            claimed = leases.claim(server_id=server.pk, holder=str(number))
            if claimed is None:
                at_rest.wait(0.01)
                continue
            for state in (
                Run.State.PREPARING,
                Run.State.MEASURING,
                Run.State.COLLECTING,
            ):
                transitions.transition(
                    run_id=claimed.run_id, to=state, code="x", token=claimed.token
                )
            end(claimed, Run.State.FINISHED)
        connection.close()

    at_rest = threading.Event()
    at_once([partial(work, number) for number in range(WORKERS)])
    spans = [
        list(Run.objects.filter(server=server).values_list("started_at", "finished_at"))
        for server in servers
    ]
    assert [len(times) for times in spans] == [10, 10]
    overlapping = [
        (one, other)
        for one in spans[0]
        for other in spans[1]
        if one[0] < other[1] and other[0] < one[1]
    ]
    assert overlapping == []
    assert (
        max(time for times in spans for span in times for time in span) < timezone.now()
    )


def test_a_run_in_turn_does_not_take_its_own_leader_for_a_stranger(pair):
    rack, again = pair
    campaign = factories.campaign(
        on=rack, factors={"version": ["16.14"], "clients": [1, 2]}, repeats=1
    )
    Campaign.objects.filter(pk=campaign.pk).update(slice_seconds=1)
    taken = claim(rack)
    (led,) = taken.led

    for key in (taken.run_id, led.run_id):
        shared_machines.require_free(Run.objects.get(pk=key), rack.pk)
        shared_machines.require_free(Run.objects.get(pk=key), again.pk)
