"""Leases: one run a server, lost runs first, and silence noticed."""

import threading
import time
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from runs import tasks
from runs.campaigns.services import campaigns
from runs.execution.errors import EndNotSeen
from runs.execution.reporter import Findings
from runs.models import Campaign, Lease, Run, Schedule, Server
from runs.queue.services import (
    attempts,
    execution,
    leases,
    results,
    supervision,
    transitions,
)
from runs.queue.services.supervision import Pulses
from runs.servers.services import servers, ssh_keys
from runs.workloads.services import scenarios
from tests import factories
from tests.at_once import at_once

pytestmark = pytest.mark.django_db


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
def test_a_claim_counts_no_runs_of_its_campaign(django_assert_max_num_queries):
    server = make_server()
    campaign = make_campaign(server)
    with django_assert_max_num_queries(15) as asked:  # four are savepoints
        assert leases.claim(server_id=server.pk, holder="a")
    assert [
        each["sql"] for each in asked.captured_queries if "COUNT(" in each["sql"]
    ] == []
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.RUNNING


def test_a_claim_reads_a_run_of_each_campaign_however_many_wait():
    server = make_server()
    buffers = []
    for repeats in (1, 400):
        for _campaign in range(2):
            make_campaign(server, repeats=repeats)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE runs_run")
            # As in a table that is too large to be read whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {leases._FIRST_RUNS}",
                {"servers": [server.pk], **leases._STATES},
            )
            [[[answer]]] = cursor.fetchall()
        plan = answer["Plan"]
        buffers.append(plan["Shared Hit Blocks"] / plan["Actual Rows"])
    assert plan["Actual Rows"] == 4
    assert buffers[1] <= 1.2 * buffers[0] + 2


@pytest.mark.django_db
def test_a_lost_run_goes_before_the_queue_and_its_taker_knows():
    server = make_server()
    make_campaign(server)
    first = leases.claim(server_id=server.pk, holder="a")
    transitions.transition(
        run_id=first.run_id, to=Run.State.LOST, code="x", token=first.token
    )
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
    claims = []

    def work(name):
        claims.append(leases.claim(server_id=server.pk, holder=name))

    at_once([partial(work, str(number)) for number in range(8)])
    assert len(claims) == 8
    assert len([claim for claim in claims if claim is not None]) == 1
    assert Run.objects.filter(state="claimed").count() == 1


@pytest.mark.django_db
def test_the_supervisor_wakes_only_servers_with_something_to_do(monkeypatch):
    woken = []
    monkeypatch.setattr("runs.celery_messages.wake", woken.append)
    make_server()
    waiting, busy = make_server(), make_server()
    make_campaign(waiting)
    make_campaign(busy)
    leases.claim(server_id=busy.pk, holder="a")
    woken.clear()
    supervision.supervise()
    assert woken == [waiting.pk]


def test_an_idle_supervisor_asks_once(django_assert_num_queries):
    make_server()
    with django_assert_num_queries(1):
        supervision.supervise()


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
        results.store(
            run_id=claim.run_id, token=claim.token, findings=Findings(), has_failed=True
        )
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
    transitions.transition(
        run_id=claim.run_id, to=Run.State.LOST, code="x", token=claim.token
    )
    settings.HEARTBEAT_TIMEOUT_SECONDS = 5
    pulses.beat()
    assert pulses.order_for(claim) == "detach"


S = Run.State


@pytest.fixture
def host():
    """A server at which nothing listens."""
    scenarios.sync()
    made = factories.server(address="127.0.0.1", port=1, ssh_key=ssh_keys.default())
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    Lease.objects.create(server=made)
    return made


@pytest.fixture
def campaign(host) -> Campaign:
    draft = factories.draft(host, title="away", seed=7)
    return campaigns.create(draft=draft)


def claimed(host) -> leases.Claim:
    claim = leases.claim(server_id=host.pk, holder="worker")
    assert claim is not None
    return claim


def taken_over(host, campaign) -> leases.Claim:
    """The claim of a run that another worker had on its target."""
    claim = claimed(host)
    for state in (S.PREPARING, S.MEASURING, S.LOST):
        assert transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )
    return claimed(host)


