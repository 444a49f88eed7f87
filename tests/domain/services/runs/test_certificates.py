"""Certificates are stored with a run, and lead to another run where that helps."""

import os
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.execution.reporter import ArtifactData
from runs.management.commands.judge_runs import Command
from runs.models import Artifact, Campaign, Installation, Lease, Run, RunEvent
from runs.services.campaigns import repeats, scenarios
from runs.services.runs import artifacts, certificates, leases, results, runs
from tests import factories
from tests.domain.services.runs.test_findings import collecting, found

pytestmark = pytest.mark.django_db

QUIET = {
    "processors": 2, "seconds": 60.0, "busy": 104.0, "stolen": 0.2, "servers": 70.0,
    "kernel": 2.0, "generator": 30.0,
}  # fmt: skip
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
    "run_id": 1, "campaign": "c", "scenario": "fixed-point-read", "host": "192.0.2.1", "port": 22,
    "username": "postgres", "base_dir": "/srv/benchlab", "bindir": "/usr/bin",
    "version_num": 160014, "client_bindir": "/usr/bin", "client_version_num": 160014,
    "settings": {}, "initdb_options": [], "levels": {"version": "16.14", "clients": 1},
    "parameters": {"scale": 1, "duration": 60}, "cluster_key": "",
}  # fmt: skip


def finish(server, usage=None, **changed):
    claim = collecting(server)
    findings = replace(found(), usage={"database": usage} if usage else {}, **changed)
    assert results.store(run_id=claim.run_id, token=claim.token, findings=findings)
    assert runs.transition(run_id=claim.run_id, to="finished", code="x", token=claim.token)
    return Run.objects.get(pk=claim.run_id)


def codes(run):
    return [each["code"] for each in run.certificate["findings"]]


def test_a_quiet_run_is_valid_and_its_campaign_ends(server):
    run = finish(server, QUIET)

    assert run.validity == "valid"
    assert codes(run) == ["generator_on_same_machine"]
    assert run.certificate["usage"] == {"database": QUIET}
    assert Campaign.objects.get().state == "finished"


@pytest.mark.parametrize(
    ("parameters", "seconds", "asked"),
    [
        ({"duration": 2}, 60.0, 2.0),
        ({"duration": 2, "pairs": 6}, 13.0, 12.0),  # a duet
        ({"duration": 6}, 0.5, 0.5),  # fio is done when its size is
        ({"scale_percent": 20}, 3.0, None),  # statements take what they take
    ],
)
def test_a_load_is_as_long_as_it_was_on(parameters, seconds, asked):
    usage = {"database": QUIET | {"seconds": seconds}}
    assert certificates._seconds_of_load(parameters, usage) == asked


def test_a_run_under_foreign_load_is_measured_again_once(server):
    first = finish(server, BUSY)
    assert first.validity == "doubtful"
    again = Run.objects.exclude(pk=first.pk).get()
    assert (again.again_of_id, again.repeat, again.state) == (first.pk, 2, "queued")
    assert again.plan["run_id"] == again.pk
    assert RunEvent.objects.get(run=again, code="measured_again").message == (
        f"Run {first.pk} is in doubt, and is measured again."
    )
    assert Campaign.objects.get().state == "running"

    finish(server, BUSY)

    assert Run.objects.count() == 2
    assert Campaign.objects.get().state == "finished"
    assert first.cell.summaries.get(metric__name="tps").n == 2


def test_a_campaign_that_asks_for_none_or_two_gets_as_many(server):
    Campaign.objects.update(remeasures=2)
    for _each in range(3):
        finish(server, BUSY)
    assert Run.objects.count() == 3
    assert leases.claim(server_id=server.pk, holder="worker") is None


def test_a_campaign_that_stated_so_leaves_out_what_is_in_doubt(server):
    Campaign.objects.update(leaves_out_doubtful=True)
    first = finish(server, BUSY)
    first.refresh_from_db()
    assert (first.state, first.message) == ("withdrawn", repeats.LEFT_OUT)
    assert not first.cell.summaries.exists()
    # It is measured again all the same, and what is valid counts.
    finish(server, QUIET)

    assert first.cell.summaries.get(metric__name="tps").n == 1
    assert Campaign.objects.get().state == "finished"
    assert RunEvent.objects.filter(run=first, code="withdrawn").count() == 1


def test_older_rules_are_replaced_some_runs_at_a_time_and_then_nothing_is_asked(
    server, django_assert_num_queries, monkeypatch
):
    Campaign.objects.update(remeasures=0)
    run = finish(server, QUIET)
    Run.objects.update(certificate={"rules": 0, "usage": {"database": BUSY}}, validity="valid")
    monkeypatch.setattr(certificates, "MOST_AT_A_TIME", 1)

    assert certificates.judge_some() == 1
    run.refresh_from_db()
    assert (run.validity, run.certificate["rules"]) == ("doubtful", certificates.RULES_VERSION)
    assert certificates.judge_some() is None
    with django_assert_num_queries(1):
        assert certificates.judge_some() is None


