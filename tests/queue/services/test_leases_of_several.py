"""Runs whose load comes from other machines: all their servers are theirs, or none."""

from functools import partial

import pytest

from runs.models import Lease, Run, Server
from runs.queue.services import leases, supervision, transitions
from runs.servers.services import maintenance
from runs.workloads.services.topologies import topology_of
from tests import factories
from tests.at_once import at_once


def make_server(**fields):
    server = factories.server(versions=["16.14"], **fields)
    Lease.objects.get_or_create(server=server)
    return server


def make_run(database, *generators):
    campaign = factories.campaign(
        on=database, factors={"version": ["16.14"], "clients": [1]}, repeats=1
    )
    if generators:
        campaign.topology = topology_of(server=database, generators=generators)
        campaign.save(update_fields=["topology"])
    run = campaign.runs.get()
    run.plan = {"generators": [{"server_id": each.pk} for each in generators]}
    run.save(update_fields=["plan"])
    return run


def held_by(run):
    return set(Lease.objects.filter(run=run).values_list("server_id", flat=True))


@pytest.mark.django_db
def test_a_run_takes_all_its_servers_with_one_token():
    database, one, two = make_server(), make_server(), make_server()
    Lease.objects.filter(server=two).update(token=41)
    run = make_run(database, one, two)
    claim = leases.claim(server_id=database.pk, holder="a")
    assert held_by(run) == {database.pk, one.pk, two.pk}
    assert set(Lease.objects.values_list("token", flat=True)) == {claim.token} == {42}


@pytest.mark.django_db
def test_with_a_generator_busy_none_is_taken_and_others_go_on():
    database, other, generator = make_server(), make_server(), make_server()
    make_run(other, generator)
    assert leases.claim(server_id=other.pk, holder="a")
    waiting, alone = make_run(database, generator), make_run(database)
    claim = leases.claim(server_id=database.pk, holder="b")
    assert claim.run_id == alone.pk
    assert held_by(waiting) == set()


@pytest.mark.django_db
def test_a_server_that_generates_load_begins_no_run_of_its_own():
    database, generator = make_server(), make_server()
    make_run(database, generator)
    make_run(generator)
    assert leases.claim(server_id=database.pk, holder="a")
    assert leases.claim(server_id=generator.pk, holder="b") is None


@pytest.mark.django_db
def test_the_end_of_a_run_frees_all_its_servers():
    database, generator = make_server(), make_server()
    run = make_run(database, generator)
    claim = leases.claim(server_id=database.pk, holder="a")
    transitions.transition(
        run_id=run.pk, to=Run.State.FAILED, code="x", token=claim.token
    )
    assert held_by(run) == set()


@pytest.mark.django_db
def test_one_sign_of_life_speaks_for_all_the_servers(settings):
    settings.HEARTBEAT_TIMEOUT_SECONDS = 20
    database, generator = make_server(), make_server()
    run = make_run(database, generator)
    claim = leases.claim(server_id=database.pk, holder="a")
    Lease.objects.update(heartbeat_at="2020-01-01T00:00:00Z")
    assert factories.pulse(run.pk, claim.token) == "go_on"
    assert leases.give_up_the_silent() == []
    Lease.objects.update(heartbeat_at="2020-01-01T00:00:00Z")
    assert leases.give_up_the_silent() == [run.pk]


@pytest.mark.django_db
def test_a_generator_that_is_not_ready_lets_the_run_wait():
    database = make_server()
    generator = make_server(state=Server.State.UNREACHABLE)
    make_run(database, generator)
    assert leases.claim(server_id=database.pk, holder="a") is None


@pytest.mark.django_db(transaction=True)
def test_two_that_want_each_others_servers_end_with_one_of_them():
    one, two = make_server(), make_server()
    make_run(one, two)
    make_run(two, one)
    claims = []

    def work(server_id):
        claims.append(leases.claim(server_id=server_id, holder=str(server_id)))

    at_once([partial(work, each.pk) for each in (one, two)])
    assert len(claims) == 2
    assert len([claim for claim in claims if claim]) <= 1
    # Where each found the other's locked, both went home and the beat wakes them again.
    claims += [leases.claim(server_id=each.pk, holder="again") for each in (one, two)]
    [taken] = [claim for claim in claims if claim]
    assert set(Lease.objects.values_list("run_id", flat=True)) == {taken.run_id}


