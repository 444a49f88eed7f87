"""What `script/server` prepares at each start, without losing a user's changes."""

import os
from io import StringIO

import pytest
from django.db.models import Count

from runs.management.commands.setup_instance import Command
from runs.models import Campaign, Server
from runs.services.campaigns import scenarios
from runs.services.operations import static_files
from runs.services.servers import servers, ssh_keys
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts an instance whose SSH target nobody answers for; gives its server and what it said."""
    target = {
        "ADDRESS": "127.0.0.1",
        "PORT": "1",
        "USER": "nobody",
        "BASE_DIR": str(tmp_path / "target"),
        "BINDIRS": "/embedded/pg16:/embedded/pg18",
        "AUTHORIZED_KEYS": str(tmp_path / "authorized_keys"),
        "HOST_KEY": factories.HOST_KEY,
    }
    for name, value in target.items():
        monkeypatch.setenv(f"BENCHLAB_TARGET_{name}", value)

    def started():
        said = StringIO()
        return Command(stderr=said)._register_this_machine(), said.getvalue()

    return started


@pytest.fixture
def server(tmp_path):
    """This machine, with a folder and a key that a user has chosen."""
    own = tmp_path / "own"
    own.mkdir()
    return factories.server(
        "this-machine",
        port=2222,
        base_dir=str(own),
        bindirs=["/opt/mine/bin", "/embedded/pg18"],
        ssh_key=ssh_keys.generate(name="mine"),
    )


def test_folders_that_a_user_added_stay(start, server):
    found, _said = start()

    assert found.bindirs == ["/opt/mine/bin", "/embedded/pg18", "/embedded/pg16"]
    assert found.base_dir == server.base_dir
    assert (found.address, found.port, found.username) == ("127.0.0.1", 1, "nobody")


def test_a_base_directory_that_is_gone_is_replaced(start, server, tmp_path):
    Server.objects.update(base_dir="/no/such/folder")

    assert start()[0].base_dir == str(tmp_path / "target")


def test_a_key_that_a_user_chose_is_let_in(start, server, tmp_path):
    start()

    let_in = (tmp_path / "authorized_keys").read_text().splitlines()
    assert let_in == [servers.public_key(), server.ssh_key.public_key]


def test_a_machine_that_is_not_ready_does_not_stop_the_site(start, server):
    found, said = start()

    assert found.state == Server.State.UNREACHABLE
    assert "cannot be reached over SSH" in said
    assert "/servers/this-machine/" in said


def test_a_key_that_cannot_be_read_does_not_stop_the_site(start, server, settings):
    settings.ENCRYPTION_KEY = "tsTTZWOiUq2kJCvIJUQhhe2JLkIIKJZbZ5l2yrFwqHo="

    assert "BENCHLAB_ENCRYPTION_KEY" in start()[1]


def test_the_first_campaign_takes_two_minutes_or_as_long_as_is_asked(monkeypatch):
    scenarios.sync()
    server = factories.server()
    for version in ("16.14", "18.4"):
        factories.installation(server, version, has_psql=True, pgbench_version_num=180004)
    for asked, seconds in (("", 6), ("1", 1), ("0", None)):
        monkeypatch.setenv("BENCHLAB_FIRST_RUN_SECONDS", asked)
        Campaign.objects.all().delete()
        Command(stdout=StringIO())._queue_first_campaign(server)
        queued = Campaign.objects.values_list("parameters__duration", Count("runs"))
        assert list(queued) == ([] if seconds is None else [(seconds, 18)])

    monkeypatch.delenv("BENCHLAB_FIRST_RUN_SECONDS")
    monkeypatch.setenv("BENCHLAB_FIRST_REPEATS", "1")
    Command(stdout=StringIO())._queue_first_campaign(server)
    assert Campaign.objects.get().runs.count() == 6


def test_static_files_are_collected_when_they_have_changed_or_are_gone(settings, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "bench.css").write_text("a {}")
    settings.STATICFILES_DIRS, settings.STATIC_ROOT = [source], tmp_path / "static"
    storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": storage}}
    settings.INSTALLED_APPS = ["benchlab.static_files.StaticFiles"]

    assert static_files.collect()
    assert not static_files.collect()
    (source / "bench.css").write_text("a { color: red }")
    os.utime(source / "bench.css", (2_000_000_000,) * 2)  # Django looks at whole seconds
    assert static_files.collect()
    assert "red" in (tmp_path / "static" / "bench.css").read_text()
    (tmp_path / "static" / "staticfiles.json").unlink()
    assert static_files.collect()
