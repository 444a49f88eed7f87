"""Runs that a worker lets go of: their server cannot be used, or somebody cancelled them."""

import pytest

from runs.models import Campaign, Lease, Run, Server
from runs.services.campaigns import campaigns, scenarios
from runs.services.runs import attempts, execution, leases, runs
from runs.services.servers import ssh_keys
from tests import factories

pytestmark = pytest.mark.django_db
S = Run.State


@pytest.fixture
def server():
    """A server at which nothing listens."""
    scenarios.sync()
    made = factories.server(address="127.0.0.1", port=1, ssh_key=ssh_keys.default())
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    Lease.objects.create(server=made)
    return made


@pytest.fixture
def campaign(server) -> Campaign:
    draft = factories.draft(server, title="away", seed=7)
    return campaigns.create(draft=draft)


def claimed(server) -> leases.Claim:
    claim = leases.claim(server_id=server.pk, holder="worker")
    assert claim is not None
    return claim


def taken_over(server, campaign) -> leases.Claim:
    """The claim of a run that another worker had on its target."""
    claim = claimed(server)
    for state in (S.PREPARING, S.MEASURING, S.LOST):
        assert runs.transition(run_id=claim.run_id, to=state, code=state, token=claim.token)
    return claimed(server)


def test_a_run_whose_server_is_away_waits_for_it(server, campaign):
    execution.execute(claimed(server))
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
def test_a_plan_that_this_version_does_not_know_is_refused_clearly(server, campaign, change, told):
    run = campaign.runs.get()
    run.plan = None if change is None else run.plan | change
    run.save()
    execution.execute(claimed(server))
    run.refresh_from_db()
    assert (run.state, run.code) == (S.ERRORED, "plan_of_other_version")
    assert told in run.message
    assert "Queue its campaign again" in run.remedy
    assert not Lease.objects.filter(run__isnull=False).exists()


def test_a_failure_of_benchlab_itself_ends_the_run_and_lets_the_server_go(server, campaign, caplog):
    """A plan of the right form without what the scenario reckons with."""
    run = campaign.runs.get()
    run.plan = run.plan | {"parameters": {}}
    run.save()
    execution.execute(claimed(server))
    run.refresh_from_db()
    assert (run.state, run.code) == (S.ERRORED, "internal_error")
    assert run.message.startswith("Traceback")
    assert "KeyError" in run.message
    assert "report it" in run.remedy
    assert f"run {run.pk} ended in an error of BenchLab" in caplog.text
    assert not Lease.objects.filter(run__isnull=False).exists()


@pytest.mark.parametrize("claim_it", [lambda server, campaign: claimed(server), taken_over])
def test_a_cancel_is_kept_to_though_the_server_is_away(server, campaign, claim_it):
    claim = claim_it(server, campaign)
    runs.cancel(run=campaign.runs.get(), by="ann")
    execution.execute(claim)
    run = campaign.runs.get()
    assert (run.state, run.code) == (S.CANCELLED, "cancelled")
    assert "ann" in run.message
    assert run.finished_at is not None
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.CANCELLED
    server.refresh_from_db()
    assert server.needs_sweep
    assert server.state == Server.State.UNREACHABLE
    assert not Lease.objects.filter(run=run).exists()


def test_a_cancelled_run_gets_no_further_attempt(server, campaign):
    claim = claimed(server)
    runs.cancel(run=campaign.runs.get(), by="ann")
    again = attempts.start_again(
        run_id=claim.run_id, token=claim.token, code="target_restarted", message="x", most=3
    )
    run = campaign.runs.get()
    assert not again
    assert (run.state, run.attempt) == (S.CANCELLED, 1)
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.CANCELLED
    server.refresh_from_db()
    assert server.needs_sweep


def test_a_key_that_cannot_be_read_costs_no_run_and_is_told_on_the_servers_page(server, campaign):
    """As by a worker that was started with another BENCHLAB_ENCRYPTION_KEY."""
    server.ssh_key = factories.ssh_key("of another BenchLab")
    server.save()
    execution.execute(claimed(server))
    run = campaign.runs.get()
    assert (run.state, run.code) == (S.QUEUED, "private_key_unreadable")
    server.refresh_from_db()
    assert (server.state, server.problem_code) == (Server.State.REFUSED, "private_key_unreadable")
    assert "BENCHLAB_ENCRYPTION_KEY" in server.problem_remedy
    # Until somebody has looked at it, no other run of the queue is tried in vain.
    assert leases.claim(server_id=server.pk, holder="worker") is None
