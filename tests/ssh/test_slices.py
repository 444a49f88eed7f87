"""Campaigns in slices: the clusters of a round are up at once, and take turns."""

import asyncio
import os
import signal
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import pytest
from django.db import connection

from runs.campaigns.services import campaigns
from runs.compare.selectors.judge.ratios import Tables
from runs.execution.errors import EndNotSeen
from runs.models import Campaign, Lease, Run
from runs.queue.services import execution, leases, supervision, transitions
from runs.scenarios import pgbench_procedure, slices
from runs.scenarios.pgbench_procedure import Load
from runs.why.services import ablations
from runs.why.services.explanations import explain
from runs.workloads.services import scenarios
from tests import factories

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def server(racks, binaries):
    """One server with two versions."""
    (only,) = racks(1, [binaries.postgresql16, binaries.postgresql18])
    return only


def queued(server, **more):
    scenarios.sync()
    asked = {
        "title": "In turn",
        "installations": list(server.installations.filter(bindir__in=server.bindirs)),
        "parameters": {"scale": 1, "duration": 5},
        "levels": {"clients": [1]},
        "repeats": 2,
        "slice_seconds": 1,
        "remeasures": 0,
    }
    return campaigns.create(draft=factories.draft(server, **asked | more))


def work_off(server_id):
    """What a worker does: one claim after the other, until nothing waits for the server."""
    try:
        while claim := leases.claim(server_id=server_id, holder=f"worker {server_id}"):
            execution.execute(claim)
    finally:
        connection.close()


def work_once(server_id):
    """One claim."""
    try:
        execution.execute(leases.claim(server_id=server_id, holder="first"))
    finally:
        connection.close()


def slices_of(campaign):
    """(start, end, run, step) of all slices in the order of time."""
    rows = [
        (command.started_at, command.finished_at, command.run_id, command.step)
        for run in campaign.runs.all()
        for command in run.commands.filter(
            step__startswith="slice-", attempt=run.attempt
        )
    ]
    return sorted(rows)


# Steps tell their times by the kernel's counter, in hundredths of a second.
CLOCK = timedelta(seconds=0.03)


def overlapping(slices):
    """Those that end after the next one has begun."""
    return [first for first, second in pairwise(slices) if first[1] > second[0] + CLOCK]


def test_the_runs_of_a_round_are_measured_in_turn(server):
    campaign = queued(server)

    work_off(server.pk)

    runs = list(campaign.runs.order_by("pk"))
    assert [run.message for run in runs if run.state != Run.State.FINISHED] == []
    slices = slices_of(campaign)
    assert len(slices) == 4 * 5
    assert overlapping(slices) == []
    for repeat in (1, 2):
        of_round = [
            row
            for row in slices
            if row[2] in {r.pk for r in runs if r.repeat == repeat}
        ]
        # Each number once for each run, before the next number begins.
        assert [row[3] for row in of_round] == sorted(row[3] for row in of_round)
        assert {row[3] for row in of_round} == {
            f"slice-{number:04}" for number in range(1, 6)
        }
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED
    assert not Lease.objects.filter(run__isnull=False).exists()
    for run in runs:
        series = {row.name: row for row in run.series.all()}
        tps = run.measurements.get(metric__name="tps").value
        values = series["slice_tps"].values
        assert len(values) == 5
        assert sum(values) / 5 == pytest.approx(tps, rel=1e-6)
        assert len(series["slice_foreign"].values) == 5
        # What others take from the machine makes no run of a round invalid.
        assert run.validity in {"valid", "doubtful"}
    (row,) = Tables(campaign, "tps").list_rows()
    assert row.comparison.freedom > 4
    assert row.comparison.low < row.comparison.ratio < row.comparison.high


@pytest.fixture
def at_work(server):
    """A campaign of one round that a thread has begun, and the thread."""
    campaign = queued(server, repeats=1, parameters={"scale": 1, "duration": 8})
    worker = Thread(target=work_once, args=[server.pk])
    worker.start()
    yield campaign, worker
    execution.stopping.clear()
    worker.join(timeout=120)
    assert not worker.is_alive()


def until_slice(campaign, number):
    """Wait until each run has measured so many slices."""
    step = f"slice-{number:04}"
    for _tick in range(600):
        if campaign.runs.filter(commands__step=step).distinct().count() == 2:
            return
        time.sleep(0.1)
    raise AssertionError(f"no {step}")