def test_a_run_whose_server_is_away_waits_for_it(host, campaign):
    execution.execute(claimed(host))
    run = campaign.runs.get()
    assert (run.state, run.code) == (S.QUEUED, "host_unreachable")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"of_the_future": 1}, "of_the_future"),
        ({"scenario": "no-more"}, "no-more"),
        ({"treatment": [1]}, "items"),
        ({"generators": [{"name": "load1"}]}, "missing"),
        (None, "bindir"),
    ],
)
def test_a_plan_that_this_version_does_not_know_is_refused_clearly(
    host, campaign, change, told
):
    run = campaign.runs.get()
    run.plan = None if change is None else run.plan | change
    run.save()
    execution.execute(claimed(host))
    run.refresh_from_db()
    assert (run.state, run.code) == (S.ERRORED, "plan_of_other_version")
    assert told in run.message
    assert "Queue its campaign again" in run.remedy
    assert not Lease.objects.filter(run__isnull=False).exists()


def test_a_failure_of_benchlab_itself_ends_the_run_and_lets_the_server_go(
    host, campaign, caplog
):
    """A plan of the right form without what the scenario reckons with."""
    run = campaign.runs.get()
    run.plan = run.plan | {"parameters": {}}
    run.save()
    execution.execute(claimed(host))
    run.refresh_from_db()
    assert (run.state, run.code) == (S.ERRORED, "internal_error")
    assert run.message.startswith("Traceback")
    assert "KeyError" in run.message
    assert "report it" in run.remedy
    assert f"run {run.pk} ended in an error of BenchLab" in caplog.text
    assert not Lease.objects.filter(run__isnull=False).exists()


@pytest.mark.parametrize("claim_it", [lambda host, campaign: claimed(host), taken_over])
def test_a_cancel_is_kept_to_though_the_server_is_away(host, campaign, claim_it):
    claim = claim_it(host, campaign)
    transitions.cancel(run=campaign.runs.get(), by="ann")
    execution.execute(claim)
    run = campaign.runs.get()
    assert (run.state, run.code) == (S.CANCELLED, "cancelled")
    assert "ann" in run.message
    assert run.finished_at is not None
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.CANCELLED
    host.refresh_from_db()
    assert host.needs_sweep
    assert host.state == Server.State.UNREACHABLE
    assert not Lease.objects.filter(run=run).exists()


def test_a_cancelled_run_gets_no_further_attempt(host, campaign):
    claim = claimed(host)
    transitions.cancel(run=campaign.runs.get(), by="ann")
    again = attempts.start_again(
        run_id=claim.run_id, token=claim.token, code="target_restarted", message="x"
    )
    run = campaign.runs.get()
    assert not again
    assert (run.state, run.attempt) == (S.CANCELLED, 1)
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.CANCELLED
    host.refresh_from_db()
    assert host.needs_sweep


def test_a_key_that_cannot_be_read_costs_no_run_and_is_told_on_the_servers_page(
    host, campaign
):
    """As by a worker that was started with another BENCHLAB_ENCRYPTION_KEY."""
    host.ssh_key = factories.ssh_key("of another BenchLab")
    host.save()
    execution.execute(claimed(host))
    run = campaign.runs.get()
    assert (run.state, run.code) == (S.QUEUED, "private_key_unreadable")
    host.refresh_from_db()
    assert (host.state, host.problem_code) == (
        Server.State.REFUSED,
        "private_key_unreadable",
    )
    assert "BENCHLAB_ENCRYPTION_KEY" in host.problem_remedy
    # Until somebody has looked at it, no other run of the queue is tried in vain.
    assert leases.claim(server_id=host.pk, holder="worker") is None


@pytest.fixture
def claim():
    """A worker's claim of a run that puts load on."""
    server = factories.server(versions=["16.14"])
    Lease.objects.create(server=server)
    factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=1
    )
    claim = leases.claim(server_id=server.pk, holder="a")
    for state in (S.PREPARING, S.MEASURING):
        transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )
    return claim


