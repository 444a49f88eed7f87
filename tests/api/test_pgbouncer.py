"""Uploads and pages through a real PgBouncer that lends connections for single transactions."""

import os
import shutil
import socket
import time

import pytest
from django.db import connection

from benchlab.embedded.account import service_account
from runs.models import Run
from runs.services import database
from runs.services.database import Statement
from tests.api.upload_bodies import run as upload
from tests.deployment import guide
from tests.ssh.openssh import short_folder

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = [
    pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is missing"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def pgbouncer():
    """Its port. It has two connections to the test's PostgreSQL, for everybody."""
    where, account, folder = connection.settings_dict, service_account(), short_folder()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    target = f"host={where['HOST']} port={where['PORT'] or 5432} user={where['USER']}"
    password = f" password={where['PASSWORD']}" if where["PASSWORD"] else ""
    lines = ["[databases]", f"{where['NAME']} = {target}{password}", "[pgbouncer]"]
    lines += ["listen_addr = 127.0.0.1", f"listen_port = {port}", "unix_socket_dir ="]
    lines += ["auth_type = any", "pool_mode = transaction", "default_pool_size = 2"]
    configuration = folder / "pgbouncer.ini"
    configuration.write_text("\n".join(lines) + "\n")
    # It refuses to run as root.
    environment = account.environment(folder)
    with (
        (folder / "log").open("wb+") as log,
        account.spawn(
            [PGBOUNCER, configuration], env=environment, cwd=folder, stderr=log
        ) as process,
    ):
        _wait_for(port, process, folder / "log")
        yield port
        process.terminate()
    shutil.rmtree(folder)


def _wait_for(port, process, log):
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    process.kill()
    pytest.fail(log.read_text())


@pytest.fixture
def through(pgbouncer, settings, monkeypatch):
    """The test's connection leads through it, as with BENCHLAB_PGBOUNCER=1."""
    settings.PGBOUNCER = True
    kept = {
        key: value for key, value in connection.settings_dict["OPTIONS"].items() if key != "options"
    }
    changed = {
        "HOST": "127.0.0.1",
        "PORT": str(pgbouncer),
        "OPTIONS": kept,
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }
    connection.close()
    for key, value in changed.items():
        monkeypatch.setitem(connection.settings_dict, key, value)
    yield
    connection.close()


def test_several_statements_in_one_message_go_through(through):
    asked = [Statement("SELECT %s::int", (1,)), Statement("SELECT %s::text, 2", ("a;b",))]
    for _time in range(6):
        assert database.perform(asked) == [[(1,)], [("a;b", 2)]]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (0,)


def test_uploads_and_pages_go_through(through, client, bearer):
    sent = {"content_type": "application/json", "headers": bearer}
    bodies = {"runs": [upload(levels={"clients": number + 1}) for number in range(5)]}
    for _time in range(4):
        assert client.post("/api/v1/uploads/", upload(), **sent).status_code == 201
    assert client.post("/api/v1/uploads/batch/", bodies, **sent).status_code == 201
    assert Run.objects.count() == 9
    campaign = Run.objects.first().campaign
    pages = ["/", "/campaigns/", f"/campaigns/{campaign.slug}/", "/servers/", "/api/v1/runs/"]
    pages += ["/api/v1/measurements/", f"/runs/{Run.objects.first().pk}/"]
    assert {page: client.get(page).status_code for page in pages} == dict.fromkeys(pages, 200)
    assert client.get(f"/api/v1/campaigns/{campaign.slug}/").status_code == 200


def test_the_guide_limits_statements_by_the_role():
    """Through PgBouncer BenchLab sets no limit itself."""
    command = next(each for each in guide.inline() if each.startswith("ALTER ROLE"))
    with connection.cursor() as cursor:
        cursor.execute(command.replace("benchlab", "CURRENT_USER"))
        try:
            again = connection.copy()
            with again.cursor() as other:
                other.execute(
                    "SELECT setting FROM pg_db_role_setting, unnest(setconfig) AS setting"
                )
                assert ("statement_timeout=60s",) in other.fetchall()
            again.close()
        finally:
            cursor.execute("ALTER ROLE CURRENT_USER RESET statement_timeout")
