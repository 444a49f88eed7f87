"""Packs: small files of runs are in one zip, and are read, moved, pruned and restored as others."""

import hashlib
import os
import shutil
import threading
import time
import zipfile
from datetime import timedelta
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchlab.bucket import ContentChanged
from runs.execution.reporter import ArtifactData, Findings
from runs.models import Artifact, Instance, Lease, Pack, PackedFile, Run
from runs.services import seals
from runs.services.access import projects, tokens
from runs.services.exchange import exporting, importing
from runs.services.operations import backups
from runs.services.runs import artifacts, file_store, leases, packing, packs, results
from tests import factories
from tests.api.upload_bodies import run as run_body
from tests.unit.tools.pgbench.samples import sample

FILES = {"stdout": b"tps = 1\n" * 50, "server.log": b"LOG:  ready\n", "empty": b""}
OLD = timedelta(days=31)


@pytest.fixture
def run(db):
    return finished("one")


def finished(name):
    run = factories.campaign(name).runs.first()
    factories.finish(run)
    return run


def store(run, files):
    made = [(run.pk, ArtifactData(name, content)) for name, content in files.items()]
    assert artifacts.store_all(made) == []


def store_singles(run, files):
    for name, content in files.items():
        artifacts.store(run=run, data=ArtifactData(name, content))


def in_folder(settings):
    folder = settings.ARTIFACTS_DIR
    found = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.stat().st_size for each in found}


def the_pack():
    return file_store.path_of(packs.key_of(Pack.objects.get().pk))


def content_of(run):
    found = {}
    for each in run.artifacts.all():
        with artifacts.open_artifact(each) as content:
            found[each.name] = content.read()
    return found


def age(run, by=OLD):
    Artifact.objects.filter(run=run).update(created_at=timezone.now() - by)


def prune(**options):
    before = timezone.now() - timedelta(days=30)
    return artifacts.prune(before=before, **{"keep": [], **options})


# Storing and reading


def test_small_files_of_a_run_are_one_zip_that_any_program_opens(run, settings):
    store(run, FILES)
    assert len(in_folder(settings)) == 1
    with zipfile.ZipFile(the_pack()) as opened:
        assert opened.testzip() is None
        digests = {hashlib.sha256(each).hexdigest() for each in FILES.values()}
        assert set(opened.namelist()) == {f"{each}.gz" for each in digests}
    assert Pack.objects.get().size == the_pack().stat().st_size
    assert content_of(run) == FILES


def test_large_files_and_one_alone_stay_files_of_their_own(run, settings, monkeypatch):
    monkeypatch.setattr(packs, "MOST_BYTES", 100)
    store(run, FILES)
    large = hashlib.sha256(FILES["stdout"]).hexdigest()
    assert artifacts.path_of(large).exists()
    assert PackedFile.objects.count() == 2
    store(finished("two"), {"stdout": b"tps = 2\n"})
    assert (len(in_folder(settings)), Pack.objects.count()) == (3, 1)
    assert content_of(run) == FILES


def test_the_same_content_of_another_run_is_stored_once(run, settings):
    store(run, FILES)
    there = in_folder(settings)
    other = finished("two")
    store(other, FILES)
    store_singles(other, FILES)
    assert in_folder(settings) == there
    assert content_of(other) == FILES


def test_what_a_run_found_and_what_a_batch_uploads_is_packed_at_once(db, settings, client):
    server = factories.server(versions=["16.14"])
    Lease.objects.get_or_create(server=server)
    factories.campaign(on=server, repeats=1)
    claim = leases.claim(server_id=server.pk, holder="worker")
    found = Findings(artifacts=[ArtifactData(*each) for each in FILES.items()])
    assert results.keep_partial(run_id=claim.run_id, token=claim.token, findings=found)
    assert len(in_folder(settings)) == 1
    assert content_of(Run.objects.get(pk=claim.run_id)) == FILES

    made = sample("18.6/a_tpcb")
    raw = [{"stdout": f"{made.stdout}{number}\n", "stderr": ""} for number in range(3)]
    runs = [run_body("measurements", "series", "status", "levels", raw=each) for each in raw]
    made = tokens.create(name="ci", scopes=["upload"], project=projects.default())
    answer = client.post(
        "/api/v1/uploads/batch/",
        {"runs": [{**each, "tool": "pgbench"} for each in runs]},
        "application/json",
        headers={"Authorization": f"Bearer {made.text}"},
    )
    assert answer.status_code == 201, answer.content
    assert len(in_folder(settings)) == 2