@pytest.fixture
def asked_to_stop():
    """Celery has told this worker to shut down."""
    tasks.hand_runs_over()
    yield
    tasks.start_fresh()


def assert_it_was_let_go_of_with(code, claim) -> Run:
    """The run waits for a worker, and the next one has it at once."""
    run = Run.objects.get(pk=claim.run_id)
    assert (run.state, run.code) == (S.LOST, code)
    assert (
        run.events.filter(code=code, from_state=S.MEASURING, to_state=S.LOST).count()
        == 1
    )
    assert not Lease.objects.filter(run__isnull=False).exists()
    assert leases.give_up_the_silent() == []
    again = leases.claim(server_id=claim.server_id, holder="b")
    assert (again.run_id, again.taken_over) == (run.pk, True)
    assert again.token > claim.token
    return run


def test_a_worker_that_is_stopped_hands_its_run_over(claim, asked_to_stop):
    assert execution._let_go(claim) == "detach"
    assert_it_was_let_go_of_with("worker_stopped", claim)


def test_a_worker_that_shows_signs_of_life_keeps_its_run(claim):
    assert factories.pulse(claim.run_id, claim.token) == "go_on"
    assert Run.objects.get(pk=claim.run_id).state == S.MEASURING
    assert leases.claim(server_id=claim.server_id, holder="b") is None


def test_a_worker_whose_run_was_given_up_changes_nothing_by_being_stopped(
    claim, asked_to_stop
):
    transitions.transition(
        run_id=claim.run_id, to=S.LOST, code="no_heartbeat", token=claim.token
    )
    again = leases.claim(server_id=claim.server_id, holder="b")
    assert execution._let_go(claim) == "detach"
    assert Run.objects.get(pk=claim.run_id).state == S.CLAIMED
    assert factories.pulse(again.run_id, again.token) == "go_on"


def test_a_run_whose_steps_end_is_not_seen_goes_to_another_worker(claim, monkeypatch):
    """The guard's own part of it is in tests/ssh/test_step_limits.py."""

    def unseen(*_given):
        raise EndNotSeen("Step pgbench has ended on the target without being seen.")

    monkeypatch.setattr(execution, "_conclude", unseen)
    execution.execute(claim)
    run = assert_it_was_let_go_of_with("end_not_seen", claim)
    assert "Step pgbench has ended" in run.events.get(code="end_not_seen").message


@pytest.fixture
def awaiting_installations(monkeypatch):
    """A ready server where a schedule awaits installations, and the inspections of it."""
    server = make_server()
    server.checked_at = timezone.now() - timedelta(days=1)
    server.save()
    Schedule.objects.create(
        title="", server=server, draft={}, kind=Schedule.Kind.INSTALLATION
    )
    inspected = []
    monkeypatch.setattr(
        servers, "inspect", lambda *, server: inspected.append(server.pk)
    )
    return server, inspected


def test_a_free_server_is_inspected_for_new_installations(awaiting_installations):
    server, inspected = awaiting_installations
    supervision.look_again(server_id=server.pk)
    assert inspected == [server.pk]
    # It was looked at a moment ago.
    supervision.look_again(server_id=server.pk)
    assert inspected == [server.pk]


@pytest.mark.django_db(transaction=True)
def test_a_server_is_not_inspected_while_somebody_takes_it_for_a_run(
    awaiting_installations,
):
    server, inspected = awaiting_installations
    with transaction.atomic():
        Lease.objects.select_for_update().get(server=server)
        at_once([lambda: supervision.look_again(server_id=server.pk)])
    assert inspected == []


@pytest.mark.django_db(transaction=True)
def test_no_run_is_claimed_while_its_server_is_inspected(
    awaiting_installations, monkeypatch
):
    server, _inspected = awaiting_installations
    make_campaign(server)
    claims = []

    def claim_meanwhile(*, server):
        at_once([lambda: claims.append(leases.claim(server_id=server.pk, holder="a"))])

    monkeypatch.setattr(servers, "inspect", claim_meanwhile)
    supervision.look_again(server_id=server.pk)
    assert claims == [None]
    assert leases.claim(server_id=server.pk, holder="a") is not None
