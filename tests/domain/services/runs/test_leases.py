"""Leases: one run a server, lost runs first, and silence noticed."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from runs.execution.reporter import Findings
from runs.models import Lease, Run, Server
from runs.services.runs import leases, results, runs, supervision
from runs.services.runs.pulses import Pulses
from tests import factories


def make_server(**fields):
    server = factories.server(versions=["16.14"], **fields)
    Lease.objects.get_or_create(server=server)
    return server


def make_campaign(server, repeats=3):
    return factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=repeats
    )


@pytest.mark.django_db
def test_runs_are_claimed_in_the_order_of_the_queue_and_one_at_a_time():
    server = make_server()
    campaign = make_campaign(server)
    first = leases.claim(server_id=server.pk, holder="a")
    assert first.run_id == campaign.runs.order_by("pk").first().pk
    assert leases.claim(server_id=server.pk, holder="b") is None


@pytest.mark.django_db
def test_a_lost_run_goes_before_the_queue_and_its_taker_knows():
    server = make_server()
    make_campaign(server)
    first = leases.claim(server_id=server.pk, holder="a")
    runs.transition(run_id=first.run_id, to=Run.State.LOST, code="x", token=first.token)
    again = leases.claim(server_id=server.pk, holder="b")
    assert (again.run_id, again.taken_over) == (first.run_id, True)
    assert again.token > first.token


@pytest.mark.django_db
@pytest.mark.parametrize("state", [Server.State.UNREACHABLE, Server.State.REFUSED])
def test_runs_of_a_server_that_is_not_ready_wait(state):
    server = make_server(state=state)
    campaign = make_campaign(server)
    assert leases.claim(server_id=server.pk, holder="a") is None
    assert set(campaign.runs.values_list("state", flat=True)) == {"queued"}


@pytest.mark.django_db
def test_silence_loses_a_run_and_a_sign_of_life_keeps_it(settings):
    settings.HEARTBEAT_TIMEOUT_SECONDS = 20
    server = make_server()
    make_campaign(server)
    claim = leases.claim(server_id=server.pk, holder="a")
    lease = Lease.objects.filter(server=server)
    lease.update(heartbeat_at=timezone.now() - timedelta(seconds=21))
    assert factories.pulse(claim.run_id, claim.token) == "go_on"
    assert leases.give_up_the_silent() == []
    lease.update(heartbeat_at=timezone.now() - timedelta(seconds=21))
    assert leases.give_up_the_silent() == [claim.run_id]
    assert factories.pulse(claim.run_id, claim.token) == "detach"
    run = Run.objects.get(pk=claim.run_id)
    assert (run.state, run.code) == ("lost", "no_heartbeat")
    assert "a" in run.message


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_gets_the_run():
    server = make_server()
    make_campaign(server)
    barrier, claims = threading.Barrier(8), []

    def work(name):
        barrier.wait()
        claims.append(leases.claim(server_id=server.pk, holder=name))
        connection.close()

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([claim for claim in claims if claim is not None]) == 1
    assert Run.objects.filter(state="claimed").count() == 1


@pytest.mark.django_db
def test_the_supervisor_wakes_only_servers_with_something_to_do(monkeypatch):
    woken = []
    monkeypatch.setattr("runs.dispatch.wake", woken.append)
    make_server()
    waiting, busy = make_server(), make_server()
    make_campaign(waiting)
    make_campaign(busy)
    leases.claim(server_id=busy.pk, holder="a")
    woken.clear()
    supervision.supervise()
    assert woken == [waiting.pk]


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_stores_for_long_is_not_given_up(settings, monkeypatch):
    """Its lease is locked during that; no sign of life waits for it, and storing ends with one."""
    settings.HEARTBEAT_TIMEOUT_SECONDS = 0.5
    server = make_server()
    make_campaign(server)
    claim = leases.claim(server_id=server.pk, holder="a")
    is_stored, has_begun = threading.Event(), threading.Event()

    def slowly(*_given):
        has_begun.set()
        is_stored.wait(timeout=30)

    monkeypatch.setattr(results, "_store", slowly)

    def store():
        results.keep_partial(run_id=claim.run_id, token=claim.token, findings=Findings())
        connection.close()

    thread = threading.Thread(target=store)
    thread.start()
    has_begun.wait(timeout=30)
    time.sleep(0.7)
    assert factories.pulse(claim.run_id, claim.token) == "go_on"
    assert leases.give_up_the_silent() == []
    is_stored.set()
    thread.join(timeout=30)
    assert leases.give_up_the_silent() == []
    assert Run.objects.get(pk=claim.run_id).state == Run.State.CLAIMED


@pytest.mark.django_db
def test_a_run_that_no_longer_asks_for_orders_is_shown_no_more_signs_of_life(settings):
    """The worker lives, and what executes the run hangs."""
    server = make_server()
    make_campaign(server)
    claim = leases.claim(server_id=server.pk, holder="a")
    pulses = Pulses()
    pulses.hold(claim)
    seen = Lease.objects.values_list("heartbeat_at", flat=True).filter(server=server)
    first = seen.get()
    pulses.beat()
    second = seen.get()
    settings.HEARTBEAT_TIMEOUT_SECONDS = 0
    time.sleep(0.01)
    pulses.beat()
    assert first < second == seen.get()
    assert pulses.order_for(claim) == "go_on"
    runs.transition(run_id=claim.run_id, to=Run.State.LOST, code="x", token=claim.token)
    settings.HEARTBEAT_TIMEOUT_SECONDS = 5
    pulses.beat()
    assert pulses.order_for(claim) == "detach"
