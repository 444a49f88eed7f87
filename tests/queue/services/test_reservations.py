"""A run of several machines begins in the end, however busy others keep them; nobody is stuck."""

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from runs.campaigns.services import campaigns
from runs.models import Campaign, Instance, Lease, Run, RunEvent, Server
from runs.queue.services import leases, transitions
from runs.servers.services import maintenance
from runs.shared import copies
from tests import factories
from tests.queue.services.test_leases_of_several import lost, make_run, make_server

pytestmark = pytest.mark.django_db

S = Run.State


def make_host():
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    return server


def queued(database, *generators, repeats=1, **fields):
    factors = {"version": ["16.14"], "clients": [1]}
    campaign = factories.campaign(
        on=database, factors=factors, repeats=repeats, **fields
    )
    campaign.runs.update(
        plan={"generators": [{"server_id": each.pk} for each in generators]}
    )
    return campaign


def begun_on(server) -> Run | None:
    """The run that a worker begins when it looks at that server."""
    claim = leases.claim(server_id=server.pk, holder="worker")
    return Run.objects.get(pk=claim.run_id) if claim else None


def end(run) -> None:
    token = Lease.objects.get(run=run, server=run.server_id).token
    assert transitions.transition(run_id=run.pk, to=S.FAILED, code="x", token=token)


def long_ago() -> None:
    """What was noted until now was noted before the patience ended."""
    RunEvent.objects.update(at=timezone.now() - leases.PATIENCE - timedelta(seconds=1))


@pytest.fixture
def database():
    return make_host()


@pytest.fixture
def generator():
    return make_host()


@pytest.fixture
def passed_over(database, generator):
    """A run of both machines that was passed over long ago, for one on the generator."""
    queued(generator)
    first = begun_on(generator)
    waiting = queued(database, generator).runs.get()
    assert begun_on(database) is None
    queued(generator)
    long_ago()
    end(first)
    return waiting


def test_a_run_that_was_passed_over_says_for_what(database, generator):
    queued(generator)
    begun_on(generator)
    run = queued(database, generator).runs.get()
    for _look in range(3):
        assert begun_on(database) is None
    (event,) = run.events.all()
    assert (event.code, generator.name in event.message) == ("passed_over", True)


def test_at_first_others_pass_it(database, generator, passed_over):
    RunEvent.objects.update(at=timezone.now())
    assert begun_on(generator).server_id == generator.pk


def test_after_the_patience_a_younger_run_no_longer_takes_its_generator(
    database, generator, passed_over
):
    assert begun_on(generator) is None
    assert begun_on(database) == passed_over
    end(passed_over)
    assert begun_on(generator).server_id == generator.pk


def test_nor_does_one_that_has_its_database_only(database, passed_over, generator):
    other = make_host()
    queued(database)
    queued(other, database)
    queued(other, generator)
    assert begun_on(other) is None
    assert begun_on(database) == passed_over


def test_a_higher_priority_still_goes_first(generator, passed_over):
    urgent = queued(generator, priority=1).runs.get()
    assert begun_on(generator) == urgent


def test_an_older_run_still_goes_first(database, generator):
    _first, second = queued(generator, repeats=2).runs.order_by("pk")
    first = begun_on(generator)
    queued(database, generator)
    assert begun_on(database) is None
    long_ago()
    end(first)
    assert begun_on(generator) == second


def test_the_campaigns_next_run_has_no_patience_of_its_own(
    database, generator, passed_over
):
    campaign = passed_over.campaign
    cell = passed_over.cell
    following = factories.run(cell, repeat=2, server=database)
    Run.objects.filter(pk=following.pk).update(plan=passed_over.plan, campaign=campaign)
    assert begun_on(database) == passed_over
    end(passed_over)
    assert begun_on(generator).server_id == generator.pk
    assert begun_on(database) is None
    end(Run.objects.get(server=generator, state=S.CLAIMED))
    queued(generator)
    assert begun_on(generator) is None
    assert begun_on(database) == following


@pytest.mark.parametrize(
    "hindrance", ["paused", "maintained", "away", "swept in vain", "lost"]
)
def test_what_could_not_begin_on_free_machines_reserves_nothing(
    database, generator, passed_over, hindrance
):
    third = make_host()
    Run.objects.filter(pk=passed_over.pk).update(
        plan={"generators": [{"server_id": generator.pk}, {"server_id": third.pk}]}
    )
    assert begun_on(generator) is None
    if hindrance == "paused":
        campaigns.pause(campaign=passed_over.campaign)
    elif hindrance == "maintained":
        maintenance.begin(server=third, reason="fan")
    elif hindrance == "away":
        Server.objects.filter(pk=third.pk).update(state=Server.State.UNREACHABLE)
    elif hindrance == "swept in vain":
        later = timezone.now() + timedelta(minutes=1)
        Server.objects.filter(pk=third.pk).update(needs_sweep=True, sweep_after=later)
    else:
        queued(third)
        Run.objects.filter(server=third).update(state=S.LOST)
    assert begun_on(generator).server_id == generator.pk