def test_another_worker_goes_on_with_the_next_slice(server, at_work):
    campaign, worker = at_work
    until_slice(campaign, 3)

    execution.stopping.set()
    worker.join(timeout=120)
    execution.stopping.clear()
    assert set(campaign.runs.values_list("state", flat=True)) == {Run.State.LOST}
    assert not Lease.objects.filter(run__isnull=False).exists()
    before = {row[:2] for row in slices_of(campaign)}
    work_off(server.pk)

    assert set(campaign.runs.values_list("state", flat=True)) == {Run.State.FINISHED}
    slices = slices_of(campaign)
    # None is lost, none is measured again, and no two overlap.
    assert len(slices) == 2 * 8
    assert before <= {row[:2] for row in slices}
    assert overlapping(slices) == []
    assert set(campaign.runs.values_list("attempt", flat=True)) == {1}


def test_a_run_that_is_left_to_another_worker_takes_those_in_turn_with_it(
    server, at_work, monkeypatch
):
    """Else they would wait for a turn for ever, and show signs of life."""
    campaign, worker = at_work
    unseen, other = campaign.runs.order_by("pk")
    measure_slice = slices._slice

    async def miss_the_third(bench, argv, ordinal, expected):
        found = await measure_slice(bench, argv, ordinal, expected)
        if ordinal == 3 and bench.plan.run_id == unseen.pk:
            raise EndNotSeen("The end of slice-0003 was not seen.")
        return found

    monkeypatch.setattr(slices, "_slice", miss_the_third)
    worker.join(timeout=120)

    assert not worker.is_alive()
    unseen.refresh_from_db()
    other.refresh_from_db()
    assert (unseen.state, unseen.code) == (Run.State.LOST, "end_not_seen")
    assert (other.state, other.code) == (Run.State.LOST, "turns_stopped")
    assert not Lease.objects.filter(run__isnull=False).exists()
    monkeypatch.undo()
    claim = leases.claim(server_id=server.pk, holder="second")
    assert len(claim.led) == 1
    execution.execute(claim)
    assert set(campaign.runs.values_list("state", flat=True)) == {Run.State.FINISHED}
    found = slices_of(campaign)
    assert len(found) == 2 * 8
    assert overlapping(found) == []


def test_what_others_took_of_earlier_slices_is_known_after_another_worker_went_on(
    server, at_work, monkeypatch
):
    campaign, worker = at_work
    monkeypatch.setattr(slices, "LIVE_SECONDS", 0.0)
    until_slice(campaign, 4)
    execution.stopping.set()
    worker.join(timeout=120)
    execution.stopping.clear()
    work_off(server.pk)

    for run in campaign.runs.all():
        shares = run.series.get(name="slice_foreign").values
        assert len(shares) == 8
        # Of the slice in which the worker changed nobody knows.
        assert shares.count(None) <= 1


def test_a_run_that_is_cancelled_while_it_waits_leaves_the_template_to_its_loader(
    server, monkeypatch
):
    newest = server.installations.filter(bindir__in=server.bindirs).order_by(
        "-version_num"
    )[:1]
    campaign = queued(
        server,
        repeats=1,
        installations=list(newest),
        levels={"clients": [1, 2]},
    )
    keys = {run.plan["template_key"] for run in campaign.runs.all()}
    assert len(keys) == 1
    assert "" not in keys
    loading, go_on = Event(), Event()
    load = pgbench_procedure.initialise

    async def wait_while_loading(bench, **more):
        loading.set()
        await asyncio.to_thread(go_on.wait, 60)
        await load(bench, **more)

    monkeypatch.setattr(pgbench_procedure, "initialise", wait_while_loading)
    worker = Thread(target=work_once, args=[server.pk])
    worker.start()
    assert loading.wait(60)
    loader = campaign.runs.get(commands__step="start-to-load")
    waiting = campaign.runs.exclude(pk=loader.pk).get()
    transitions.cancel(run=waiting)
    supervision.held_here.beat()
    for _tick in range(300):
        waiting.refresh_from_db()
        if waiting.state == Run.State.CANCELLED:
            break
        time.sleep(0.1)
    go_on.set()
    worker.join(timeout=120)

    loader.refresh_from_db()
    assert (waiting.state, loader.state) == (Run.State.CANCELLED, Run.State.FINISHED)
    assert loader.message == ""


def test_the_others_go_on_without_a_run_whose_cluster_has_died(server, at_work):
    campaign, worker = at_work
    until_slice(campaign, 2)
    broken, other = campaign.runs.order_by("pk")

    folder = Path(server.base_dir, "clusters", f"run-{broken.pk}", "data")
    os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
    worker.join(timeout=120)

    broken.refresh_from_db()
    other.refresh_from_db()
    assert (broken.state, other.state) == (Run.State.FAILED, Run.State.FINISHED)
    assert "slice-" in broken.message
    assert other.commands.filter(step__startswith="slice-").count() == 8
    assert not Lease.objects.filter(run__isnull=False).exists()
    assert list(Path(server.base_dir, "runs").iterdir()) == []