def test_a_run_that_was_never_judged_gets_its_certificate(server):
    Campaign.objects.update(remeasures=0)
    run = finish(server, QUIET)
    Run.objects.update(certificate={}, validity="")

    certificates.judge_again()

    run.refresh_from_db()
    assert run.certificate["rules"] == certificates.RULES_VERSION


def test_nothing_is_measured_again_on_demand_of_nobody(server):
    Campaign.objects.update(remeasures=0)
    finish(server, BUSY)

    assert Run.objects.count() == 1


def test_what_another_run_cannot_cure_is_not_measured_again(server):
    Installation.objects.update(cflags="-g -O0")

    run = finish(server, QUIET)

    assert (run.validity, codes(run)[-1]) == ("doubtful", "not_optimised")
    assert Run.objects.count() == 1


def test_a_run_whose_processors_nobody_watched_has_no_certificate(server):
    run = finish(server)

    assert (run.validity, codes(run)[0]) == ("", "usage_unknown")


def test_page_and_programs_say_why_a_run_is_in_doubt(server, client):
    run = finish(server, BUSY)

    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "doubtful" in page
    assert "database: 60.0 % of the processors were taken by neither PostgreSQL" in page
    told = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert told["validity"] == told["certificate"]["validity"] == "doubtful"
    first = told["certificate"]["findings"][0]
    assert (first["code"], first["weight"]) == ("foreign_load", "doubt")
    assert first["figures"] == {"machine": "database", "share": 60.0}
    assert "60.0 %" in first["message"]
    listed = client.get("/api/v1/runs/?validity=doubtful").json()["results"]
    assert [each["id"] for each in listed] == [run.pk]
    grid = client.get("/campaigns/c/").content.decode()
    assert "1 run in doubt" in grid
    assert "repeat 1: finished, in doubt" in grid


def test_runs_are_judged_again_by_what_is_stored_of_them(server):
    run = finish(server, BUSY)
    Run.objects.filter(pk=run.pk).update(
        validity="valid", certificate={"rules": 0, "usage": {"database": BUSY}}
    )

    Command().handle()

    run.refresh_from_db()
    assert (run.validity, codes(run)[0]) == ("doubtful", "foreign_load")


def kept(run, name, content, *, days):
    """An artifact of that age."""
    made = artifacts.store(run=run, data=ArtifactData(name, content))
    made.created_at = timezone.now() - timedelta(days=days)
    made.save()
    return made


@pytest.fixture
def old():
    run = factories.run()
    return kept(run, "stdout", b"old", days=100)


def is_there(artifact):
    return artifacts.path_of(artifact.sha256).exists()


def test_old_files_go_and_their_names_stay(old):
    young = kept(old.run, "stderr", b"young", days=10)

    call_command("prune_artifacts", "--older-than", "30")

    assert not is_there(old)
    assert is_there(young)
    assert Artifact.objects.filter(pk=old.pk, sha256=old.sha256, size=3).exists()
    with pytest.raises(FileNotFoundError):
        artifacts.open_artifact(old)


def test_content_that_a_younger_run_has_as_well_is_kept(old):
    kept(factories.run(), "log", b"old", days=1)

    call_command("prune_artifacts", "--older-than", "30")

    assert is_there(old)


@pytest.mark.parametrize("of", ["name", "campaign"])
def test_what_is_to_be_kept_is_kept_whatever_its_age(old, of):
    word = old.name if of == "name" else old.run.campaign.slug

    call_command("prune_artifacts", "--older-than", "30", "--keep", "else", "--keep", word)

    assert is_there(old)


def test_a_rehearsal_removes_nothing(old, capsys):
    call_command("prune_artifacts", "--older-than", "30", "--dry-run")

    assert is_there(old)
    assert "1 files" in capsys.readouterr().out


def test_the_same_content_is_written_again_after_it_went(old):
    call_command("prune_artifacts", "--older-than", "30")

    artifacts.store(run=factories.run(), data=ArtifactData("stdout", b"old"))

    assert artifacts.open_artifact(old).read() == b"old"


def test_a_negative_age_is_refused(db):
    with pytest.raises(CommandError, match="number of days"):
        call_command("prune_artifacts", "--older-than", "-1")


def test_content_that_no_artifact_names_any_more_goes_when_it_is_old(old):
    """As of an attempt that was followed by another one."""
    digest, path = old.sha256, artifacts.path_of(old.sha256)
    young = kept(old.run, "stderr", b"young", days=0)
    Artifact.objects.all().delete()
    long_ago = (timezone.now() - timedelta(days=100)).timestamp()
    os.utime(path, (long_ago, long_ago))

    call_command("prune_artifacts", "--older-than", "30")

    assert not artifacts.path_of(digest).exists()
    assert is_there(young)