def test_a_sweep_that_will_soon_be_over_lets_nobody_pass(
    database, generator, passed_over
):
    Server.objects.filter(pk=database.pk).update(needs_sweep=True)
    assert begun_on(generator) is None
    Server.objects.update(needs_sweep=False)
    assert begun_on(database) == passed_over


def test_of_two_that_need_each_others_machines_both_begin(database, generator):
    one, other = (
        queued(database, generator).runs.get(),
        queued(generator, database).runs.get(),
    )
    for each in (one, other):
        leases.note(each)
    long_ago()
    assert begun_on(generator) is None
    assert begun_on(database) == one
    end(one)
    assert begun_on(generator) == other


def test_one_that_waits_behind_a_run_without_hope_is_noted_as_well(database, generator):
    away = make_host()
    Server.objects.filter(pk=away.pk).update(state=Server.State.UNREACHABLE)
    queued(database, away)
    queued(generator)
    begun_on(generator)
    run = queued(database, generator, repeats=2).runs.earliest("pk")
    begun_on(database)
    assert set(RunEvent.objects.values_list("run", flat=True)) >= {run.pk}
    assert RunEvent.objects.filter(code="passed_over").count() == 2


def test_machines_that_are_never_idle_are_had_in_the_end(database, generator):
    """Whatever ends, a younger run of the same server is there to begin at once."""
    running = []
    for server in (database, generator):
        queued(server)
        running.append(begun_on(server))
    waiting = queued(database, generator).runs.get()
    for turn in range(20):
        place = turn % 2
        ended = running[place]
        queued(ended.server)
        if ended.state != S.FAILED:
            end(ended)
            ended.refresh_from_db()
        began = begun_on(ended.server)
        if began == waiting:
            break
        if began is not None:
            running[place] = began
        long_ago()
    assert began == waiting
    assert turn > 1


def test_many_runs_that_wait_for_a_generator_hide_none_that_waits_for_nobody(
    database, generator
):
    maintenance.begin(server=generator, reason="disk")
    queued(database, generator, repeats=leases.MOST_PASSED_OVER + 1)
    alone = queued(database).runs.get()
    assert begun_on(database) == alone


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
def test_an_older_run_of_its_own_campaign_does_not_hide_a_lost_one():
    server = make_host()
    _older, late = queued(server, repeats=2).runs.order_by("pk")
    Run.objects.filter(pk=late.pk).update(state=Run.State.LOST)

    assert begun_on(server) == late


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
    over = make_server(
        maintenance_since=now, maintenance_until=now - timedelta(minutes=1)
    )
    on = make_server(maintenance_since=now, maintenance_until=now + timedelta(hours=1))
    endless = make_server(maintenance_since=now)
    for server in (over, on, endless):
        make_run(server)

    assert leases.claim(server_id=over.pk, holder="a")
    assert leases.claim(server_id=on.pk, holder="a") is None
    assert leases.claim(server_id=endless.pk, holder="a") is None


@pytest.mark.django_db
@pytest.mark.parametrize("is_sure", [True, False])
def test_a_run_that_finds_a_newer_claim_waits_and_who_may_catch_up_does(is_sure):
    database, generator = make_server(), make_server()
    run = make_run(database, generator)
    Lease.objects.update(may_catch_up=is_sure)
    claim = leases.claim(server_id=database.pk, holder="a")

    assert leases.catch_up(claim=claim, seen_token=57, server_id=generator.pk)

    run.refresh_from_db()
    assert (run.state, run.events.last().code) == (Run.State.QUEUED, "lease_behind")
    assert set(Lease.objects.values_list("token", flat=True)) == {
        57 if is_sure else claim.token
    }
    held = Instance.objects.values_list("held_by", "held_at").first()
    assert held == (None if is_sure else ("behind", generator.slug))
    assert not Lease.objects.filter(may_catch_up=True).exists()
    again = leases.claim(server_id=database.pk, holder="a")
    assert (again is not None) is is_sure


@pytest.mark.django_db
def test_a_worker_that_was_given_up_holds_nothing_up():
    database = make_server()
    run = make_run(database)
    claim = leases.claim(server_id=database.pk, holder="a")
    transitions.transition(
        run_id=run.pk, to=Run.State.LOST, code="x", token=claim.token
    )
    assert not leases.catch_up(claim=claim, seen_token=57, server_id=None)
    assert not copies.is_held()


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
        assert transitions.holds(run.pk, claim.token)
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
