"""The states of a run: what may follow what, who may say so, and what each change leaves."""

import itertools
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override

from runs.access.services import projects
from runs.execution.errors import Detached
from runs.execution.reporter import Findings
from runs.execution.steps.steps import StepResult
from runs.histories.services import webhooks
from runs.models import Campaign, Lease, Run
from runs.queue.services import (
    attempts,
    leases,
    reporting,
    supervision,
    transitions,
    withdrawals,
)
from runs.queue.services import results as findings
from runs.queue.services.reporting import DatabaseReporter
from runs.queue.services.transitions import TRANSITIONS
from runs.shared.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db

S = Run.State
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def server():
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    return server


@pytest.fixture
def campaign(server):
    return factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=2
    )


def claimed(server) -> leases.Claim:
    claim = leases.claim(server_id=server.pk, holder="worker")
    assert claim is not None
    return claim


def to_measuring(claim: leases.Claim) -> None:
    for state in (S.PREPARING, S.MEASURING):
        assert transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )


def test_a_finished_run_stays_finished_unless_it_is_withdrawn(campaign, server):
    claim = claimed(server)
    to_measuring(claim)
    for state in (S.COLLECTING, S.FINISHED):
        assert transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )
    for state in set(S.values) - {S.WITHDRAWN}:
        assert not transitions.transition(run_id=claim.run_id, to=state, code="late")
    assert Run.objects.get(pk=claim.run_id).state == S.FINISHED


def test_a_run_cannot_skip_a_phase(campaign, server):
    claim = claimed(server)
    assert not transitions.transition(
        run_id=claim.run_id, to=S.MEASURING, code="", token=claim.token
    )
    assert not transitions.transition(
        run_id=claim.run_id, to=S.FINISHED, code="", token=claim.token
    )


def test_each_change_leaves_an_event_with_both_states(campaign, server):
    claim = claimed(server)
    to_measuring(claim)
    events = Run.objects.get(pk=claim.run_id).events
    assert list(events.values_list("from_state", "to_state", "code")) == [
        ("queued", "claimed", "claimed"),
        ("claimed", "preparing", "preparing"),
        ("preparing", "measuring", "measuring"),
    ]


def test_a_worker_that_was_given_up_changes_nothing_any_more(campaign, server):
    old = claimed(server)
    transitions.transition(
        run_id=old.run_id, to=S.LOST, code="no_heartbeat", token=old.token
    )
    new = claimed(server)
    assert new.run_id == old.run_id
    assert not transitions.transition(
        run_id=old.run_id, to=S.PREPARING, code="", token=old.token
    )
    assert transitions.transition(
        run_id=new.run_id, to=S.PREPARING, code="", token=new.token
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_transitions_of_a_state_only_one_happens(campaign):
    """The second one has read the state that the first one is about to change."""
    run = campaign.runs.first()
    results = []

    def claim():
        results.append(
            transitions.transition(run_id=run.pk, to=S.CLAIMED, code="claimed")
        )
        connection.close()

    second = threading.Thread(target=claim)
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state=S.CANCELLED)
        second.start()
        while not _is_waited_for():
            assert second.is_alive()
            time.sleep(0.01)
    second.join()

    assert results == [False]
    run.refresh_from_db()
    assert run.state == S.CANCELLED
    assert not run.events.exists()


