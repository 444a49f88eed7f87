"""Old data goes by kind and days, after a rehearsal; what is sealed or published stays."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from runs.execution.reporter import ArtifactData
from runs.models import AuditEntry, Command, Project, Run, Series, Upload
from runs.services import seals
from runs.services.database import perform
from runs.services.runs import artifacts
from tests import factories

pytestmark = pytest.mark.django_db
ALL = {"files": 30, "failures": 30, "uploads": 30, "logins": 0}
OLD = timedelta(days=31)


@pytest.fixture(autouse=True)
def retained(settings, tmp_path):
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    settings.RETENTION = ALL


def recorded(run, state, *, ago=OLD):
    """The run with a command, a series and a file, ended that long ago."""
    Command.objects.create(run=run, attempt=1, ordinal=1, step="measure", host="db", argv=["true"])
    Series.objects.create(run=run, name="tps", interval=1, values=[1.0])
    made = artifacts.store(run=run, data=ArtifactData("stdout", f"of {run.pk}".encode()))
    then = timezone.now() - ago
    type(made).objects.filter(pk=made.pk).update(created_at=then)
    Run.objects.filter(pk=run.pk).update(state=state, finished_at=then)
    return run


def seal(run):
    perform([seals.requesting(runs=[run.pk])])
    assert seals.seal() == 1


def runs(*states):
    return [recorded(factories.run(), each) for each in states]


def left():
    """The runs that have commands, and series."""
    return tuple(set(each.objects.values_list("run_id", flat=True)) for each in (Command, Series))


def test_a_rehearsal_counts_what_a_removal_removes(capsys):
    runs("failed", "cancelled")
    call_command("retain")
    counted = capsys.readouterr().out
    assert "failures older than 30 days: 4 would be removed" in counted
    assert "files older than 30 days: 2," in counted
    assert (Command.objects.count(), Series.objects.count()) == (2, 2)
    assert not AuditEntry.objects.filter(action="old_removed").exists()

    call_command("retain", "--remove")
    assert counted.replace("would be removed", "removed").startswith(capsys.readouterr().out)
    assert left() == (set(), set())


def test_sealed_runs_verify_afterwards_and_failures_keep_their_story(capsys):
    finished = factories.run()
    factories.finish(finished, tps=100.0)
    finished = recorded(finished, "finished")
    failed, young = runs("failed")[0], recorded(factories.run(), "failed", ago=timedelta(days=1))
    seal(finished)

    call_command("retain", "--remove")

    assert left() == ({finished.pk, young.pk}, {finished.pk, young.pk})
    assert Run.objects.filter(pk=failed.pk).exists()
    assert not artifacts.path_of(finished.artifacts.get().sha256).exists()
    call_command("verify")
    assert "1 runs" in capsys.readouterr().out


def test_a_failed_run_that_has_a_seal_keeps_everything():
    """As of one that had finished, and was changed by hand."""
    finished = factories.run()
    factories.finish(finished, tps=100.0)
    seal(finished)
    recorded(finished, "failed")

    call_command("retain", "--remove")

    assert left() == ({finished.pk}, {finished.pk})


def test_published_runs_keep_everything():
    published = factories.run(origin="published")
    recorded(published, "failed")

    call_command("retain", "--remove")

    assert left() == ({published.pk}, {published.pk})


def test_answers_to_uploads_and_ended_logins_go():
    for key, ago in (("old", OLD), ("new", timedelta())):
        made = Upload.objects.create(
            project=Project.objects.get_or_create(slug="default")[0], key=key, body_hash=""
        )
        Upload.objects.filter(pk=made.pk).update(created_at=timezone.now() - ago)
        then = timezone.now() - ago + timedelta(hours=1)
        Session.objects.create(session_key=key, session_data="", expire_date=then)

    call_command("retain", "--remove")

    assert Upload.objects.get().key == "new"
    assert Session.objects.get().session_key == "new"


def test_what_went_is_in_the_audit_trail():
    runs("failed")

    call_command("retain", "--remove")

    entries = AuditEntry.objects.filter(action="old_removed").order_by("pk")
    told = [(each.subject, each.after["removed"]) for each in entries]
    assert told == [("files", 1), ("failures: commands", 1), ("failures: series", 1)]
    assert {each.by_way_of for each in entries} == {"command retain"}


def test_what_has_no_number_stays(settings, capsys):
    settings.RETENTION = {}
    [failed] = runs("failed")

    call_command("retain", "--remove")

    assert left() == ({failed.pk}, {failed.pk})
    assert "BENCHLAB_RETENTION is not set" in capsys.readouterr().out
