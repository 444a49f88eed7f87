"""Backups, retention, and what the doctor says of an installation."""

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import zipfile
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from benchlab import first_environment
from runs.access.services import encryption, projects
from runs.execution.reporter import ArtifactData
from runs.models import (
    Artifact,
    AuditEntry,
    Command,
    Instance,
    Project,
    Run,
    RunEvent,
    Series,
    Server,
    SSHKey,
    Upload,
    Webhook,
)
from runs.operations.selectors import health_checks
from runs.operations.services import backups, doctor, encrypted_files, signs
from runs.operations.services.encrypted_files import EncryptedReader, EncryptedWriter
from runs.queue.services import artifacts
from runs.seals.services import seals
from runs.shared.copies import is_held
from runs.shared.database import perform
from tests import factories
from tests.migrated import ROOT, create_database

# Backups: everything comes back into an empty instance, and what does not fit is refused.


PASSPHRASE = "correct horse"
SAMPLE = ROOT / "tests/samples/published/harbour-2020.yaml"


@pytest.fixture(autouse=True)
def kept_apart(settings, tmp_path):
    settings.BACKUP_PASSPHRASE = PASSPHRASE
    settings.SEAL_KEY = str(tmp_path / "seals" / "ed25519.pem")


@pytest.fixture
def cheap_key(monkeypatch):
    """A passphrase that costs little to guess, where nothing else has to open the backup."""
    monkeypatch.setitem(encrypted_files.COST, "n", 2)


@pytest.fixture
def filled():
    """Runs with an artifact, a seal and a secret."""
    campaign = factories.finish_all(factories.campaign("c", on=factories.server("db1")))
    run = campaign.runs.first()
    factories.artifact(
        run=run, data=ArtifactData("out", b"tps = 1\tand \\N\n" * 500, "text/plain")
    )
    SSHKey.objects.update(private_key_encrypted=encryption.encrypt("the private key"))
    User.objects.create_superuser("ichiro")
    for each in campaign.runs.all():
        seals.request(run=each.pk)
    seals.seal()
    return campaign