def test_an_import_stores_no_content_twice_and_control_packs_the_rest(db, settings):
    project = projects.create(slug="lab", is_public=True)
    run = factories.campaign("one", project=project).runs.first()
    factories.finish(run)
    store_singles(run, {**FILES, "packed": b"1"})
    content = list(exporting.lines(project))
    Run.objects.all().delete()
    project.campaigns.all().delete()
    shutil.rmtree(settings.ARTIFACTS_DIR)
    store(finished("two"), {"packed": b"1", "other": b"2"})
    Instance.objects.update_or_create(pk=1, defaults={"packed_up_to": 10**9})

    importing.load(lines=content)
    assert len(in_folder(settings)) == 1 + len(FILES)
    packing.pack_some()
    assert len(in_folder(settings)) == 2
    assert content_of(Run.objects.get(campaign__slug="one")) == {**FILES, "packed": b"1"}


def test_packs_have_no_more_than_so_many_files(run, monkeypatch):
    monkeypatch.setattr(packs, "MOST_FILES", 2)
    store(run, FILES)
    assert Pack.objects.count() == 2
    assert content_of(run) == FILES


def test_statements_do_not_grow_with_the_number_of_files(run, django_assert_num_queries):
    many = {f"file-{number}": b"%d" % number for number in range(60)}
    with django_assert_num_queries(4):  # what is there; pack, its files, artifacts
        store(run, many)
    digests = [each.sha256 for each in run.artifacts.all()]
    with django_assert_num_queries(1):
        found = dict(artifacts.opened(digests))
    assert all(each is not None for each in found.values())
    with django_assert_num_queries(1):
        assert artifacts.missing([*digests, "0" * 64]) == {"0" * 64}


def test_of_a_changed_pack_a_file_is_refused_and_the_others_are_read(run, admin_client, caplog):
    store(run, FILES)
    changed = run.artifacts.get(name="stdout")
    place = packs.located([changed.sha256])[changed.sha256]
    content = bytearray(the_pack().read_bytes())
    content[place.start + place.length - 12] ^= 1
    the_pack().write_bytes(content)

    with pytest.raises(ContentChanged, match="bring this pack back from a backup"):
        artifacts.open_artifact(changed)
    answer = admin_client.get(f"/runs/{run.pk}/artifacts/stdout/")
    assert (answer.status_code, "not what was stored" in answer.text) == (503, True)
    assert changed.sha256 in caplog.text
    with artifacts.open_artifact(run.artifacts.get(name="server.log")) as other:
        assert other.read() == FILES["server.log"]
    assert list(artifacts.changed()) == [changed.sha256]
    the_pack().write_bytes(content[: place.start])
    with pytest.raises(ContentChanged):
        artifacts.open_artifact(changed)
    the_pack().unlink()
    assert set(artifacts.changed()) == set(run.artifacts.values_list("sha256", flat=True))
    with pytest.raises(FileNotFoundError):
        artifacts.open_artifact(changed)


def test_a_part_that_unpacks_to_more_than_a_small_file_is_refused_before_it_takes_memory():
    bomb = artifacts._compressed(b"\0" * (packs.MOST_BYTES + 1))
    assert len(bomb) < 2000
    digest = hashlib.sha256(b"\0" * (packs.MOST_BYTES + 1)).hexdigest()
    assert not packs.is_content_of(digest, bomb)


# What is there already


