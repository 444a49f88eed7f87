"""Files of runs in a bucket: a SeaweedFS of the test's own, with keys that it checks."""

import gzip
import hashlib
import io
import os
import socket
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from benchlab import bucket
from runs.access.services import projects
from runs.exchange.services import exporting
from runs.execution.reporter import ArtifactData
from runs.models import Membership, Run
from runs.operations.selectors import health_checks
from runs.operations.services import backups, doctor
from runs.queue.services import artifacts, file_store
from tests import bucket_store, factories

CONTENT = b"tps = 1\n" * 500
DIGEST = hashlib.sha256(CONTENT).hexdigest()
KEY = f"{DIGEST[:2]}/{DIGEST}.gz"

COMMANDS = {
    "verify": ["--files"],
    "retain": [],
    "export_project": ["secret"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The address of a store that runs, with one bucket."""
    if reason := bucket_store.why_not():
        pytest.skip(reason)
    with bucket_store.running(tmp_path_factory.mktemp("weed")) as endpoint:
        client = bucket_store.client(endpoint)
        client.put_object(Bucket="lab", Key="of somebody else", Body=b"theirs")
        yield endpoint


@pytest.fixture
def use(settings, monkeypatch, request):
    """Set the address and the keys."""
    monkeypatch.setattr(file_store, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(file_store, "_silent_until", 0.0)
    monkeypatch.setattr(file_store, "_hangs_until", 0.0)

    def use(endpoint, *, key="key", secret="secret", name="lab"):
        bucket._storage.cache_clear()
        settings.AWS_ACCESS_KEY_ID, settings.AWS_SECRET_ACCESS_KEY = key, secret
        prefix = f"{os.getpid()}/{hashlib.md5(request.node.name.encode()).hexdigest()}"
        text = f"s3://{name}/{prefix}?endpoint={endpoint}&region=us-east-1"
        settings.ARTIFACTS_BUCKET = bucket.address(text)

    yield use
    bucket._storage.cache_clear()


@pytest.fixture
def kept(db, use, store, django_capture_on_commit_callbacks):
    """A run with a file, in the bucket."""
    use(store)
    project = projects.create(slug="secret", is_public=False)
    run = factories.campaign("c", project=project).runs.first()
    with django_capture_on_commit_callbacks(execute=True):
        return factories.artifact(
            run=run, data=ArtifactData("out", CONTENT, "text/plain")
        )


def in_bucket():
    return {each.key for each in bucket.stored()}


def in_folder(settings):
    folder = settings.ARTIFACTS_DIR
    return {
        str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://lab", bucket.Address("lab")),
        ("s3://lab/", bucket.Address("lab")),
        (
            "s3://lab/a/b?endpoint=https://s3.example:9000/&region=eu-1",
            bucket.Address("lab", "a/b/", "https://s3.example:9000", "eu-1"),
        ),
        ("https://lab/a", None),
        ("s3://", None),
        ("s3://Lab", None),
        ("s3://key:secret@lab/a", None),
        ("s3://lab/../a", None),
        ("s3://lab/a b", None),
        ("s3://lab/a?endpoint=ftp://s3.example", None),
        ("s3://lab/a?endpoint=https://key:secret@s3.example", None),
        ("s3://lab/a?endpoint=https://s3.example/path", None),
        ("s3://lab/a?endpoint=//s3.example", None),
        ("s3://lab/a?secret=x", None),
        ("s3://lab/a#b", None),
    ],
)
def test_the_variable_names_a_bucket_and_holds_no_keys(text, expected):
    try:
        found = bucket.address(text)
    except ValueError:
        found = None
    assert found == expected


def test_a_file_goes_to_the_bucket_and_comes_back(kept, settings):
    assert in_bucket() == {KEY}
    assert in_folder(settings) == set()
    assert not artifacts.missing([DIGEST])
    assert artifacts.missing(["0" * 64])
    with artifacts.open_artifact(kept) as content:
        assert content.read() == CONTENT
    kept.sha256 = "0" * 64
    with pytest.raises(FileNotFoundError):
        artifacts.open_artifact(kept)


def test_a_download_passes_through_web_with_its_permissions(kept, client):
    address = f"/runs/{kept.run_id}/artifacts/out/"
    assert client.get(address).status_code == 404
    member = User.objects.create_user("member")
    client.force_login(member)
    assert client.get(address).status_code == 404
    project = kept.run.campaign.project
    Membership.objects.create(user=member, project=project, role="viewer")
    response = client.get(address)
    assert b"".join(response.streaming_content) == CONTENT
    assert response["Content-Length"] == str(len(CONTENT))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            {"secret": "other"},
            "refuses the key in AWS_ACCESS_KEY_ID (SignatureDoesNotMatch)",
        ),
        (
            {"key": "nobody"},
            "refuses the key in AWS_ACCESS_KEY_ID (InvalidAccessKeyId)",
        ),
        ({"name": "nowhere"}, "there is no such bucket"),
        ({"endpoint": "http://127.0.0.1:9"}, "Could not connect"),
    ],
)
def test_without_the_bucket_files_wait_and_nothing_is_lost(
    wrong,
    reason,
    kept,
    store,
    use,
    settings,
    admin_client,
    django_capture_on_commit_callbacks,
):
    use(**{"endpoint": store} | wrong)
    with django_capture_on_commit_callbacks(execute=True):
        data = ArtifactData("later", b"later")
        made = factories.artifact(run=kept.run, data=data)
    artifacts.send_waiting()
    assert len(in_folder(settings)) == 1
    with artifacts.open_artifact(made) as content:
        assert content.read() == b"later"

    told = health_checks.files()
    assert (told.status, reason in told.reason) == ("warning", True), told
    assert "1 files wait" in told.remedy
    [probed] = [each for each in (doctor.files_in_bucket(),) if reason in each.reason]
    assert probed.status == "failed"
    assert "secret" not in probed.reason
    away = admin_client.get(f"/runs/{kept.run_id}/artifacts/out/")
    assert away.status_code == 503
    assert "store of files" in away.text

    use(store)
    artifacts.send_waiting()
    assert in_folder(settings) == set()
    assert len(in_bucket()) == 2
    assert health_checks.files().status == "ok"
    assert doctor.files_in_bucket().status == "ok"
    assert len(in_bucket()) == 2


def test_who_meets_a_bucket_that_hangs_waits_for_seconds_and_the_next_not_at_all(
    kept, use, monkeypatch
):
    """It takes connections and says nothing. Requests have a connection of the pool each."""
    monkeypatch.setattr(file_store, "PAUSE_SECONDS", 30.0)
    given_back = []
    monkeypatch.setattr(
        file_store.database, "give_back", lambda: given_back.append(True)
    )
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        use("http://{}:{}".format(*silent.getsockname()))
        for least, most in ((3, 8), (0, 0.5)):
            began = time.monotonic()
            with pytest.raises(bucket.StoreError):
                artifacts.open_artifact(kept)
            assert least < time.monotonic() - began < most
    assert given_back == [True]


def test_a_key_that_may_only_read_is_told_by_the_doctor(kept, store, use):
    use(store, key="reader")
    assert health_checks.files().status == "ok"
    told = doctor.files_in_bucket()
    assert told.status == "failed"
    assert "refuses the key" in told.reason


def test_a_folder_becomes_a_bucket_by_the_setting_alone(db, use, store, settings):
    made = factories.artifact(run=factories.run(), data=ArtifactData("out", CONTENT))
    (settings.ARTIFACTS_DIR / "import-x").mkdir()
    (settings.ARTIFACTS_DIR / "import-x" / DIGEST).write_bytes(
        b"of an import that goes on"
    )
    assert in_folder(settings) == {KEY, f"import-x/{DIGEST}"}
    use(store)
    artifacts.send_waiting()
    assert in_folder(settings) == {f"import-x/{DIGEST}"}
    with artifacts.open_artifact(made) as content:
        assert content.read() == CONTENT


def test_pruning_removes_old_files_and_leaves_what_is_not_ours(kept, settings):
    bucket.write("notes.txt", io.BytesIO(b"theirs"))
    bucket.write(f"xx/{DIGEST}.gz", io.BytesIO(b"theirs"))
    nameless = "ab" + "0" * 62
    bucket.write(f"ab/{nameless}.gz", io.BytesIO(b"of an earlier attempt"))
    theirs = {"notes.txt", f"xx/{DIGEST}.gz"}
    now = timezone.now()
    assert artifacts.prune(before=now - timedelta(days=1), keep=()).files == 0
    later = now + timedelta(minutes=1)
    assert artifacts.prune(before=later, keep=["out"]).files == 1
    assert in_bucket() == theirs | {KEY}
    assert artifacts.prune(before=later, keep=(), is_rehearsal=True).files == 1
    assert artifacts.prune(before=later, keep=()).files == 1
    assert in_bucket() == theirs


def test_verification_reads_what_is_in_the_bucket(kept, use, settings):
    factories.finish(kept.run)
    assert list(artifacts.changed()) == []
    bucket.write(KEY, io.BytesIO(gzip.compress(b"another content")))
    assert list(artifacts.changed()) == [DIGEST]
    bucket.write(KEY, io.BytesIO(b"no file of gzip"))
    assert list(artifacts.changed()) == [DIGEST]
    use("http://127.0.0.1:9")
    settings.RETENTION = {"files": 1}
    for command, arguments in COMMANDS.items():
        with pytest.raises(CommandError, match="Could not connect") as told:
            call_command(command, *arguments)
        assert "\n" not in str(told.value), command


@pytest.mark.django_db(transaction=True)
def test_a_backup_holds_the_files_of_the_bucket(kept, store, use, settings, tmp_path):
    settings.BACKUP_PASSPHRASE = "correct horse"
    made = backups.make(folder=tmp_path, passphrase="correct horse")
    bucket.remove(KEY)
    backup = backups.BackupReader(made, "correct horse")
    backups._restore_artifacts(backup)
    assert not artifacts.missing([DIGEST])
    artifacts.send_waiting()
    assert in_bucket() == {KEY}
    use("http://127.0.0.1:9")
    with pytest.raises(CommandError, match="No backup was made"):
        call_command("backup", tmp_path / "none")


def test_an_export_holds_the_files_of_the_bucket(kept):
    factories.finish(kept.run)
    project = Run.objects.get(pk=kept.run_id).campaign.project
    lines = b"".join(exporting.lines(project))
    assert DIGEST.encode() in lines
    assert b'"gzip"' in lines
