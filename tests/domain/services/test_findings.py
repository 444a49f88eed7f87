"""Storing what a run found: all of it once, or nothing."""

import pytest

from runs.execution.reporter import ArtifactData, Findings, Note, SeriesData
from runs.models import CellSummary, Lease, Run
from runs.services import artifacts, findings, leases, runs, scenarios
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
