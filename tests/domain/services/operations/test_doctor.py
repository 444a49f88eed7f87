"""`manage.py doctor`: what is wrong, what to do, and an exit status."""

import io
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.models import Artifact, RunEvent, Server, SSHKey, Webhook
from runs.selectors.operations import checks
from runs.services.access import encryption, projects
from runs.services.operations import doctor, signs
from tests import factories
from tests.migrated import ROOT

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
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


def test_an_instance_in_order_is_told_so():
    status, text = told()
    assert status == 0, text
    assert all(line.startswith(("ok", "warning")) for line in text.splitlines())


def test_secrets_of_another_key_are_named(settings):
    key = factories.server("db1").ssh_key
    SSHKey.objects.filter(pk=key.pk).update(private_key_encrypted=encryption.encrypt("private"))
    webhook = Webhook.objects.create(
        project=projects.default(), url="https://a.example/", encrypted_secret="nonsense"
    )
    Server.objects.all().delete()
    assert failed()["secrets"].reason.endswith(f": webhook {webhook.pk}.")
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()

    found = failed()

    assert set(found) == {"encryption key", "secrets"}
    assert f"SSH key {key.name}" in found["secrets"].reason
    assert told("--without-targets")[0] == 1


def refused():
    """What a command says that starts nothing."""
    with pytest.raises(CommandError) as error:
        call_command("doctor", "--before-start")
    [line] = str(error.value).splitlines()
    return line


def test_nothing_starts_with_another_key_a_full_disk_or_a_clock_that_is_off(settings, monkeypatch):
    out = io.StringIO()
    factories.story(factories.campaign("c", on=factories.server("db1")).runs.first())
    SSHKey.objects.update(private_key_encrypted=encryption.encrypt("private"))
    # What was imported has the times of another machine.
    factories.story(factories.campaign("imported").runs.first())
    RunEvent.objects.filter(run__server=None).update(at=timezone.now() + timedelta(hours=1))
    call_command("doctor", "--before-start", stdout=out)
    assert out.getvalue() == ""
    with monkeypatch.context() as changed:
        changed.setattr(checks, "LEAST_FREE_BYTES", 2**60)
        assert "MB are free" in refused()
    with monkeypatch.context() as changed:
        changed.setattr(doctor.time, "time", lambda: 1_000_000_000.0)
        assert "The clocks differ" in refused()
        changed.setattr(doctor, "_skew", lambda ask: 0.0)
        assert "in the future of this clock" in refused()
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    line = refused()
    assert line.startswith("encryption key: BENCHLAB_ENCRYPTION_KEY does not open the SSH key")
    assert "Set the key" in line
    # script/server tells it as well, and does nothing else.
    with pytest.raises(CommandError, match="encryption key"):
        call_command("setup_instance")


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


def test_what_was_not_collected_lost_or_off_is_told(settings, tmp_path, monkeypatch):
    (tmp_path / "staticfiles.json").unlink()
    assert set(failed()) == {"static files"}
    monkeypatch.setattr(doctor, "_time_of_redis", lambda: 1_000_000_000.0)
    assert "Redis" in failed()["clock"].reason
    run = factories.finish_all(factories.campaign("c", on=factories.server("db1"))).runs.first()
    Artifact.objects.create(run=run, name="x", media_type="text/plain", size=1, sha256="0" * 64)
    assert [each.status for each in doctor.examine() if each.check == "artifacts"] == ["warning"]


def test_a_server_that_is_away_is_told_with_its_name():
    server = factories.server("db1")
    Server.objects.filter(pk=server.pk).update(
        address="127.0.0.1", port=9, host_key=factories.HOST_KEY
    )
    SSHKey.objects.update(private_key_encrypted=b"nonsense")
    found = failed()
    assert f"server {server.name}" in found
    assert found[f"server {server.name}"].remedy
