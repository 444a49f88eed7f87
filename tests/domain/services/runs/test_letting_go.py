"""A worker that lets go of its run: another one takes it over at once, not after its silence."""

import pytest

from runs import tasks
from runs.execution.errors import EndNotSeen
from runs.models import Lease, Run
from runs.services.runs import execution, leases, runs
from tests import factories

pytestmark = pytest.mark.django_db
S = Run.State


@pytest.fixture
def claim():
    """A worker's claim of a run that puts load on."""
    server = factories.server(versions=["16.14"])
    Lease.objects.create(server=server)
    factories.campaign(on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=1)
    claim = leases.claim(server_id=server.pk, holder="a")
    for state in (S.PREPARING, S.MEASURING):
        runs.transition(run_id=claim.run_id, to=state, code=state, token=claim.token)
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
    assert run.events.filter(code=code, from_state=S.MEASURING, to_state=S.LOST).count() == 1
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


def test_a_worker_whose_run_was_given_up_changes_nothing_by_being_stopped(claim, asked_to_stop):
    runs.transition(run_id=claim.run_id, to=S.LOST, code="no_heartbeat", token=claim.token)
    again = leases.claim(server_id=claim.server_id, holder="b")
    assert execution._let_go(claim) == "detach"
    assert Run.objects.get(pk=claim.run_id).state == S.CLAIMED
    assert factories.pulse(again.run_id, again.token) == "go_on"


def test_a_run_whose_steps_end_is_not_seen_goes_to_another_worker(claim, monkeypatch):
    """The guard's own part of it is in tests/ssh/test_guard.py."""

    def unseen(*_given):
        raise EndNotSeen("Step pgbench has ended on the target without being seen.")

    monkeypatch.setattr(execution, "_conclude", unseen)
    execution.execute(claim)
    run = assert_it_was_let_go_of_with("end_not_seen", claim)
    assert "Step pgbench has ended" in run.events.get(code="end_not_seen").message