def test_all_runs_are_looked_at_however_many_at_a_time(db, monkeypatch, capsys):
    monkeypatch.setattr(packing, "ROWS", 4)
    runs = [finished(f"campaign-{number}") for number in range(5)]
    Run.objects.filter(pk=runs[0].pk).update(queued_at=timezone.now() + OLD)
    for each in runs:
        store_singles(each, {"a": b"1 of %d" % each.pk, "b": b"2 of %d" % each.pk})
    call_command("pack_files", "--dry-run")
    assert "10 files (0.0 MB) of 5 runs would become 5 packs" in capsys.readouterr().out
    packing.pack_some()
    assert Pack.objects.count() == 5


def test_what_is_there_is_packed_after_a_rehearsal(run, settings, capsys):
    store_singles(run, FILES)
    store_singles(finished("two"), {"stdout": b"alone"})
    waiting = factories.campaign("three").runs.first()
    store_singles(waiting, {"a": b"of a run", "b": b"that goes on"})
    before = in_folder(settings)

    call_command("pack_files", "--dry-run")
    told = capsys.readouterr().out
    assert in_folder(settings) == before
    assert "3 files (0.0 MB) of 1 runs would become 1 packs" in told
    [counted] = [each for each in packing.pack_all(is_rehearsal=True) if each.files]

    call_command("pack_files")
    assert capsys.readouterr().out == told.replace("would become", "became")
    after = in_folder(settings)
    assert len(after) == len(before) - 2
    assert sum(before.values()) - sum(after.values()) == counted.before - counted.after
    assert content_of(run) == FILES
    assert list(artifacts.changed()) == []
    call_command("pack_files")
    assert "0 files (0.0 MB) of 0 runs became 0 packs" in capsys.readouterr().out


def test_control_packs_by_steps_and_then_asks_two_statements(run, monkeypatch):
    store_singles(run, FILES)
    other = finished("two")
    store_singles(other, {"a": b"1", "b": b"2"})
    monkeypatch.setattr(packing, "SECONDS", 0.0)
    packing.pack_some()
    assert (Pack.objects.count(), Instance.objects.get().packed_up_to) == (1, run.pk)
    packing.pack_some()
    packing.pack_some()
    assert (Pack.objects.count(), Instance.objects.get().packed_up_to) == (2, other.pk)
    monkeypatch.setattr(packing, "SECONDS", 2.0)
    with CaptureQueriesContext(connection) as asked:
        packing.pack_some()
    assert len(asked) == 2
    # What an import brings.
    third = finished("three")
    store_singles(third, {"a": b"3", "b": b"4"})
    Instance.objects.update(packed_up_to=third.pk + 5)
    packing.begin_again_at(third.pk)
    packing.pack_some()
    assert Pack.objects.count() == 3


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (file_store, "write"),
        (file_store, "keep_name"),
        (PackedFile.objects, "bulk_create"),
        (file_store, "remove"),
        (packs, "raw_parts"),
    ],
)
def test_a_crash_at_any_moment_loses_nothing_and_the_next_try_goes_on(
    run, settings, monkeypatch, module, name
):
    store_singles(run, FILES)
    with monkeypatch.context() as patched:

        def killed(*_args, **_options):
            raise KeyboardInterrupt

        patched.setattr(module, name, killed)
        with pytest.raises(KeyboardInterrupt):
            packing.pack(run.pk)
    is_committed = module is packs or name == "remove"
    assert PackedFile.objects.filter(is_double=True).exists() == is_committed
    assert content_of(run) == FILES
    packing.pack(run.pk)
    assert content_of(run) == FILES
    assert PackedFile.objects.filter(is_double=False).count() == 3
    assert not any(each.endswith(".gz") for each in in_folder(settings))


def test_files_are_removed_only_when_the_pack_has_them(run, monkeypatch, caplog):
    """As where the disk gives back something else than what was written."""
    store_singles(run, FILES)
    monkeypatch.setattr(packs, "raw_parts", lambda _pack: {})
    packing.pack(run.pk)
    assert "files stay beside it" in caplog.text
    the_pack().unlink()
    assert content_of(run) == FILES