def _is_waited_for():
    """Whether somebody waits for a lock of this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return cursor.fetchone() != (0,)


def test_only_a_withdrawn_run_is_restored(campaign, server):
    """A run that is being collected may become finished as well, but not by this."""
    claim = claimed(server)
    to_measuring(claim)
    run = Run.objects.get(pk=claim.run_id)
    assert transitions.transition(run_id=run.pk, to=S.COLLECTING, code="collecting")
    with pytest.raises(ServiceError) as refused:
        withdrawals.restore(run=run, reason="another disk")
    assert refused.value.code == "not_withdrawn"
    run.refresh_from_db()
    assert run.state == S.COLLECTING


def test_a_figure_of_a_publication_is_not_withdrawn(campaign):
    run = campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(origin="published", state=S.FINISHED)
    run.refresh_from_db()
    with pytest.raises(ServiceError) as refused:
        withdrawals.withdraw(run=run, reason="a misprint")
    assert refused.value.code == "is_published"
    run.refresh_from_db()
    assert run.state == S.FINISHED


def test_a_waiting_run_is_cancelled_at_once(campaign):
    run = transitions.cancel(run=campaign.runs.first(), by="ann")
    assert run.state == S.CANCELLED
    assert "ann" in run.events.get().message


def test_an_active_run_is_asked_to_stop_and_its_worker_told(campaign, server):
    claim = claimed(server)
    to_measuring(claim)
    run = transitions.cancel(run=Run.objects.get(pk=claim.run_id), by="ann")
    # From the table an active run might go straight to cancelled; only its worker may do that.
    assert run.state == S.MEASURING
    assert factories.pulse(claim.run_id, claim.token) == "cancel"


def test_a_run_that_has_ended_cannot_be_cancelled(campaign):
    run = campaign.runs.first()
    transitions.cancel(run=run)
    with pytest.raises(ServiceError) as told:
        transitions.cancel(run=run)
    assert told.value.code == "run_has_ended"


def test_a_lost_run_whose_cancel_was_asked_for_is_stopped_by_the_next_worker(
    campaign, server
):
    claim = claimed(server)
    to_measuring(claim)
    transitions.cancel(run=Run.objects.get(pk=claim.run_id))
    transitions.transition(
        run_id=claim.run_id, to=S.LOST, code="no_heartbeat", token=claim.token
    )
    again = claimed(server)
    assert again.run_id == claim.run_id
    assert factories.pulse(again.run_id, again.token) == "cancel"


def test_a_lost_run_on_a_server_out_of_reach_can_be_given_up(campaign, server):
    claim = claimed(server)
    to_measuring(claim)
    transitions.transition(
        run_id=claim.run_id, to=S.LOST, code="host_unreachable", token=claim.token
    )
    server.state = "unreachable"
    server.save()
    run = transitions.cancel(run=Run.objects.get(pk=claim.run_id))
    assert run.state == S.CANCELLED
    assert "may be left there" in run.events.last().message
    server.refresh_from_db()
    assert server.needs_sweep


@pytest.mark.parametrize(
    ("state", "expected"), [("unreachable", S.CANCELLED), ("ready", S.LOST)]
)
def test_a_cancel_is_not_forgotten_when_the_server_goes_away_before_the_run_is_lost(
    campaign, server, state, expected
):
    claim = claimed(server)
    to_measuring(claim)
    transitions.cancel(run=Run.objects.get(pk=claim.run_id), by="ann")
    server.state = state
    server.save()
    Lease.objects.filter(server=server).update(heartbeat_at=NOW)
    supervision.supervise()
    run = Run.objects.get(pk=claim.run_id)
    assert run.state == expected
    server.refresh_from_db()
    assert server.needs_sweep == (expected == S.CANCELLED)
    if expected == S.CANCELLED:
        last = run.events.last()
        assert (last.from_state, last.code) == ("lost", "cancelled")
        assert last.message == f"Cancelled by ann. {transitions.LEFT_THERE}"
        assert run.finished_at is not None


def test_the_last_run_that_begins_anew_does_not_end_its_campaign(campaign, server):
    """It fails and is queued again in one transaction."""
    webhook = webhooks.create(
        project=projects.default(), url="https://ci.example/hook"
    ).webhook
    Campaign.objects.update(most_attempts=2)
    claim = claimed(server)
    campaign.runs.exclude(pk=claim.run_id).update(state=S.FINISHED)
    to_measuring(claim)
    assert attempts.start_again(
        run_id=claim.run_id, token=claim.token, code="target_restarted", message="x"
    )
    assert not webhook.deliveries.exists()
    assert campaign.runs.count() == 2


def test_a_restarted_target_gets_another_attempt_up_to_a_limit(campaign, server):
    Campaign.objects.update(most_attempts=2)
    for attempt in (1, 2):
        claim = claimed(server)
        to_measuring(claim)
        again = attempts.start_again(
            run_id=claim.run_id, token=claim.token, code="target_restarted", message="x"
        )
        assert again == (attempt < 2)
    run = Run.objects.get(pk=claim.run_id)
    assert (run.state, run.code, run.attempt) == (S.FAILED, "target_restarted", 2)


def test_a_persons_retries_take_nothing_of_what_is_begun_anew_by_itself(
    campaign, server
):
    Campaign.objects.update(most_attempts=2)
    for _time in range(3):
        claim = claimed(server)
        to_measuring(claim)
        Run.objects.filter(pk=claim.run_id).update(plan={})
        transitions.transition(
            run_id=claim.run_id, to=S.FAILED, code="x", token=claim.token
        )
        attempts.retry(run=Run.objects.get(pk=claim.run_id))
    claim = claimed(server)
    to_measuring(claim)
    assert attempts.start_again(
        run_id=claim.run_id, token=claim.token, code="target_restarted", message="x"
    )
    run = Run.objects.get(pk=claim.run_id)
    assert (run.state, run.attempt, run.started_at, run.finished_at) == (
        S.QUEUED,
        5,
        None,
        None,
    )


def test_cancelling_many_does_not_look_for_each_among_all_others(
    campaign, server, monkeypatch
):
    """With 10,000 runs that took 13 seconds, in which all of them were locked."""
    cell, comparisons = campaign.cells.get(), []
    Run.objects.bulk_create(
        Run(campaign=campaign, cell=cell, repeat=number, position=number, server=server)
        for number in range(3, 301)
    )
    monkeypatch.setattr(
        Run, "__eq__", lambda self, other: comparisons.append(1) or self is other
    )
    assert transitions.cancel_all(runs=campaign.runs.all()) == 300
    assert len(comparisons) < 1000


def test_only_one_run_of_a_server_can_be_active_even_by_force(campaign, server):
    from django.db import IntegrityError

    claimed(server)
    waiting = campaign.runs.filter(state=S.QUEUED)
    with pytest.raises(IntegrityError):
        waiting.update(state=S.MEASURING)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({S.QUEUED: 3}, Campaign.State.QUEUED),
        ({S.QUEUED: 2, S.MEASURING: 1}, Campaign.State.RUNNING),
        ({S.QUEUED: 1, S.FINISHED: 2}, Campaign.State.RUNNING),
        ({S.LOST: 1, S.FINISHED: 2}, Campaign.State.RUNNING),
        ({S.FINISHED: 3}, Campaign.State.FINISHED),
        ({S.FINISHED: 2, S.WITHDRAWN: 1}, Campaign.State.FINISHED),
        ({S.FINISHED: 2, S.FAILED: 1}, Campaign.State.INCOMPLETE),
        ({S.FINISHED: 2, S.ERRORED: 1}, Campaign.State.INCOMPLETE),
        # A run that is cancelled alone takes one repeat out of one cell.
        ({S.FINISHED: 2, S.CANCELLED: 1}, Campaign.State.FINISHED),
        ({S.FINISHED: 1, S.FAILED: 1, S.CANCELLED: 1}, Campaign.State.INCOMPLETE),
        ({S.CANCELLED: 3}, Campaign.State.CANCELLED),
    ],
)
def test_a_campaigns_state_follows_from_its_runs(states, expected):
    assert transitions.campaign_state(Counter(states), is_cancelled=False) == expected


def test_the_state_of_three_runs_follows_in_every_combination():
    """All states of three runs, of a campaign that was cancelled and of one that was not."""
    for states in itertools.combinations_with_replacement(S.values, 3):
        for is_cancelled in (False, True):
            state = transitions.campaign_state(
                Counter(states), is_cancelled=is_cancelled
            )
            has_ended = all(run_state in Run.ENDED for run_state in states)
            assert (state in Campaign.ENDED) == has_ended, states
            cancelled = states.count(S.CANCELLED)
            if has_ended:
                is_whole = cancelled == 3 or (is_cancelled and cancelled > 0)
                assert (state == Campaign.State.CANCELLED) == is_whole, states
                bad = {S.FAILED, S.ERRORED} & set(states)
                is_incomplete = state == Campaign.State.INCOMPLETE
                assert is_whole or is_incomplete == bool(bad), states


@pytest.mark.parametrize(
    ("state", "to", "has_started", "set_now"),
    [
        (S.CLAIMED, S.PREPARING, False, {"started_at"}),
        # Taken over: it goes on since it first began.
        (S.CLAIMED, S.PREPARING, True, set()),
        (S.PREPARING, S.MEASURING, False, set()),
        (S.MEASURING, S.LOST, True, set()),
        (S.COLLECTING, S.FINISHED, True, {"finished_at"}),
        (S.MEASURING, S.FAILED, True, {"finished_at"}),
        (S.FAILED, S.QUEUED, True, set()),
        # What was withdrawn ended when it ended.
        (S.FINISHED, S.WITHDRAWN, True, set()),
    ],
)
def test_a_runs_times_are_those_of_its_begin_and_its_end(
    state, to, has_started, set_now
):
    run = Run(state=state, started_at=NOW if has_started else None)

    times = transitions._times(run, to)

    assert {name for name, value in times.items() if value} == set_now
    assert ("finished_at" in times) == bool(set_now)


def test_a_server_is_woken_when_a_run_leaves_it_and_by_none_that_has_it(
    server, campaign, monkeypatch
):
    woken = []
    claim = claimed(server)
    monkeypatch.setattr("runs.celery_messages.wake", woken.append)
    run, token = claim.run_id, claim.token

    for state in (S.PREPARING, S.MEASURING):
        assert transitions.transition(run_id=run, to=state, code="x", token=token)
    transitions.cancel(run=Run.objects.get(pk=run))
    assert not transitions.cancel_where_asked(run_id=run, token=token + 1)
    assert woken == []
    # The worker that holds the run is still at work there.
    server.refresh_from_db()
    assert not server.needs_sweep
    assert transitions.cancel_where_asked(run_id=run, token=token)
    assert woken == [server.pk]


def test_runs_are_counted_at_the_end_of_their_campaign_alone(
    campaign,
):
    def refresh() -> list[str]:
        with CaptureQueriesContext(connection) as asked, transaction.atomic():
            transitions.refresh_campaign(campaign_id=campaign.pk)
        return [
            query["sql"] for query in asked.captured_queries if "COUNT(" in query["sql"]
        ]

    runs = list(campaign.runs.order_by("pk"))
    for run in runs[:-1]:
        Run.objects.filter(pk=run.pk).update(state=S.FINISHED)
        assert refresh() == []
        campaign.refresh_from_db()
        assert campaign.state == "running"
    Run.objects.filter(pk=runs[-1].pk).update(state=S.FAILED)
    assert len(refresh()) >= 1
    campaign.refresh_from_db()
    assert campaign.state == "incomplete"


def test_the_end_of_a_campaign_is_told_once(campaign):
    webhook = webhooks.create(
        project=projects.default(), url="https://ci.example/hook"
    ).webhook
    campaign.runs.update(state=S.FINISHED)
    for _twice in range(2):
        with transaction.atomic():
            transitions.refresh_campaign(campaign_id=campaign.pk)
    events = webhook.deliveries.values_list("event", flat=True)
    assert list(events) == ["campaign.finished"]


def test_a_worker_that_was_not_asked_to_cancel_goes_on(campaign, server):
    claim = claimed(server)
    assert not transitions.cancel_where_asked(run_id=claim.run_id, token=claim.token)
    assert Run.objects.get(pk=claim.run_id).state == S.CLAIMED


def test_every_state_has_its_transitions():
    assert set(transitions.TRANSITIONS) == set(S.values)


@pytest.mark.parametrize("state", [S.FAILED, S.ERRORED, S.CANCELLED])
def test_a_run_that_did_not_finish_is_queued_as_its_next_attempt(campaign, state):
    run = campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(
        state=state, code="x", plan={}, cancel_requested_at=NOW
    )
    run = attempts.retry(run=run, by="ann")
    assert (run.state, run.attempt, run.code, run.cancel_requested_at) == (
        S.QUEUED,
        2,
        "",
        None,
    )
    event = run.events.get()
    assert (event.from_state, event.to_state, event.attempt) == (state, S.QUEUED, 1)
    assert "ann" in event.message


@pytest.mark.parametrize("state", set(S.values) - set(Run.UNSUCCESSFUL))
def test_a_run_that_waits_works_or_finished_is_not_queued_again(campaign, state):
    run = campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(state=state, plan={})
    with pytest.raises(ServiceError) as told:
        attempts.retry(run=run)
    assert told.value.code == "run_not_failed"
    assert Run.objects.get(pk=run.pk).attempt == 1


def test_a_result_that_nobody_here_measured_is_not_queued_again(campaign):
    run = campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(state=S.FAILED, plan=None)
    with pytest.raises(ServiceError):
        attempts.retry(run=run)


def test_a_retried_run_has_each_measurement_once(campaign, server):
    factories.metric("tps")
    for value in (1.0, 2.0):
        claim = claimed(server)
        to_measuring(claim)
        found = Findings(measurements={"tps": value})
        assert findings.store(run_id=claim.run_id, token=claim.token, findings=found)
        if value == 1.0:
            transitions.transition(
                run_id=claim.run_id, to=S.FAILED, code="x", token=claim.token
            )
            Run.objects.filter(pk=claim.run_id).update(plan={})
            campaign.runs.filter(state=S.QUEUED).update(state=S.FAILED)
            attempts.retry(run=Run.objects.get(pk=claim.run_id))
    for state in (S.COLLECTING, S.FINISHED):
        transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )
    run = Run.objects.get(pk=claim.run_id)
    assert (run.attempt, [each.value for each in run.measurements.all()]) == (2, [2.0])
    assert run.cell.summaries.get().n == 1


def test_what_is_kept_is_in_english_whoever_asks(campaign):
    campaign.runs.update(plan={})
    first, second = campaign.runs.order_by("pk")[:2]
    with override("ja"):
        transitions.cancel(run=first, by="ichiro")
        transitions.cancel(run=second)
        attempts.retry(run=second, by="ichiro")
    assert first.events.get(code="cancelled").message == "Cancelled by ichiro."
    assert second.events.get(code="queued_again").message == "Queued again by ichiro."


PAGE = Path(__file__).parents[3] / "docs/execution.md"
BEGIN, END = "```mermaid\n", "```\n"


def picture() -> str:
    """The states in Mermaid's language, in the order of the model."""
    order = {state: place for place, state in enumerate(Run.State.values)}
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    for state in sorted(TRANSITIONS, key=lambda each: order[each]):
        following = sorted(TRANSITIONS[state], key=lambda each: order[each])
        lines += [f"    {state} --> {Run.State(to).value}" for to in following]
        if not following:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


def test_the_picture_shows_every_transition_and_no_other():
    drawn = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert drawn == picture(), f"put this into {PAGE.name}:\n{picture()}"


@pytest.mark.django_db(transaction=True)
def test_the_worker_lets_go_of_its_run_and_no_error_of_its_own_ends_it(monkeypatch):
    """Another one takes it over then: what it has found still lies on its target."""
    reporter = DatabaseReporter(run=factories.run(), token=1)
    step = StepResult("load", ("pgbench",), "", 0, 1.0, 2.0, "", "")

    async def measure() -> None:
        """A step is stored while the run goes on, so its failure shows at the next phase."""
        await reporter.command("db", step)
        await reporter.phase("measuring")

    with monkeypatch.context() as away:
        away.setattr(reporting, "WAITS_SECONDS", (0.01, 0.01))
        away.setitem(connection.settings_dict, "PORT", "1")
        connection.close()
        with pytest.raises(Detached):
            async_to_sync(measure)()
        with pytest.raises(Detached):
            async_to_sync(reporter.found)(Findings())
    connection.close()
