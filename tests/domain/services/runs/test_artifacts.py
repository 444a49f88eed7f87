"""Files of runs: kept once, and removed when they are old."""

import os
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.execution.reporter import ArtifactData
from runs.models import Artifact
from runs.services.runs import artifacts
from tests import factories

pytestmark = pytest.mark.django_db


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