def test_a_file_that_has_changed_stays_as_it_is(run, caplog):
    store_singles(run, {**FILES, "plan": b"Seq Scan"})
    changed = run.artifacts.get(name="plan").sha256
    artifacts.path_of(changed).write_bytes(b"broken")
    packing.pack(run.pk)
    assert f"{changed}.gz has changed" in caplog.text
    assert artifacts.path_of(changed).read_bytes() == b"broken"
    assert PackedFile.objects.count() == 3


def test_a_full_disk_is_told_in_one_line_and_control_tries_again(run, monkeypatch, caplog):
    store_singles(run, FILES)

    def full(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(file_store, "write", full)
        packing.pack_some()
        assert "No space left" in caplog.text
        with pytest.raises(CommandError, match=r"Nothing is lost.*start it again") as told:
            call_command("pack_files")
    assert "\n" not in str(told.value)
    packing.pack_some()
    assert content_of(run) == FILES
    assert Pack.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_processes_do_not_pack_the_same_run_twice():
    run = finished("one")
    store_singles(run, FILES)
    both = threading.Barrier(2)

    def act():
        both.wait()
        packing.pack(run.pk)
        connection.close()

    threads = [threading.Thread(target=act) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert Pack.objects.count() == 1
    assert content_of(run) == FILES


# Removing


def test_a_rehearsal_tells_the_bytes_that_pruning_frees(run, settings):
    store(run, {**FILES, "kept.txt": b"kept"})
    age(run)
    other = finished("two")
    store(other, {"stdout": FILES["stdout"], "young": b"young", "plan": b"Seq Scan"})
    before = in_folder(settings)

    counted = prune(keep=["kept.txt"], is_rehearsal=True)
    assert in_folder(settings) == before
    assert prune(keep=["kept.txt"]) == counted
    after = in_folder(settings)
    assert counted.files == 2
    assert counted.size == sum(before.values()) - sum(after.values())
    assert content_of(other)["stdout"] == FILES["stdout"]
    with artifacts.open_artifact(run.artifacts.get(name="kept.txt")) as kept:
        assert kept.read() == b"kept"
    with pytest.raises(FileNotFoundError):
        artifacts.open_artifact(run.artifacts.get(name="server.log"))
    assert list(artifacts.changed()) == []
    assert prune(keep=["kept.txt"]).files == 0

    # With the runs that need it the rest goes, too.
    age(other)
    counted = prune(is_rehearsal=True)
    assert prune() == counted
    assert (in_folder(settings), Pack.objects.count()) == ({}, 0)


def test_what_a_deleted_run_left_goes_when_it_is_old(run, settings):
    store(run, FILES)
    Run.objects.filter(pk=run.pk).delete()
    assert prune().files == 0
    Pack.objects.update(created_at=timezone.now() - OLD)
    assert prune().files == 3
    assert in_folder(settings) == {}


def test_a_pack_that_no_row_names_goes_when_it_is_old(run, settings):
    """As one of a transaction that was rolled back."""
    with transaction.atomic():
        store(run, FILES)
        transaction.set_rollback(True)
    [(name, size)] = in_folder(settings).items()
    theirs = settings.ARTIFACTS_DIR / "packs" / "ab" / "notes.zip"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("of somebody")
    assert artifacts.prune(before=timezone.now(), keep=[]).files == 0
    old = (timezone.now() - OLD).timestamp()
    for path in (settings.ARTIFACTS_DIR / name, theirs):
        os.utime(path, (old, old))
    assert prune(is_rehearsal=True) == prune() == artifacts.Pruned(1, size)
    assert list(in_folder(settings)) == ["packs/ab/notes.zip"]


@pytest.mark.django_db(transaction=True)
def test_pruning_waits_for_a_run_that_comes_to_rely_on_an_old_file(settings):
    old, new = finished("old"), finished("new")
    store(old, FILES)
    age(old)
    found = []

    def act():
        found.append(prune())
        connection.close()

    with transaction.atomic():
        store(new, FILES)
        pruning = threading.Thread(target=act)
        pruning.start()
        time.sleep(0.3)
    pruning.join()
    assert found == [artifacts.Pruned(0, 0)]
    assert content_of(new) == FILES


@pytest.mark.django_db(transaction=True)
def test_who_reads_an_old_snapshot_finds_what_was_packed_and_written_again_since():
    run, other = finished("one"), finished("two")
    store_singles(run, FILES)
    store(other, {"a": b"1", "b": b"2"})
    digests = [each.sha256 for each in Artifact.objects.all()]

    def act():
        packing.pack(run.pk)
        artifacts.prune(before=timezone.now(), keep=["stdout", "b"])
        connection.close()

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        assert Pack.objects.count() == 1
        elsewhere = threading.Thread(target=act)
        elsewhere.start()
        elsewhere.join()
        found = dict(artifacts.opened(digests))
    names = {each.name for each in Artifact.objects.all() if found[each.sha256] is not None}
    assert names == {"stdout", "b"}


# Backups


def test_a_backup_of_a_release_without_packs_asks_for_none(db, django_assert_num_queries):
    class Older:
        manifest = {"tables": {"runs_artifact": {}}}

    with django_assert_num_queries(0):
        backups._forget_packs(Older())


def test_a_database_that_is_older_than_the_files_takes_up_packs(run, settings, capsys):
    """As after pg_restore of a copy that was made before the files were packed."""
    store(run, {**FILES, "plan": b"Seq Scan"})
    broken = run.artifacts.get(name="plan").sha256
    place = packs.located([broken])[broken]
    content = bytearray(the_pack().read_bytes())
    content[place.start + 10] ^= 1
    the_pack().write_bytes(content)
    old = (timezone.now() - OLD).timestamp()
    os.utime(the_pack(), (old, old))
    theirs = packs.key_of(UUID("ab" * 16))
    file_store.write(theirs, b"no zip")
    os.utime(file_store.path_of(theirs), (old, old))
    Pack.objects.all().delete()
    with pytest.raises(FileNotFoundError):
        content_of(run)

    call_command("pack_files")
    assert "took up 3 files" in capsys.readouterr().out
    assert artifacts.missing(list(run.artifacts.values_list("sha256", flat=True))) == {broken}
    run.artifacts.filter(name="plan").delete()
    assert content_of(run) == FILES
    call_command("pack_files")
    assert "took up" not in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_backup_brings_packs_back(settings, tmp_path, monkeypatch, is_moved):
    """Also one that was written again after the snapshot of the database."""
    settings.BACKUP_PASSPHRASE = "correct horse"
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    run = finished("one")
    store(run, FILES)
    store_singles(run, {"alone": b"alone"})
    seals.request(run=run.pk)
    seals.seal()
    if is_moved:
        opened = file_store.opened
        moved = packs.key_of(Pack.objects.get().pk)

        def gone(key):
            if key == moved:
                raise FileNotFoundError
            return opened(key)

        monkeypatch.setattr(file_store, "opened", gone)
    made = backups.make(folder=tmp_path / "kept", passphrase="correct horse")
    members = set(backups.Reader(made, "correct horse").below("packs"))
    assert len(members) == (0 if is_moved else 1)
    monkeypatch.undo()
    with connection.cursor() as cursor:
        cursor.execute(backups.TABLES)
        names = [name for name, _columns in cursor.fetchall() if name != "django_migrations"]
        cursor.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY")
    settings.ARTIFACTS_DIR = tmp_path / "elsewhere"

    call_command("restore", made)

    run = Run.objects.get(campaign__slug="one", artifacts__name="alone")
    assert content_of(run) == {**FILES, "alone": b"alone"}
    assert Pack.objects.count() == (0 if is_moved else 1)
    packing.pack_some()
    assert Pack.objects.count() == 1
    assert list(artifacts.changed()) == []
