"""Backups: everything comes back into an empty instance, and what does not fit is refused."""

import base64
import io
import json
import os
import subprocess
import sys
import zipfile
from urllib.parse import urlsplit

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from runs.execution.reporter import ArtifactData
from runs.models import Run, SSHKey
from runs.services import seals
from runs.services.access import encryption
from runs.services.operations import backups
from runs.services.runs import artifacts
from tests import factories
from tests.migrated import ROOT, create_database

pytestmark = pytest.mark.django_db(transaction=True)
PASSPHRASE = "correct horse"


@pytest.fixture(autouse=True)
def kept_apart(settings, tmp_path):
    settings.BACKUP_PASSPHRASE = PASSPHRASE
    settings.SEAL_KEY = str(tmp_path / "seals" / "ed25519.pem")


@pytest.fixture
def filled():
    """Runs with an artifact, a seal and a secret."""
    campaign = factories.finish_all(factories.campaign("c", on=factories.server("db1")))
    run = campaign.runs.first()
    artifacts.store(run=run, data=ArtifactData("out", b"tps = 1\tand \\N\n" * 500, "text/plain"))
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
        (key.name, encryption.decrypt(key.private_key_encrypted)) for key in SSHKey.objects.all()
    ]
    return found, keys


def empty():
    with connection.cursor() as cursor:
        cursor.execute(backups.TABLES)
        names = [name for name, _columns in cursor.fetchall() if name != "django_migrations"]
        cursor.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY")


def restored(path):
    out = io.StringIO()
    call_command("restore", path, stdout=out)
    return out.getvalue()


def refused(path):
    with pytest.raises(CommandError) as error:
        restored(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_everything_comes_back_under_another_key(filled, settings, tmp_path):
    before = everything()
    made = backups.make(folder=tmp_path / "kept", passphrase=PASSPHRASE)
    assert made.stat().st_mode & 0o77 == 0
    content = made.read_bytes()
    assert settings.ENCRYPTION_KEY.encode() not in content
    empty()
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    settings.ARTIFACTS_DIR = tmp_path / "elsewhere"
    settings.SEAL_KEY = str(tmp_path / "other" / "ed25519.pem")

    # A version that has not these has those that they replace.
    text = restored(with_migrations(made, without_steps))

    assert everything() == before
    assert len(list(artifacts.changed())) == 0
    artifact = Run.objects.get(artifacts__name="out").artifacts.get(name="out")
    assert artifacts.open_artifact(artifact).read().count(b"tps") == 500
    assert "rows of" in text
    assert f"{filled.runs.count()} runs looked at" in text
    # Numbers go on after those that were given.
    factories.finish_all(factories.campaign("next", on=factories.server("db2")))


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
    for place in (200, len(content) // 2):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        cut.write_bytes(changed)
        assert refused(cut)
    assert "not there" in refused(tmp_path / "none")
    assert Run.objects.count() == 0


def without_steps(names):
    names[:] = [name for name in names if not name[1].endswith("_in_steps")]


def with_migrations(made, change):
    """A copy of a backup whose list of migrations is changed."""
    copy = made.with_name("changed")
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                change(manifest["migrations"])
                content = json.dumps(manifest)
            new.writestr(name, content)
    return copy


def test_a_backup_of_a_newer_version_is_refused(filled, tmp_path):
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    newer = with_migrations(made, lambda names: names.append(["runs", "9999_future"]))
    empty()
    assert "9999_future" in refused(newer)


def test_what_is_there_is_named_also_where_the_backup_is_of_an_older_version(filled, tmp_path):
    """As when BENCHLAB_RESTORE is still set at the next start: the version is not at fault."""
    made = backups.make(folder=tmp_path, passphrase=PASSPHRASE)
    older = with_migrations(made, lambda names: names.pop(0))
    assert "not empty" in refused(older)
    empty()
    assert "other tables" in refused(older)


def test_a_full_disk_leaves_nothing_behind(filled, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small file system is mounted by root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", small], check=True)
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
    larger = made.with_name("larger")
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(larger, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                digest = __import__("hashlib").sha256(LARGE).hexdigest()
                manifest["digests"]["artifacts/" + "0" * 64] = digest
                content = json.dumps(manifest)
            new.writestr(name, content)
        new.writestr("artifacts/" + "0" * 64, LARGE)
    restored(larger)


LARGE = base64.b64encode(os.urandom(100_000))


def test_the_newest_backups_stay_and_none_is_made_without_a_passphrase(db, tmp_path, settings):
    for year in (2021, 2022, 2023):
        (tmp_path / f"benchlab-{year}0101T000000Z.backup").touch()
    call_command("backup", tmp_path, keep=2, stdout=io.StringIO())
    names = sorted(path.name[9:13] for path in tmp_path.glob("*.backup"))
    assert len(names) == 2
    assert names[0] == "2023"
    settings.BACKUP_PASSPHRASE = ""
    with pytest.raises(CommandError, match="BENCHLAB_BACKUP_PASSPHRASE"):
        call_command("backup", tmp_path)


def test_a_database_without_tables_is_filled_by_the_command_of_the_guide(filled, tmp_path):
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