def everything():
    """Each table's rows as text; of secrets what they hold."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(backups.TABLES)
        for name, columns in cursor.fetchall():
            if name in backups.NOT_KEPT | {"runs_sshkey"}:
                continue
            cursor.execute(f"SELECT x::text FROM {name} x ORDER BY 1")
            found[name] = (columns, cursor.fetchall())
    keys = [
        (key.name, encryption.decrypt(key.private_key_encrypted))
        for key in SSHKey.objects.all()
    ]
    return found, keys


def empty():
    with connection.cursor() as cursor:
        cursor.execute(backups.TABLES)
        names = [
            name for name, _columns in cursor.fetchall() if name != "django_migrations"
        ]
        cursor.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY")


def restored(path):
    out = io.StringIO()
    call_command("restore", path, stdout=out)
    assert is_held()
    Instance.objects.update(held_since=None, held_by="")
    return out.getvalue()


def refused(path):
    with pytest.raises(CommandError) as error:
        restored(path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.django_db(transaction=True)
def test_everything_comes_back_under_another_key(
    filled, settings, tmp_path, monkeypatch
):
    # Members, and the directory at the end, are in many chunks.
    monkeypatch.setattr(encrypted_files, "CHUNK_BYTES", 1000)
    settings.PUBLICATIONS_DIR = tmp_path / "own"
    settings.PUBLICATIONS_DIR.mkdir()
    own = Path(shutil.copy(SAMPLE, settings.PUBLICATIONS_DIR))
    Instance.objects.get_or_create(pk=1)
    before = everything()
    made = backups.make(folder=tmp_path / "kept", passphrase=PASSPHRASE)
    empty()
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    settings.ARTIFACTS_DIR = tmp_path / "elsewhere"
    settings.SEAL_KEY = str(tmp_path / "other" / "ed25519.pem")
    settings.PUBLICATIONS_DIR = tmp_path / "own of the other"

    # A version without the one that stands for others has the others.
    text = restored(with_migrations(made, without_replacement))

    assert everything() == before
    assert len(list(artifacts.changed())) == 0
    artifact = Run.objects.get(artifacts__name="out").artifacts.get(name="out")
    assert artifacts.open_artifact(artifact).read().count(b"tps") == 500
    assert "rows of" in text
    assert (settings.PUBLICATIONS_DIR / own.name).read_bytes() == own.read_bytes()
    assert f"{filled.runs.count()} runs looked at" in text
    # Numbers go on after those that were given.
    factories.finish_all(factories.campaign("next", on=factories.server("db2")))


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_what_does_not_fit_is_refused_with_one_line(filled, settings, tmp_path):
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    assert "not empty" in refused(made)
    empty()
    settings.BACKUP_PASSPHRASE = "wrong"
    assert "passphrase" in refused(made)
    settings.BACKUP_PASSPHRASE = PASSPHRASE
    content = made.read_bytes()
    cut = tmp_path / "cut"
    for length in (0, 100, len(content) // 2, len(content) - 1):
        cut.write_bytes(content[:length])
        assert "cut off" in refused(cut)
    for place in (0, 30, 50, 200, len(content) // 2, len(content) - 1):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        cut.write_bytes(changed)
        assert refused(cut)
    assert "not there" in refused(tmp_path / "none")
    assert Run.objects.count() == 0


def without_replacement(names):
    names[:] = [name for name in names if "_squashed_" not in name[1]]


def changed(made, change):
    """A copy of a backup that somebody with the passphrase has changed, member by member."""
    copy = made.with_name("changed")
    with copy.open("wb") as file:
        written = EncryptedWriter(file, PASSPHRASE)
        _change(unpacked(made), written, change)
        written.finish()
    return copy


def unpacked(made):
    return zipfile.ZipFile(io.BufferedReader(EncryptedReader(made, PASSPHRASE)))


def _change(old, file, change):
    with old, zipfile.ZipFile(file, "w") as new:
        members = {name: old.read(name) for name in old.namelist()}
        manifest = json.loads(members["manifest.json"])
        change(members, manifest)
        members["manifest.json"] = json.dumps(manifest)
        for name, content in members.items():
            new.writestr(name, content)


def with_migrations(made, change):
    """A copy of a backup whose list of migrations is changed."""
    return changed(made, lambda _members, manifest: change(manifest["migrations"]))


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_a_backup_of_a_newer_version_is_refused(filled, tmp_path):
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    newer = with_migrations(made, lambda names: names.append(["runs", "9999_future"]))
    empty()
    assert "9999_future" in refused(newer)


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_what_is_there_is_named_also_where_the_backup_is_of_an_older_version(
    filled, tmp_path
):
    """As when BENCHLAB_RESTORE is still set at the next start: the version is not at fault."""
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    older = with_migrations(made, lambda names: names.pop(0))
    assert "not empty" in refused(older)
    empty()
    assert "other tables" in refused(older)


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_a_full_disk_leaves_nothing_behind(filled, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small file system is mounted by root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "none", small], check=True
    )
    try:
        with pytest.raises(CommandError, match="No space left"):
            call_command("backup", small)
        assert list(small.iterdir()) == []
        made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
        empty()
        django_settings.ARTIFACTS_DIR = small
        with pytest.raises(CommandError, match="free in"):
            artifacts_of_a_large_one(made)
    finally:
        subprocess.run(["umount", small], check=True)


def artifacts_of_a_large_one(made):
    def add(members, manifest):
        manifest["digests"]["artifacts/" + "0" * 64] = hashlib.sha256(LARGE).hexdigest()
        members["artifacts/" + "0" * 64] = LARGE

    restored(changed(made, add))


LARGE = base64.b64encode(os.urandom(100_000))


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_the_newest_backups_stay_and_none_is_made_without_a_passphrase(
    db, tmp_path, settings
):
    for year in (2021, 2022, 2023):
        (tmp_path / f"benchlab-{year}0101T000000Z.backup").touch()
    call_command("backup", tmp_path, keep=2, stdout=io.StringIO())
    names = sorted(path.name[9:13] for path in tmp_path.glob("*.backup"))
    assert len(names) == 2
    assert names[0] == "2023"
    settings.BACKUP_PASSPHRASE = ""
    with pytest.raises(CommandError, match="BENCHLAB_BACKUP_PASSPHRASE"):
        call_command("backup", tmp_path)


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_a_backup_shows_nothing_and_is_its_owners_from_the_first_byte(
    filled, settings, tmp_path, monkeypatch
):
    """With the umask of a command by hand; a folder that is made is closed as well."""
    opened = []
    monkeypatch.setattr(
        EncryptedWriter,
        "_seal",
        watched(EncryptedWriter._seal, tmp_path / "kept", opened),
    )
    before = os.umask(0)
    try:
        made = backups.make(folder=tmp_path / "kept", passphrase=PASSPHRASE)
    finally:
        os.umask(before)
    assert {*opened} == {0o600}
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == 0o700
    content = made.read_bytes()
    shown = (
        "auth_user",
        "ichiro",
        "manifest",
        "PK",
        settings.ENCRYPTION_KEY,
        "COPY",
        "runs_",
    )
    assert [text for text in shown if text.encode() in content and len(text) > 2] == []
    assert not zipfile.is_zipfile(made)


def watched(seal, folder, opened):
    def first_look(self, chunk, *, is_last):
        opened.extend(path.stat().st_mode & 0o777 for path in folder.iterdir())
        seal(self, chunk, is_last=is_last)

    return first_look


@pytest.mark.usefixtures("cheap_key")
def test_no_chunk_can_be_changed_moved_left_out_or_cut_off(monkeypatch, tmp_path):
    monkeypatch.setattr(encrypted_files, "CHUNK_BYTES", 100)
    content = os.urandom(1000)
    path = tmp_path / "file"
    for size in (0, 1, 99, 100, 101, 200, 1000):
        with path.open("wb") as file:
            writer = EncryptedWriter(file, "passphrase")
            for start in range(0, size, 37):
                writer.write(content[start : min(size, start + 37)])
            writer.finish()
        assert EncryptedReader(path, "passphrase").read() == content[:size]
    sealed = path.read_bytes()
    head, step = encrypted_files.HEADER_BYTES, 116
    chunks = [sealed[place : place + step] for place in range(head, len(sealed), step)]
    others = {
        "end": sealed[:-1],
        "chunk at the end": sealed[:-step],
        "all but one chunk": sealed[: head + step],
        "all chunks": sealed[:head],
        "order": sealed[:head] + b"".join([chunks[1], chunks[0], *chunks[2:]]),
        "one left out": sealed[:head] + b"".join([*chunks[:3], *chunks[4:]]),
        "one twice": sealed[:head] + b"".join([*chunks[:3], chunks[2], *chunks[3:]]),
        "more": sealed + b"x",
        "salt": sealed[: head - 20]
        + bytes([sealed[head - 20] ^ 1])
        + sealed[head - 19 :],
        "first byte": sealed[:head] + bytes([sealed[head] ^ 1]) + sealed[head + 1 :],
    }
    taken = []
    for name, other in others.items():
        path.write_bytes(other)
        with contextlib.suppress(InvalidTag, ValueError):
            EncryptedReader(path, "passphrase").read()
            taken.append(name)
    assert taken == []


@pytest.mark.usefixtures("cheap_key")
@pytest.mark.django_db(transaction=True)
def test_a_plain_backup_of_before_is_taken_only_by_who_trusts_it(filled, tmp_path):
    """Anybody who had it could add an administrator, and compute the digests again."""
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    plain = tmp_path / "plain"
    _change(unpacked(made), plain, as_before)
    empty()
    said = refused(plain)
    assert "--trust-plain" in said
    assert not User.objects.exists()

    call_command("restore", plain, "--trust-plain", stdout=io.StringIO())
    assert User.objects.get().username == "ichiro"


def as_before(members, manifest):
    """The form of 0.2: format 1, of which only the keys are encrypted."""
    salt = os.urandom(16)
    key = encrypted_files.plain_key(PASSPHRASE, salt)
    encrypted = Fernet(key).encrypt(members["keys.json"]).decode()
    members["keys.json"] = json.dumps(
        {"salt": salt.hex(), "encrypted": encrypted}
    ).encode()
    manifest["digests"]["keys.json"] = hashlib.sha256(members["keys.json"]).hexdigest()
    manifest["format"] = 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_database_without_tables_is_filled_by_the_command_of_the_guide(
    filled, tmp_path
):
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    url = urlsplit(os.environ["DATABASE_URL"])
    name = f"restored_{os.getpid()}"
    environment = os.environ | {
        "DATABASE_URL": create_database(url.geturl(), name),
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "BENCHLAB_BACKUP_PASSPHRASE": PASSPHRASE,
        "BENCHLAB_VAR": str(tmp_path / "new"),
    }
    try:
        done = subprocess.run(
            [sys.executable, "manage.py", "restore", made],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with psycopg.connect(environment["DATABASE_URL"]) as restored_one:
            [number] = restored_one.execute("SELECT count(*) FROM runs_run").fetchone()
        assert number == Run.objects.count()
        assert f"{number} runs looked at" in done.stdout
    finally:
        with psycopg.connect(url.geturl(), autocommit=True) as cluster:
            cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


# Old data goes by kind and days, after a rehearsal; what is sealed or published stays.


ALL = {"files": 30, "failures": 30, "uploads": 30, "logins": 0}
OLD = timedelta(days=31)


@pytest.fixture
def retained(settings, tmp_path):
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    settings.RETENTION = ALL


def recorded(run, state, *, ago=OLD):
    """The run with a command, a series and a file, ended that long ago."""
    Command.objects.create(
        run=run, attempt=1, ordinal=1, step="measure", host="db", argv=["true"]
    )
    Series.objects.create(run=run, name="tps", interval=1, values=[1.0])
    made = factories.artifact(
        run=run, data=ArtifactData("stdout", f"of {run.pk}".encode())
    )
    then = timezone.now() - ago
    type(made).objects.filter(pk=made.pk).update(created_at=then)
    os.utime(artifacts.path_of(made.sha256), (then.timestamp(),) * 2)
    Run.objects.filter(pk=run.pk).update(state=state, finished_at=then)
    return run


def seal(run):
    perform([seals.requesting(runs=[run.pk])])
    assert seals.seal() == 1


def runs(*states):
    return [recorded(factories.run(), each) for each in states]


def left():
    """The runs that have commands, and series."""
    return tuple(
        set(each.objects.values_list("run_id", flat=True)) for each in (Command, Series)
    )


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_a_rehearsal_counts_what_a_removal_removes(capsys):
    runs("failed", "cancelled")
    call_command("retain")
    counted = capsys.readouterr().out
    assert "failures older than 30 days: 4 would be removed" in counted
    assert "files older than 30 days: 2," in counted
    assert (Command.objects.count(), Series.objects.count()) == (2, 2)
    assert not AuditEntry.objects.filter(action="old_removed").exists()

    call_command("retain", "--remove")
    assert counted.replace("would be removed", "removed").startswith(
        capsys.readouterr().out
    )
    assert left() == (set(), set())


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_sealed_runs_verify_afterwards_and_failures_keep_their_story(capsys):
    finished = factories.run()
    factories.finish(finished, tps=100.0)
    finished = recorded(finished, "finished")
    failed, young = (
        runs("failed")[0],
        recorded(factories.run(), "failed", ago=timedelta(days=1)),
    )
    seal(finished)

    call_command("retain", "--remove")

    assert left() == ({finished.pk, young.pk}, {finished.pk, young.pk})
    assert Run.objects.filter(pk=failed.pk).exists()
    assert not artifacts.path_of(finished.artifacts.get().sha256).exists()
    call_command("verify")
    assert "1 runs" in capsys.readouterr().out


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_a_failed_run_that_has_a_seal_keeps_everything():
    """As of one that had finished, and was changed by hand."""
    finished = factories.run()
    factories.finish(finished, tps=100.0)
    seal(finished)
    recorded(finished, "failed")

    call_command("retain", "--remove")

    assert left() == ({finished.pk}, {finished.pk})


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_published_runs_keep_everything():
    published = factories.run(origin="published")
    recorded(published, "failed")

    call_command("retain", "--remove")

    assert left() == ({published.pk}, {published.pk})


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_answers_to_uploads_and_ended_logins_go():
    for key, ago in (("old", OLD), ("new", timedelta())):
        made = Upload.objects.create(
            project=Project.objects.get_or_create(slug="default")[0],
            key=key,
            body_hash="",
        )
        Upload.objects.filter(pk=made.pk).update(created_at=timezone.now() - ago)
        then = timezone.now() - ago + timedelta(hours=1)
        Session.objects.create(session_key=key, session_data="", expire_date=then)

    call_command("retain", "--remove")

    assert Upload.objects.get().key == "new"
    assert Session.objects.get().session_key == "new"


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_what_went_is_in_the_audit_trail():
    runs("failed")

    call_command("retain", "--remove")

    entries = AuditEntry.objects.filter(action="old_removed").order_by("pk")
    told = [(each.subject, each.after["removed"]) for each in entries]
    assert told == [("files", 1), ("failures: commands", 1), ("failures: series", 1)]
    assert {each.by_way_of for each in entries} == {"command retain"}


@pytest.mark.usefixtures("retained")
@pytest.mark.django_db
def test_what_has_no_number_stays(settings, capsys):
    settings.RETENTION = {}
    [failed] = runs("failed")

    call_command("retain", "--remove")

    assert left() == ({failed.pk}, {failed.pk})
    assert "BENCHLAB_RETENTION is not set" in capsys.readouterr().out


# `manage.py doctor`: what is wrong, what to do, and an exit status.


FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


@pytest.fixture
def living(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "staticfiles.json").write_text("{}")
    signs._shown.clear()
    signs.show(kind=signs.WORKER)
    signs.show(kind=signs.CONTROL)


def told(*options):
    out = io.StringIO()
    try:
        call_command("doctor", *options, stdout=out)
    except CommandError:
        return 1, out.getvalue()
    return 0, out.getvalue()


def failed():
    return {each.check: each for each in doctor.examine() if each.status == "failed"}


def test_the_doctor_says_how_long_the_certificate_is_valid(settings, tmp_path):
    first_environment._certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings.PUBLIC_URL = f"https://127.0.0.1:{listening.getsockname()[1]}"

        def answer():
            with contextlib.suppress(OSError):
                context.wrap_socket(listening.accept()[0], server_side=True).close()

        threading.Thread(target=answer, daemon=True).start()
        [found] = doctor._certificate()
        assert (found.status, "396 days" in found.reason) == ("ok", True), found
    [found] = doctor._certificate()
    assert (found.status, found.check) == ("warning", "certificate")


@pytest.mark.usefixtures("living")
@pytest.mark.django_db(transaction=True)
def test_an_instance_in_order_is_told_so():
    status, text = told()
    assert status == 0, text
    assert all(line.startswith(("ok", "warning")) for line in text.splitlines())


@pytest.mark.usefixtures("living")
@pytest.mark.django_db(transaction=True)
def test_secrets_of_another_key_are_named(settings):
    key = factories.server("db1").ssh_key
    SSHKey.objects.filter(pk=key.pk).update(
        private_key_encrypted=encryption.encrypt("private")
    )
    webhook = Webhook.objects.create(
        project=projects.default(),
        url="https://a.example/",
        encrypted_secret="nonsense",
    )
    Server.objects.all().delete()
    assert failed()["secrets"].reason.endswith(f": webhook {webhook.pk}.")
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()

    found = failed()

    assert set(found) == {"encryption key", "secrets"}
    assert f"SSH key {key.name}" in found["secrets"].reason
    assert told("--without-targets")[0] == 1


def complaint():
    """What a command says that starts nothing."""
    with pytest.raises(CommandError) as error:
        call_command("doctor", "--before-start")
    [line] = str(error.value).splitlines()
    return line


@pytest.mark.usefixtures("living")
@pytest.mark.django_db(transaction=True)
def test_nothing_starts_with_another_key_a_full_disk_or_a_clock_that_is_off(
    settings, monkeypatch
):
    out = io.StringIO()
    factories.story(factories.campaign("c", on=factories.server("db1")).runs.first())
    SSHKey.objects.update(private_key_encrypted=encryption.encrypt("private"))
    # What was imported has the times of another machine.
    factories.story(factories.campaign("imported").runs.first())
    RunEvent.objects.filter(run__server=None).update(
        at=timezone.now() + timedelta(hours=1)
    )
    call_command("doctor", "--before-start", stdout=out)
    assert out.getvalue() == ""
    with monkeypatch.context() as changed:
        changed.setattr(health_checks, "LEAST_FREE_BYTES", 2**60)
        assert "MB are free" in complaint()
    with monkeypatch.context() as changed:
        changed.setattr(doctor.time, "time", lambda: 1_000_000_000.0)
        assert "The clocks differ" in complaint()
        changed.setattr(doctor, "_skew", lambda ask: 0.0)
        assert "in the future of this clock" in complaint()
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    line = complaint()
    assert line.startswith(
        "encryption key: BENCHLAB_ENCRYPTION_KEY does not open the SSH key"
    )
    assert "Set the key" in line
    # script/server tells it as well, and does nothing else.
    with pytest.raises(CommandError, match="encryption key"):
        call_command("setup_instance")


@pytest.mark.usefixtures("living")
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(not FAKETIME.exists(), reason="apt install libfaketime")
def test_a_command_under_a_clock_that_is_off_ends_with_one_line():
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--before-start"],
        cwd=ROOT,
        env=os.environ | {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1h"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "clock: The clocks differ from this one: PostgreSQL -3600 s" in line
    assert "NTP" in line


@pytest.mark.usefixtures("living")
@pytest.mark.django_db(transaction=True)
def test_what_was_not_collected_lost_or_off_is_told(settings, tmp_path, monkeypatch):
    (tmp_path / "staticfiles.json").unlink()
    assert set(failed()) == {"static files"}
    monkeypatch.setattr(doctor, "_time_of_redis", lambda: 1_000_000_000.0)
    assert "Redis" in failed()["clock"].reason
    run = factories.finish_all(
        factories.campaign("c", on=factories.server("db1"))
    ).runs.first()
    Artifact.objects.create(
        run=run, name="x", media_type="text/plain", size=1, sha256="0" * 64
    )
    assert [each.status for each in doctor.examine() if each.check == "artifacts"] == [
        "warning"
    ]


@pytest.mark.usefixtures("living")
@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_away_is_told_with_its_name():
    server = factories.server("db1")
    Server.objects.filter(pk=server.pk).update(
        address="127.0.0.1", port=9, host_key=factories.HOST_KEY
    )
    SSHKey.objects.update(private_key_encrypted=b"nonsense")
    found = failed()
    assert f"server {server.name}" in found
    assert found[f"server {server.name}"].remedy
