"""Storing what a run found: all of it once, or nothing."""

import asyncio

import pytest
from asgiref.sync import async_to_sync

from runs.execution.reporter import ArtifactData, Findings, Note, SeriesData
from runs.execution.steps import StepResult
from runs.models import CellSummary, Lease, Run, Server
from runs.services.campaigns import scenarios
from runs.services.runs import artifacts, attempts, leases, reporting, runs
from runs.services.runs import results as findings
from runs.services.runs.reporting import DatabaseReporter
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def claim():
    scenarios.sync()
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    factories.campaign(on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=2)
    return collecting(server)


def collecting(server) -> leases.Claim:
    claim = leases.claim(server_id=server.pk, holder="worker")
    for state in ("preparing", "measuring", "collecting"):
        assert runs.transition(run_id=claim.run_id, to=state, code=state, token=claim.token)
    return claim


def found(tps: float = 1000.0) -> Findings:
    return Findings(
        measurements={"tps": tps, "latency_average": 2.0},
        series=[SeriesData("tps", "tps", (990.0, None, 1010.0), start=1.0)],
        artifacts=[ArtifactData("pgbench.out", b"tps = 1000\n" * 1000)],
        notes=[Note("prewarm_sequential", "read")],
        settings={"work_mem": {"setting": "4096", "unit": "kB", "source": "default"}},
        server_version="16.14",
        tool_name="pgbench",
        tool_version="18.4",
    )


def finish(claim, tps=1000.0):
    assert findings.store(run_id=claim.run_id, token=claim.token, findings=found(tps))
    assert runs.transition(run_id=claim.run_id, to="finished", code="finished", token=claim.token)
    return Run.objects.get(pk=claim.run_id)


def test_a_finished_run_has_all_that_was_found(claim):
    run = finish(claim)
    assert run.state == "finished"
    assert dict(run.measurements.values_list("metric__name", "value")) == {
        "tps": 1000.0,
        "latency_average": 2.0,
    }
    assert run.series.get().values == [990.0, None, 1010.0]
    assert (run.server_version, run.tool_name, run.tool_version) == ("16.14", "pgbench", "18.4")
    assert run.settings.settings["work_mem"]["setting"] == "4096"
    assert run.quality == [{"code": "prewarm_sequential", "message": "read", "level": "warning"}]


def test_an_artifact_comes_back_as_it_was_and_lies_compressed(claim, settings):
    artifact = finish(claim).artifacts.get()
    with artifacts.open_artifact(artifact) as stream:
        assert stream.read() == b"tps = 1000\n" * 1000
    [stored] = [path for path in settings.ARTIFACTS_DIR.rglob("*") if path.is_file()]
    assert stored.stat().st_size < artifact.size / 10


def test_the_cells_summary_is_kept_in_the_same_act(claim):
    run = finish(claim, 900)
    finish(collecting(run.server), 1100)
    summary = CellSummary.objects.get(cell=run.cell, metric__name="tps")
    assert (summary.n, summary.median, summary.minimum, summary.maximum) == (2, 1000, 900, 1100)


def test_equal_settings_are_stored_once(claim):
    first = finish(claim)
    second = finish(collecting(first.server))
    assert first.settings_id == second.settings_id


def test_a_worker_that_lost_the_run_stores_nothing(claim):
    runs.transition(run_id=claim.run_id, to="lost", code="no_heartbeat", token=claim.token)
    assert not findings.store(run_id=claim.run_id, token=claim.token, findings=found())
    assert not findings.keep_partial(run_id=claim.run_id, token=claim.token, findings=found())
    run = Run.objects.get(pk=claim.run_id)
    assert run.state == "lost"
    assert run.measurements.count() == run.artifacts.count() == 0


def test_an_artifact_that_cannot_be_kept_does_not_cost_the_figures(claim, settings, tmp_path):
    (tmp_path / "file").write_text("in the way")
    settings.ARTIFACTS_DIR = tmp_path / "file"
    run = finish(claim)
    assert run.state == "finished"
    assert "artifact_not_kept" in {note["code"] for note in run.quality}


def test_a_failed_run_keeps_its_output_and_no_measurement(claim):
    findings.keep_partial(run_id=claim.run_id, token=claim.token, findings=found())
    run = Run.objects.get(pk=claim.run_id)
    assert run.artifacts.get().name == "pgbench.out"
    assert run.measurements.count() == 0


def in_measuring(server) -> leases.Claim:
    claim = leases.claim(server_id=server.pk, holder="worker")
    for state in ("preparing", "measuring"):
        assert runs.transition(run_id=claim.run_id, to=state, code=state, token=claim.token)
    return claim


