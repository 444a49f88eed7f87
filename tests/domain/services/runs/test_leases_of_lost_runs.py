"""What a lost run blocks, and what does not wait for a lease that somebody has locked."""

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from runs.models import Campaign, Lease, Run, RunEvent, Server
from runs.services.runs import leases, runs
from tests.domain.services.runs.test_leases_of_several import lost, make_run, make_server


def away(server):
    Server.objects.filter(pk=server.pk).update(state=Server.State.UNREACHABLE)


def ready(server):
    Server.objects.filter(pk=server.pk).update(state=Server.State.READY)


def idle(server):
    with transaction.atomic():
        return leases.idle_lease(server.pk)


@contextmanager
def locked(server):
    """Another transaction has the lease of the server; ours does not wait longer than a second."""
    is_locked, may_end = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            list(Lease.objects.select_for_update().filter(server=server))
            is_locked.set()
            may_end.wait(timeout=60)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    is_locked.wait(timeout=60)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '1s'")
        try:
            yield
        finally:
            may_end.set()
            holder.join()
            cursor.execute("RESET lock_timeout")


@pytest.mark.django_db
def test_a_lost_run_that_waits_blocks_another_lost_run_of_its_server():
    database, generator = make_server(), make_server()
    first = lost(make_run(database, generator))
    second = make_run(database)
    Run.objects.filter(pk=second.pk).update(state=Run.State.LOST)
    away(generator)

    assert leases.claim(server_id=database.pk, holder="b") is None

    ready(generator)
    assert leases.claim(server_id=database.pk, holder="b").run_id == first.pk


@pytest.mark.django_db
def test_a_lost_run_that_waits_reserves_nothing():
    database, generator = make_server(), make_server()
    lost(make_run(database, generator))
    away(generator)

    leases.claim(server_id=database.pk, holder="b")

    assert not RunEvent.objects.filter(code=leases.PASSED_OVER).exists()


@pytest.mark.django_db
def test_a_lost_run_goes_before_older_ones_and_those_of_higher_priority():
    server = make_server()
    older, late = make_run(server), make_run(server)
    Campaign.objects.filter(pk=older.campaign_id).update(priority=9)
    Run.objects.filter(pk=late.pk).update(state=Run.State.LOST)

    assert leases.claim(server_id=server.pk, holder="a").run_id == late.pk


@pytest.mark.django_db
def test_a_run_that_needs_a_loaded_machine_is_passed_over_and_the_next_begins():
    database, other, generator = make_server(), make_server(), make_server()
    lost(make_run(other, generator))
    make_run(database, generator)
    alone = make_run(database)

    assert leases.claim(server_id=database.pk, holder="b").run_id == alone.pk


@pytest.mark.django_db
def test_a_server_is_idle_unless_a_run_has_it_or_has_left_a_load_there():
    free, busy, loaded = make_server(), make_server(), make_server()
    make_run(busy)
    leases.claim(server_id=busy.pk, holder="a")
    lost(make_run(loaded))

    assert idle(free).server_id == free.pk
    assert idle(busy) is None
    assert idle(loaded) is None


@pytest.mark.django_db
def test_a_server_that_is_to_be_swept_or_is_maintained_is_idle_too():
    server = make_server(needs_sweep=True, maintenance_since=timezone.now())

    assert idle(server).server_id == server.pk


@pytest.mark.django_db
def test_a_run_begins_when_the_maintenance_of_its_server_is_over():
    now = timezone.now()
    over = make_server(maintenance_since=now, maintenance_until=now - timedelta(minutes=1))
    on = make_server(maintenance_since=now, maintenance_until=now + timedelta(hours=1))
    endless = make_server(maintenance_since=now)
    for server in (over, on, endless):
        make_run(server)

    assert leases.claim(server_id=over.pk, holder="a")
    assert leases.claim(server_id=on.pk, holder="a") is None
    assert leases.claim(server_id=endless.pk, holder="a") is None


@pytest.mark.django_db
def test_catching_up_loses_the_run_and_raises_the_tokens_of_all_its_servers():
    database, generator = make_server(), make_server()
    run = make_run(database, generator)
    claim = leases.claim(server_id=database.pk, holder="a")

    assert not leases.catch_up(run_id=run.pk, token=claim.token, seen=claim.token)
    assert leases.catch_up(run_id=run.pk, token=claim.token, seen=57)

    run.refresh_from_db()
    assert (run.state, run.events.last().code) == (Run.State.LOST, "lease_behind")
    assert set(Lease.objects.values_list("token", flat=True)) == {57}


@pytest.mark.django_db(transaction=True)
def test_a_claim_does_not_wait_for_who_has_the_lease_locked():
    server = make_server()
    make_run(server)
    with locked(server):
        assert leases.claim(server_id=server.pk, holder="a") is None
    assert leases.claim(server_id=server.pk, holder="a")


def longest_idle() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_the_locks_of_a_frozen_worker_end():
    server = make_server()
    run = make_run(server)
    with transaction.atomic():
        assert leases.idle_lease(server.pk)
        assert longest_idle() == "10min"
    with transaction.atomic():
        claim = leases.claim(server_id=server.pk, holder="a")
        assert longest_idle() == "30s"
    with transaction.atomic():
        assert runs.holds(run.pk, claim.token)
        assert longest_idle() == "30s"
    assert longest_idle() == "0"


@pytest.mark.django_db(transaction=True)
def test_giving_up_does_not_wait_for_a_worker_that_stores(settings):
    settings.HEARTBEAT_TIMEOUT_SECONDS = 20
    server = make_server()
    run = make_run(server)
    leases.claim(server_id=server.pk, holder="a")
    Lease.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=60))
    with locked(server):
        assert leases.give_up_the_silent() == []
    assert leases.give_up_the_silent() == [run.pk]
