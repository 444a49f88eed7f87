"""Settings that an earlier release stored with secrets: `migrate` hides them, and chains say so."""

import contextlib
import hashlib
import io
import json
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from runs.access.services import projects
from runs.configurations.services.contents import Content
from runs.exchange import services
from runs.models import Configuration, Run, SealRequest, SettingsSnapshot
from runs.queue.services.results import snapshot
from runs.seals.services import seals
from tests import factories

pytestmark = pytest.mark.django_db
SECRET = "S3KRETA"


@pytest.fixture(autouse=True)
def key(settings, tmp_path):
    settings.SEAL_KEY = str(tmp_path / "seals" / "ed25519.pem")


def stored(**settings):
    """A snapshot as an earlier release stored it."""
    content = {
        name.replace("__", "."): {"setting": value, "unit": "", "source": "uploaded"}
        for name, value in settings.items()
    }
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return SettingsSnapshot.objects.create(settings=content, content_hash=digest)


def hide():
    import_module("runs.migrations.0060_hidden_settings").hide(
        apps, connection.schema_editor()
    )


def verify():
    out = io.StringIO()
    with contextlib.suppress(CommandError):
        call_command("verify", "--json", stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_stored_secrets_are_hidden_and_the_runs_amended():
    campaign = factories.finish_all(factories.campaign("c"))
    first, second, plain, waiting, *_others = campaign.runs.order_by("pk")
    under = {
        first: stored(archive_command=f"curl -u a:{SECRET}1", app__limit="1"),
        second: stored(archive_command=f"curl -u a:{SECRET}2", app__limit="1"),
        plain: stored(archive_command="true", app__limit="1"),
        waiting: stored(app__api_key=SECRET),
    }
    for run, found in under.items():
        Run.objects.filter(pk=run.pk).update(settings=found)
    for run in (first, second, plain):
        seals.request(run=run.pk)
    seals.seal()
    seals.request(run=waiting.pk)
    own = Configuration.objects.create(
        slug="own", name="own", settings={"app.passwd": SECRET}, content_hash="0" * 64
    )
    hide()
    hide()  # it goes on where it was cut off

    assert SECRET not in str(
        [*SettingsSnapshot.objects.values(), *Configuration.objects.values()]
    )
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.settings == second.settings == snapshot(settings=under[first].settings)
    own.refresh_from_db()
    assert own.content_hash == Content(own.settings, own.initdb_options).digest
    assert {each.kind for each in SealRequest.objects.all()} == {"sealed", "amended"}
    assert SealRequest.objects.count() == 3
    seals.seal()
    codes = {
        (each["run"], each["code"])
        for each in verify()
        if each["code"] != "never_sealed"
    }
    assert codes == {(first.pk, "amended"), (second.pk, "amended")}
    assert SECRET not in b"".join(services.lines(projects.default())).decode()

    call_command(
        "acknowledge", "default", "4-6", "--reason", "update", stdout=io.StringIO()
    )
    assert {each["code"] for each in verify()} == {"never_sealed"}