def lost(run):
    """The run of the first machine has lost its worker."""
    claim = leases.claim(server_id=run.server_id, holder="a")
    transitions.transition(
        run_id=run.pk, to=Run.State.LOST, code="x", token=claim.token
    )
    return run


@pytest.mark.django_db
def test_nothing_new_begins_where_a_lost_run_may_still_put_load_on():
    database, generator, third = make_server(), make_server(), make_server()
    run = lost(make_run(database, generator))
    make_run(generator)
    make_run(third, generator)
    assert leases.claim(server_id=generator.pk, holder="b") is None
    assert leases.claim(server_id=third.pk, holder="c") is None
    assert leases.claim(server_id=database.pk, holder="d").run_id == run.pk


@pytest.mark.django_db
def test_nothing_new_begins_beside_a_lost_run_that_waits_for_its_generator():
    database, generator = make_server(), make_server()
    run = lost(make_run(database, generator))
    make_run(database)
    Server.objects.filter(pk=generator.pk).update(state=Server.State.UNREACHABLE)
    assert leases.claim(server_id=database.pk, holder="b") is None
    Server.objects.filter(pk=generator.pk).update(state=Server.State.READY)
    assert leases.claim(server_id=database.pk, holder="b").run_id == run.pk


@pytest.mark.django_db
def test_a_run_does_not_begin_while_its_generator_is_maintained_but_a_lost_one_goes_on():
    database, generator = make_server(), make_server()
    run = make_run(database, generator)
    maintenance.begin(server=generator, reason="fan")
    assert leases.claim(server_id=database.pk, holder="a") is None
    maintenance.end(server=generator)
    lost(run)
    maintenance.begin(server=generator, reason="fan")
    assert leases.claim(server_id=database.pk, holder="b").run_id == run.pk


@pytest.mark.django_db
def test_a_lost_run_whose_generator_is_away_can_be_cancelled_and_all_its_machines_are_swept():
    database, generator = make_server(), make_server()
    run = lost(make_run(database, generator))
    Server.objects.filter(pk=generator.pk).update(state=Server.State.UNREACHABLE)
    assert transitions.cancel(run=run).state == Run.State.CANCELLED
    assert set(Server.objects.values_list("needs_sweep", flat=True)) == {True}


@pytest.mark.django_db
def test_a_generator_that_is_away_is_looked_at_again_while_a_run_waits_for_it():
    database, generator, _unneeded = make_server(), make_server(), make_server()
    make_run(database, generator)
    Server.objects.exclude(pk=database.pk).update(state=Server.State.UNREACHABLE)
    assert supervision._servers_with_work() == {database.pk, generator.pk}


@pytest.mark.django_db
def test_however_many_campaigns_wait_for_a_generator_they_are_found_by_one_query(
    django_assert_max_num_queries,
):
    database = make_server()
    generators = [make_server(state=Server.State.UNREACHABLE) for _number in range(3)]
    for generator in generators * 4:
        make_run(database, generator)
    leases.claim(server_id=database.pk, holder="a")  # notes who was passed over
    # One a campaign for the leases of its machines, one a machine for the note, one for the sites
    # of all, and some more.
    with django_assert_max_num_queries(12 + 3 + 1 + 7):
        assert leases.claim(server_id=database.pk, holder="a") is None


@pytest.mark.django_db
@pytest.mark.parametrize("place", ["database", "generator"])
def test_a_new_run_waits_for_the_sweep_of_its_machines_and_a_lost_one_does_not(place):
    machines = {"database": make_server(), "generator": make_server()}
    run = make_run(machines["database"], machines["generator"])
    to_sweep = Server.objects.filter(pk=machines[place].pk)
    to_sweep.update(needs_sweep=True)
    assert leases.claim(server_id=run.server_id, holder="a") is None
    assert machines[place].pk in supervision._servers_with_work()
    to_sweep.update(needs_sweep=False)
    lost(run)
    to_sweep.update(needs_sweep=True)
    assert leases.claim(server_id=run.server_id, holder="b").run_id == run.pk
