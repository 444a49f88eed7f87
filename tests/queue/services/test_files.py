"""Files of runs: stored once, found again, and removed when nothing needs them."""

import importlib
import os
import time
import zipfile
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.utils import timezone

from runs.execution.reporter import ArtifactData
from runs.models import Artifact
from runs.queue.services import artifacts
from tests import factories

FILES = {"stdout": b"tps = 1\n" * 50, "stderr": b"", "log": b"x" * 3_000_000}
DAYS = 24 * 3600.0


@pytest.fixture
def run(db):
    return factories.run()


def store(run, files=FILES):
    assert (
        artifacts.store_all((run.pk, ArtifactData(*each)) for each in files.items())
        == []
    )


def content_of(run):
    return {
        each.name: artifacts.open_artifact(each).read() for each in run.artifacts.all()
    }


def in_folder(settings):
    return {
        path.name for path in Path(settings.ARTIFACTS_DIR).rglob("*") if path.is_file()
    }


def age(settings, days):
    at = time.time() - days * DAYS
    for path in Path(settings.ARTIFACTS_DIR).glob("??/*.gz"):
        os.utime(path, (at, at))


def prune(days, **options):
    before = timezone.now() - timedelta(days=days)
    return artifacts.prune(before=before, keep=[], **options)


def test_each_file_is_stored_once_whoever_has_it(
    run, settings, django_assert_num_queries
):
    with django_assert_num_queries(1):
        store(run)
    store(factories.run())
    assert content_of(run) == FILES
    assert len(in_folder(settings)) == len(FILES)
    digests = [each.sha256 for each in run.artifacts.all()]
    assert artifacts.missing([*digests, "0" * 64]) == {"0" * 64}
    assert list(artifacts.changed()) == []


def test_what_a_deleted_run_left_goes_when_it_is_old(run, settings):
    store(run)
    run.artifacts.all().delete()
    assert prune(days=30).files == 0
    age(settings, days=31)
    told = prune(days=30, is_rehearsal=True)
    assert told.files == len(FILES)
    assert prune(days=30) == told
    assert in_folder(settings) == set()


def test_a_file_that_a_run_comes_to_rely_on_is_not_removed_before_the_run_says_so(
    run, settings
):
    """The row of that run is not committed yet, and nobody else sees it."""
    store(run)
    run.artifacts.all().update(created_at=timezone.now() - timedelta(days=60))
    age(settings, days=60)
    rows = [(factories.run().pk, ArtifactData("stdout", FILES["stdout"]))]
    artifacts.store_all(rows)
    Artifact.objects.filter(run=rows[0][0]).delete()

    assert prune(days=30).files == len(FILES) - 1
    assert (
        artifacts.open_artifact(run.artifacts.get(name="stdout")).read()
        == FILES["stdout"]
    )


def test_packs_of_0_2_are_taken_apart(run, settings):
    store(run)
    pack, gone = UUID(int=7), []
    path = Path(settings.ARTIFACTS_DIR, "packs", pack.hex[:2], f"{pack.hex}.zip")
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as members:
        for each in Path(settings.ARTIFACTS_DIR).glob("??/*.gz"):
            members.write(each, each.name)
            each.unlink()
    rows = [SimpleNamespace(pk=each, delete=gone.clear) for each in (pack, UUID(int=8))]
    objects = SimpleNamespace(
        order_by=lambda _by: SimpleNamespace(iterator=lambda: iter(rows))
    )
    apps = SimpleNamespace(get_model=lambda *_name: SimpleNamespace(objects=objects))

    importlib.import_module("runs.migrations.0063_no_packs").take_out(apps, None)

    assert content_of(run) == FILES
    assert not path.exists()