@pytest.fixture
def again(claim) -> leases.Claim:
    """The claim of a second attempt, after one that failed with series and files of its own."""
    partial = Findings(
        series=[SeriesData("disk_util_vda", "%", (90.0,))],
        artifacts=[ArtifactData("flame-graph.svg", b"<svg/>"), ArtifactData("pgbench.out", b"?")],
    )
    assert findings.keep_partial(run_id=claim.run_id, token=claim.token, findings=partial)
    failed = {"run_id": claim.run_id, "to": "failed", "code": "x", "token": claim.token}
    assert runs.transition(**failed)
    Run.objects.filter(pk=claim.run_id).update(plan={})
    run = attempts.retry(run=Run.objects.get(pk=claim.run_id))
    return in_measuring(run.server)


def test_what_an_attempt_before_left_does_not_pass_for_the_finished_ones(again):
    assert findings.store(run_id=again.run_id, token=again.token, findings=found())
    run = Run.objects.get(pk=again.run_id)
    assert [each.name for each in run.series.all()] == ["tps"]
    assert [each.name for each in run.artifacts.all()] == ["pgbench.out"]
    with artifacts.open_artifact(run.artifacts.get()) as stream:
        assert stream.read() == b"tps = 1000\n" * 1000


def test_an_attempt_that_fails_as_well_keeps_what_it_had_shown_and_nothing_older(again):
    findings.store_series(run_id=again.run_id, series=[SeriesData("tps", "tps", (1.0,))])
    log = Findings(artifacts=[ArtifactData("server.log", b"out of memory")])
    assert findings.keep_partial(run_id=again.run_id, token=again.token, findings=log)
    run = Run.objects.get(pk=again.run_id)
    assert [each.name for each in run.series.all()] == ["tps"]
    assert [each.name for each in run.artifacts.all()] == ["server.log"]


def report(reporter: DatabaseReporter, what: str) -> None:
    step = StepResult("pgbench", ("pgbench",), "", 0, 1.0, 2.0, "late", "")
    arguments = {
        "live_series": ([SeriesData("tps", "tps", (1.0,))],),
        "command": ("db", step),
        "event": ("cleanup_incomplete", "late"),
        "cluster": ("/srv/benchlab/clusters/late",),
    }
    options = {"prepared_now": True} if what == "cluster" else {}

    async def tell() -> None:
        await getattr(reporter, what)(*arguments[what], **options)
        await reporter.settle()

    async_to_sync(tell)()


@pytest.mark.parametrize("what", ["live_series", "command", "event", "cluster"])
def test_a_late_report_of_a_worker_that_was_given_up_changes_nothing(claim, what):
    """As that of one for which the results database was away while another worker went on."""
    run = Run.objects.get(pk=claim.run_id)
    reporter = DatabaseReporter(run=run, token=claim.token)
    runs.transition(run_id=run.pk, to="lost", code="no_heartbeat", token=claim.token)
    finish(collecting(run.server))
    events = run.events.count()
    report(reporter, what)
    assert run.series.get().values == [990.0, None, 1010.0]
    assert (run.commands.count(), run.events.count()) == (0, events)
    run.refresh_from_db()
    assert run.cluster is None
    assert not Server.objects.get(pk=run.server_id).needs_sweep


@pytest.mark.parametrize("what", ["live_series", "command", "event", "cluster"])
def test_what_the_worker_of_a_run_reports_is_kept(claim, what):
    run = Run.objects.get(pk=claim.run_id)
    report(DatabaseReporter(run=run, token=claim.token), what)
    run.refresh_from_db()
    kept = {
        "live_series": run.series.count(),
        "command": run.commands.count(),
        "event": run.events.filter(code="cleanup_incomplete").count(),
        "cluster": int(run.cluster is not None),
    }
    assert kept == dict.fromkeys(kept, 0) | {what: 1}


def test_steps_are_stored_before_the_next_phase_and_the_next_one_does_not_wait_for_them(
    claim, monkeypatch
):
    """Short ones that follow each other are stored together, at the latest for the phase."""
    monkeypatch.setattr(reporting, "SECONDS_BEFORE_STORING", 60)
    run = Run.objects.get(pk=claim.run_id)
    Run.objects.filter(pk=run.pk).update(state="preparing")
    reporter = DatabaseReporter(run=run, token=claim.token)
    shown = []

    async def prepare() -> None:
        for name, status in (("initdb", 1), ("load", 0), ("initdb", 0)):
            step = StepResult(name, (name,), "", status, 1.0, 2.0, "", "")
            await reporter.command("db", step)
        await asyncio.sleep(0.1)
        shown.append(len(reporter._waiting))
        await reporter.phase("measuring")
        shown.append(len(reporter._waiting))

    async_to_sync(prepare)()
    assert shown == [3, 0]
    found = run.commands.order_by("ordinal").values_list("step", "ordinal", "exit_status")
    assert list(found) == [("load", 2, 0), ("initdb", 3, 0)]