def test_a_slice_that_hangs_is_stopped_and_holds_up_the_others_no_longer(
    server, monkeypatch
):
    campaign = queued(server, repeats=1)
    hanging, other = campaign.runs.order_by("pk")
    command = Load.argv_of_slice

    def argv_of_slice(load, ordinal):
        if ordinal == 2 and load.bench.plan.run_id == hanging.pk:
            return ("sleep", "600")
        return command(load, ordinal)

    monkeypatch.setattr(Load, "argv_of_slice", argv_of_slice)
    monkeypatch.setattr(slices, "GRACE_SECONDS", 1.0)

    work_off(server.pk)

    hanging.refresh_from_db()
    other.refresh_from_db()
    assert (hanging.state, hanging.code) == (Run.State.FAILED, "step_timeout")
    assert other.state == Run.State.FINISHED
    assert other.commands.filter(step__startswith="slice-").count() == 5


# A connection that takes longer than a slice: pgbench ends in time, and no transaction has begun.
LATE = ("env", "PGOPTIONS=-c post_auth_delay=2")


@pytest.fixture
def stand_still(monkeypatch):
    """Let no transaction end in these slices of a run."""

    def stood(run, ordinals):
        command = Load.argv_of_slice

        def argv_of_slice(load, ordinal):
            argv = command(load, ordinal)
            is_late = ordinal in ordinals and load.bench.plan.run_id == run.pk
            return (*LATE, *argv) if is_late else argv

        monkeypatch.setattr(Load, "argv_of_slice", argv_of_slice)

    return stood


def test_a_slice_in_which_the_machine_stood_still_costs_its_round_alone(
    server, stand_still
):
    campaign = queued(server, repeats=1, parameters={"scale": 1, "duration": 10})
    late, _other = campaign.runs.order_by("pk")
    stand_still(late, {2})
    work_off(server.pk)

    late.refresh_from_db()
    assert late.state == Run.State.FINISHED
    rates = late.series.get(name="slice_tps").values
    assert [ordinal for ordinal, rate in enumerate(rates, 1) if rate is None] == [2]
    note = next(note for note in late.quality if note["code"] == "slices_empty")
    assert note["level"] == "warning"
    assert "1 of 10 slices" in note["message"]
    (row,) = Tables(campaign, "tps").list_rows()
    # Of the nine rounds with two slices, or fewer where others came and went.
    assert 3 <= row.comparison.freedom < 9


def test_a_run_without_any_transaction_has_no_figure(server, stand_still):
    campaign = queued(server, repeats=1)
    late, other = campaign.runs.order_by("pk")
    stand_still(late, set(range(1, 6)))
    work_off(server.pk)

    late.refresh_from_db()
    other.refresh_from_db()
    assert (late.state, late.code) == (Run.State.FAILED, "slice_incomplete")
    assert "No transaction was processed." in late.message
    assert other.state == Run.State.FINISHED


def test_a_cancelled_run_leaves_its_round(server, at_work):
    campaign, worker = at_work
    until_slice(campaign, 2)
    cancelled, other = campaign.runs.order_by("pk")

    transitions.cancel(run=cancelled)
    supervision.held_here.beat()
    worker.join(timeout=120)

    cancelled.refresh_from_db()
    other.refresh_from_db()
    assert (cancelled.state, other.state) == (Run.State.CANCELLED, Run.State.FINISHED)
    assert other.commands.filter(step__startswith="slice-").count() == 8
    assert not Lease.objects.filter(run__isnull=False).exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_arms_of_an_ablation_take_turns_where_both_sides_did(server, admin_user):
    newest = server.installations.filter(bindir__in=server.bindirs).order_by(
        "-version_num"
    )[:1]
    settings = {"track_io_timing": ["off", "on"]}
    campaign = queued(server, installations=list(newest), settings=settings, repeats=1)
    work_off(server.pk)
    a, b = campaign.cells.order_by("ordinal").values_list("pk", flat=True)
    found = explain(a, b, reader=admin_user)
    assert found.difference is not None
    ablation = ablations.start(found=found, by=admin_user, keys=["track_io_timing"])
    ablation.campaign.runs.filter(repeat__gt=1).delete()
    Campaign.objects.filter(pk=ablation.campaign_id).update(most_repeats=1)
    work_off(server.pk)
    runs = list(ablation.campaign.runs.select_related("cell"))
    assert {run.state for run in runs} == {Run.State.FINISHED}
    assert {run.cell.levels["arm"] for run in runs} == {
        "A",
        "B",
        "B again",
        "track_io_timing",
    }
    in_time = slices_of(ablation.campaign)
    assert overlapping(in_time) == []
    assert len({row[2] for row in in_time[:4]}) == 4
    connection.close()
