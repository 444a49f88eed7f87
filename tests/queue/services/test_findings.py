"""What a run has found, and its certificate: stored once, whole, under the lease's token."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.utils import timezone

from runs.campaigns.services import repeats
from runs.execution.errors import TargetProblem
from runs.execution.reporter import ArtifactData, Findings, Note
from runs.execution.steps.steps import StepResult
from runs.management.commands.judge_runs import Command
from runs.models import (
    Artifact,
    Campaign,
    CellSummary,
    Installation,
    Lease,
    Run,
    RunEvent,
    Server,
)
from runs.queue.services import (
    artifacts,
    attempts,
    certificates,
    leases,
    reporting,
    results,
    transitions,
    withdrawals,
)
from runs.queue.services import results as findings
from runs.queue.services.reporting import DatabaseReporter
from runs.tools.adapter import SeriesData
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


# Storing what a run found: all of it once, or nothing.


@pytest.fixture
def claim():
    scenarios.sync()
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    factories.campaign(
        on=server, factors={"version": ["16.14"], "clients": [1]}, repeats=2
    )
    return collecting(server)


def collecting(server) -> leases.Claim:
    claim = leases.claim(server_id=server.pk, holder="worker")
    for state in ("preparing", "measuring", "collecting"):
        assert transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )
    return claim


WORDING = {"text": "%(seconds)s s", "values": {"seconds": "2"}}


def found(tps: float = 1000.0) -> Findings:
    return Findings(
        measurements={"tps": tps, "latency_average": 2.0},
        series=[SeriesData("tps", "tps", (990.0, None, 1010.0), start=1.0)],
        artifacts=[ArtifactData("pgbench.out", b"tps = 1000\n" * 1000)],
        notes=[Note("prewarm_sequential", "read"), Note("x", "2 s", "info", WORDING)],
        settings={"work_mem": {"setting": "4096", "unit": "kB", "source": "default"}},
        server_version="16.14",
        tool_name="pgbench",
        tool_version="18.4",
    )


def finish(claim, tps=1000.0):
    assert findings.store(run_id=claim.run_id, token=claim.token, findings=found(tps))
    assert transitions.transition(
        run_id=claim.run_id, to="finished", code="finished", token=claim.token
    )
    return Run.objects.get(pk=claim.run_id)


def test_a_finished_run_has_all_that_was_found(claim):
    run = finish(claim)
    assert run.state == "finished"
    assert dict(run.measurements.values_list("metric__name", "value")) == {
        "tps": 1000.0,
        "latency_average": 2.0,
    }
    assert run.series.get().values == [990.0, None, 1010.0]
    assert (run.server_version, run.tool_name, run.tool_version) == (
        "16.14",
        "pgbench",
        "18.4",
    )
    assert run.settings.settings["work_mem"]["setting"] == "4096"
    assert run.quality == [
        {"code": "prewarm_sequential", "message": "read", "level": "warning"},
        {"code": "x", "message": "2 s", "level": "info", "wording": WORDING},
    ]


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
    assert (summary.n, summary.median, summary.minimum, summary.maximum) == (
        2,
        1000,
        900,
        1100,
    )


def test_equal_settings_are_stored_once(claim):
    first = finish(claim)
    second = finish(collecting(first.server))
    assert first.settings_id == second.settings_id


def test_a_worker_that_lost_the_run_stores_nothing(claim):
    transitions.transition(
        run_id=claim.run_id, to="lost", code="no_heartbeat", token=claim.token
    )
    assert not findings.store(run_id=claim.run_id, token=claim.token, findings=found())
    assert not findings.store(
        run_id=claim.run_id, token=claim.token, findings=found(), has_failed=True
    )
    run = Run.objects.get(pk=claim.run_id)
    assert run.state == "lost"
    assert run.measurements.count() == run.artifacts.count() == 0


def test_an_artifact_that_cannot_be_kept_does_not_cost_the_figures(
    claim, settings, tmp_path
):
    (tmp_path / "file").write_text("in the way")
    settings.ARTIFACTS_DIR = tmp_path / "file"
    run = finish(claim)
    assert run.state == "finished"
    assert "artifact_not_kept" in {note["code"] for note in run.quality}


def test_a_failed_run_keeps_its_output_and_no_measurement(claim):
    findings.store(
        run_id=claim.run_id, token=claim.token, findings=found(), has_failed=True
    )
    run = Run.objects.get(pk=claim.run_id)
    assert run.artifacts.get().name == "pgbench.out"
    assert run.measurements.count() == 0


def in_measuring(server) -> leases.Claim:
    claim = leases.claim(server_id=server.pk, holder="worker")
    for state in ("preparing", "measuring"):
        assert transitions.transition(
            run_id=claim.run_id, to=state, code=state, token=claim.token
        )
    return claim


@pytest.fixture
def again(claim) -> leases.Claim:
    """The claim of a second attempt, after one that failed with series and files of its own."""
    partial = Findings(
        series=[SeriesData("disk_util_vda", "%", (90.0,))],
        artifacts=[
            ArtifactData("flame-graph.svg", b"<svg/>"),
            ArtifactData("pgbench.out", b"?"),
        ],
    )
    assert findings.store(
        run_id=claim.run_id, token=claim.token, findings=partial, has_failed=True
    )
    failed = {"run_id": claim.run_id, "to": "failed", "code": "x", "token": claim.token}
    assert transitions.transition(**failed)
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
    findings.store_series(
        run_id=again.run_id, series=[SeriesData("tps", "tps", (1.0,))]
    )
    log = Findings(artifacts=[ArtifactData("server.log", b"out of memory")])
    assert findings.store(
        run_id=again.run_id, token=again.token, findings=log, has_failed=True
    )
    run = Run.objects.get(pk=again.run_id)
    assert [each.name for each in run.series.all()] == ["tps"]
    assert [each.name for each in run.artifacts.all()] == ["server.log"]


def report(reporter: DatabaseReporter, what: str) -> None:
    step = StepResult("pgbench", ("pgbench",), "", 0, 1.0, 2.0, "late", "")
    arguments = {
        "live_series": ([SeriesData("tps", "tps", (1.0,))],),
        "command": ("db", step),
        "event": ("cleanup_incomplete", TargetProblem("late")),
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
    transitions.transition(
        run_id=run.pk, to="lost", code="no_heartbeat", token=claim.token
    )
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
    found = run.commands.order_by("ordinal").values_list(
        "step", "ordinal", "exit_status"
    )
    assert list(found) == [("load", 2, 0), ("initdb", 3, 0)]


# Certificates are stored with a run, and lead to another run where that helps.


QUIET = {
    "processors": 2,
    "seconds": 60.0,
    "busy": 104.0,
    "stolen": 0.2,
    "servers": 70.0,
    "kernel": 2.0,
    "generator": 30.0,
}
BUSY = QUIET | {"busy": 118.0, "servers": 30.0, "generator": 14.0}


@pytest.fixture
def server():
    scenarios.sync()
    made = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=made)
    campaign = factories.campaign(
        "c", on=made, factors={"version": ["16.14"], "clients": [1]}, repeats=1
    )
    campaign.parameters = {"scale": 1, "duration": 60}
    campaign.save()
    campaign.cells.update(installation=Installation.objects.get())
    campaign.runs.update(plan=PLAN)
    return made


PLAN = {
    "run_id": 1,
    "campaign": "c",
    "scenario": "fixed-point-read",
    "host": "192.0.2.1",
    "port": 22,
    "username": "postgres",
    "base_dir": "/srv/benchlab",
    "bindir": "/usr/bin",
    "version_num": 160014,
    "client_bindir": "/usr/bin",
    "client_version_num": 160014,
    "settings": {},
    "initdb_options": [],
    "levels": {"version": "16.14", "clients": 1},
    "parameters": {"scale": 1, "duration": 60},
    "cluster_key": "",
}


def measured(server, usage=None, **changed):
    claim = collecting(server)
    findings = replace(found(), usage={"database": usage} if usage else {}, **changed)
    assert results.store(run_id=claim.run_id, token=claim.token, findings=findings)
    assert transitions.transition(
        run_id=claim.run_id, to="finished", code="x", token=claim.token
    )
    return Run.objects.get(pk=claim.run_id)


def codes(run):
    return [each["code"] for each in run.certificate["findings"]]


def test_a_quiet_run_is_valid_and_its_campaign_ends(server):
    run = measured(server, QUIET)

    assert run.validity == "valid"
    assert codes(run) == ["generator_on_same_machine"]
    assert run.certificate["usage"] == {"database": QUIET}
    assert Campaign.objects.get().state == "finished"


@pytest.mark.parametrize(
    ("parameters", "seconds", "in_turn", "asked"),
    [
        ({"duration": 2}, 60.0, (0, 1), 2.0),
        ({"duration": 6}, 0.5, (0, 1), 0.5),  # fio is done when its size is
        ({"scale_percent": 20}, 3.0, (0, 1), None),  # statements take what they take
        # Of most slices the usage is not known, where another worker began them.
        ({"duration": 60}, 3.3, (1, 2), 120.0),
    ],
)
def test_a_load_is_as_long_as_it_was_on(parameters, seconds, in_turn, asked):
    usage = {"database": QUIET | {"seconds": seconds}}
    assert certificates._seconds_of_load(parameters, usage, *in_turn) == asked


@pytest.mark.parametrize(
    ("name", "source", "is_foreign"),
    [
        ("work_mem", "user", True),
        ("datestyle", "environment variable", True),
        # PostgreSQL 14 says so of what it takes from the limit of its stack, as 15 does by default.
        ("max_stack_depth", "environment variable", False),
        ("max_stack_depth", "user", True),
        ("application_name", "client", False),
        ("work_mem", "configuration file", False),
    ],
)
def test_settings_from_elsewhere_are_those_that_somebody_has_set(
    name, source, is_foreign
):
    settings = {name: {"setting": "1", "unit": "", "source": source}}
    assert certificates._foreign_settings(settings) == ({name} if is_foreign else set())


def test_a_run_under_foreign_load_is_measured_again_once(server):
    first = measured(server, BUSY)
    assert first.validity == "doubtful"
    again = Run.objects.exclude(pk=first.pk).get()
    assert (again.again_of_id, again.repeat, again.state) == (first.pk, 2, "queued")
    assert again.plan["run_id"] == again.pk
    assert RunEvent.objects.get(run=again, code="measured_again").message == (
        f"Run {first.pk} is doubtful or invalid, and is measured again."
    )
    assert Campaign.objects.get().state == "running"

    measured(server, BUSY)

    assert Run.objects.count() == 2
    assert Campaign.objects.get().state == "finished"
    assert first.cell.summaries.get(metric__name="tps").n == 2


@pytest.mark.parametrize(
    ("leaves_out", "state"), [(True, "withdrawn"), (False, "finished")]
)
def test_an_invalid_run_is_left_out_where_the_instance_does_so(
    server, settings, leaves_out, state
):
    settings.LEAVE_OUT_INVALID = leaves_out
    run = measured(server, BUSY | {"servers": 4.0, "generator": 2.0})
    assert (run.validity, run.state) == ("invalid", state)
    assert run.cell.summaries.exists() == (not leaves_out)


def test_a_campaign_that_asks_for_none_or_two_gets_as_many(server):
    Campaign.objects.update(remeasures=2)
    for _each in range(3):
        measured(server, BUSY)
    assert Run.objects.count() == 3
    assert leases.claim(server_id=server.pk, holder="worker") is None


def test_a_campaign_that_stated_so_leaves_out_what_is_in_doubt(server):
    Campaign.objects.update(leaves_out_doubtful=True)
    first = measured(server, BUSY)
    first.refresh_from_db()
    assert (first.state, first.message) == ("withdrawn", repeats.LEFT_OUT)
    assert not first.cell.summaries.exists()
    # It is measured again all the same, and what is valid counts.
    measured(server, QUIET)

    assert first.cell.summaries.get(metric__name="tps").n == 1
    assert Campaign.objects.get().state == "finished"
    assert RunEvent.objects.filter(run=first, code="withdrawn").count() == 1


def test_older_rules_are_replaced_some_runs_at_a_time_and_then_nothing_is_asked(
    server, django_assert_num_queries, monkeypatch
):
    Campaign.objects.update(remeasures=0)
    run = measured(server, QUIET)
    Run.objects.update(
        certificate={"rules": 0, "usage": {"database": BUSY}}, validity="valid"
    )
    monkeypatch.setattr(certificates, "MOST_AT_A_TIME", 1)

    assert certificates.judge_some() == 1
    run.refresh_from_db()
    assert (run.validity, run.certificate["rules"]) == (
        "doubtful",
        certificates.RULES_VERSION,
    )
    assert certificates.judge_some() is None
    with django_assert_num_queries(1):
        assert certificates.judge_some() is None


@pytest.mark.parametrize(
    ("reason", "state"),
    [(certificates.REJUDGED, "withdrawn"), ("The fan was noisy.", "finished")],
)
def test_what_newer_rules_restored_is_left_out_again_and_what_a_person_did_is_not(
    server, settings, reason, state
):
    settings.LEAVE_OUT_INVALID = True
    run = measured(server, BUSY | {"servers": 4.0, "generator": 2.0})
    withdrawals.restore(run=run, reason=reason)
    Run.objects.update(validity="doubtful")
    Run.objects.filter(pk=run.pk).update(certificate=run.certificate | {"rules": 0})
    certificates.judge_again()
    run.refresh_from_db()
    assert (run.validity, run.state) == ("invalid", state)


def test_a_run_that_was_never_judged_gets_its_certificate(server):
    Campaign.objects.update(remeasures=0)
    run = measured(server, QUIET)
    Run.objects.update(certificate={}, validity="")

    certificates.judge_again()

    run.refresh_from_db()
    assert run.certificate["rules"] == certificates.RULES_VERSION


def test_nothing_is_measured_again_on_demand_of_nobody(server):
    Campaign.objects.update(remeasures=0)
    measured(server, BUSY)

    assert Run.objects.count() == 1


def test_what_another_run_cannot_cure_is_not_measured_again(server):
    Installation.objects.update(cflags="-g -O0")

    run = measured(server, QUIET)

    assert (run.validity, codes(run)[-1]) == ("doubtful", "not_optimised")
    assert Run.objects.count() == 1


def test_a_run_whose_processors_nobody_watched_has_no_certificate(server):
    run = measured(server)

    assert (run.validity, codes(run)[0]) == ("", "usage_unknown")


def test_page_and_programs_say_why_a_run_is_in_doubt(server, client):
    run = measured(server, BUSY)

    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "doubtful" in page
    assert (
        "database: 60.0 % of the processor time was used by neither PostgreSQL" in page
    )
    told = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert told["validity"] == told["certificate"]["validity"] == "doubtful"
    first = told["certificate"]["findings"][0]
    assert (first["code"], first["weight"]) == ("foreign_load", "doubt")
    assert first["figures"] == {"machine": "database", "share": 60.0}
    assert "60.0 %" in first["message"]
    listed = client.get("/api/v1/runs/?validity=doubtful").json()["results"]
    assert [each["id"] for each in listed] == [run.pk]
    grid = client.get("/campaigns/c/").content.decode()
    assert "⚠ 1 doubtful" in grid
    assert "repeat 1: finished, doubtful" in grid


def test_runs_are_judged_again_by_what_is_stored_of_them(server):
    run = measured(server, BUSY)
    Run.objects.filter(pk=run.pk).update(
        validity="valid", certificate={"rules": 0, "usage": {"database": BUSY}}
    )

    Command().handle()

    run.refresh_from_db()
    assert (run.validity, codes(run)[0]) == ("doubtful", "foreign_load")


def kept(run, name, content, *, days):
    """An artifact of that age."""
    made = factories.artifact(run=run, data=ArtifactData(name, content))
    made.created_at = timezone.now() - timedelta(days=days)
    made.save()
    os.utime(artifacts.path_of(made.sha256), (made.created_at.timestamp(),) * 2)
    return made


@pytest.fixture
def old(settings):
    settings.RETENTION = {"files": 30}
    run = factories.run()
    return kept(run, "stdout", b"old", days=100)


def prune(*words):
    call_command("retain", "--remove", *words)


def is_there(artifact):
    return artifacts.path_of(artifact.sha256).exists()


def test_old_files_go_and_their_names_stay(old):
    young = kept(old.run, "stderr", b"young", days=10)

    prune()

    assert not is_there(old)
    assert is_there(young)
    assert Artifact.objects.filter(pk=old.pk, sha256=old.sha256, size=3).exists()
    with pytest.raises(FileNotFoundError):
        artifacts.open_artifact(old)


def test_content_that_a_younger_run_has_as_well_is_kept(old):
    kept(factories.run(), "log", b"old", days=1)

    prune()

    assert is_there(old)


@pytest.mark.parametrize("of", ["name", "campaign"])
def test_what_is_to_be_kept_is_kept_whatever_its_age(old, of):
    word = old.name if of == "name" else old.run.campaign.slug

    prune("--keep", "else", "--keep", word)

    assert is_there(old)


def test_a_rehearsal_removes_nothing(old, capsys):
    call_command("retain")

    assert is_there(old)
    assert "files older than 30 days: 1," in capsys.readouterr().out


def test_the_same_content_is_written_again_after_it_went(old):
    prune()

    factories.artifact(run=factories.run(), data=ArtifactData("stdout", b"old"))

    assert artifacts.open_artifact(old).read() == b"old"


def test_content_that_no_artifact_names_any_more_goes_when_it_is_old(old):
    """As of an attempt that was followed by another one."""
    digest, path = old.sha256, artifacts.path_of(old.sha256)
    young = kept(old.run, "stderr", b"young", days=0)
    Artifact.objects.all().delete()
    long_ago = (timezone.now() - timedelta(days=100)).timestamp()
    os.utime(path, (long_ago, long_ago))

    prune()

    assert not artifacts.path_of(digest).exists()
    assert is_there(young)
