"""BenchLab behind PgBouncer, and with a replica for reads."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import close_old_connections, connection, connections

from benchlab import replica, statement_limits
from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.postgresql import SUPERUSER, EmbeddedPostgreSQL
from runs.models import Campaign, Project, Run
from runs.operations.selectors import health_checks
from runs.shared import database
from runs.shared.database import Statement
from tests import factories
from tests.api.upload_bodies import run as upload
from tests.deployment import guide
from tests.migrated import TEMPLATE, migrated_postgresql
from tests.real_services import FOLDER
from tests.ssh.openssh import short_folder

# Pages read from a real streaming standby, and whoever wrote reads what they wrote.


REPLICATED = ("--fsync=off", "--full_page_writes=off", "--max_connections=300")
ALLOW = "host all,replication all 127.0.0.1/32 scram-sha-256\n"


class Replicated(EmbeddedPostgreSQL):
    """A PostgreSQL that standbys may follow, or one that follows `primary`."""

    access_rules = ALLOW
    primary = None

    def program(self):
        program = super().program()
        program.argv = [*program.argv, *REPLICATED]
        if self.primary:
            known = f"user={SUPERUSER} password={self._password(SUPERUSER)}"
            conninfo = f"host=127.0.0.1 port={self.primary.port} {known}"
            program.argv.append(f"--primary_conninfo={conninfo}")
        return program

    def start(self):
        """A standby has the roles and databases of its primary."""
        if self.primary:
            (self.data / "standby.signal").touch()
            self._ensure_database = lambda: True
        super().start()

    def sql(self, statement):
        with self._connect() as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture(scope="module")
def known(django_db_setup):
    """Django knows the name, and never empties what it names."""
    of_default = connections.settings["default"]
    mirror = {**of_default["TEST"], "MIRROR": "default"}
    connections.settings[replica.ALIAS] = {**of_default, "TEST": mirror}
    yield
    del connections.settings[replica.ALIAS]


@pytest.fixture(scope="module")
def servers():
    """A migrated primary, and a standby that follows it."""
    account, folder = service_account(), short_folder()
    bindir = postgresql_binaries(Path(os.environ[FOLDER]), account).postgresql18
    migrated_postgresql(bindir, folder / "primary", account).stop()
    primary = Replicated(bindir, folder / "primary", account=account)
    standby = Replicated(bindir, folder / "standby", account=account)
    # Its log says from then on what a standby needs.
    primary.start()
    primary.stop()
    subprocess.run(["cp", "-a", primary.folder, standby.folder], check=True)
    primary.start()
    standby.primary = primary
    standby.start()
    yield primary, standby
    standby.stop()
    primary.stop()
    shutil.rmtree(folder)


@pytest.fixture
def read_from_standby(servers, settings, monkeypatch):
    """The database of the tests is on the primary, and pages are read from the standby."""
    primary, standby = servers
    default = connections["default"]
    close_old_connections()
    default.close()
    kept = {**default.settings_dict, "NAME": TEMPLATE, "USER": "benchlab"}
    password = (primary.folder / "password-benchlab").read_text().strip()

    def at(server):
        return {
            **kept,
            "HOST": "127.0.0.1",
            "PORT": str(server.port),
            "PASSWORD": password,
        }

    for key, value in at(primary).items():
        monkeypatch.setitem(default.settings_dict, key, value)
    for key, value in at(standby).items():
        monkeypatch.setitem(connections[replica.ALIAS].settings_dict, key, value)
    settings.DATABASE_ROUTERS = ["benchlab.replica.Router"]
    middleware = list(settings.MIDDLEWARE)
    before = middleware.index("django.contrib.sessions.middleware.SessionMiddleware")
    settings.MIDDLEWARE = [
        *middleware[:before],
        "benchlab.replica.ReadReplica",
        *middleware[before:],
    ]
    settings.PUBLIC_URL = ""
    replica.forget()
    yield standby
    for each in (connections[replica.ALIAS], default):
        each.close()


@pytest.fixture
def paused(read_from_standby):
    """The standby as it was a moment ago: what is stored from now on is not there yet."""
    standby = read_from_standby
    caught_up(standby)
    standby.sql("SELECT pg_wal_replay_pause()")
    yield standby
    standby.sql("SELECT pg_wal_replay_resume()")
    caught_up(standby)


def caught_up(standby):
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn()")
        (position,) = cursor.fetchone()
    until = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
    while not standby.sql(until)[0][0]:
        pass


def shows(client, slug, **sent):
    response = client.get("/api/v1/campaigns/", **sent)
    assert response.status_code == 200
    return slug in response.content.decode()


@pytest.mark.usefixtures("known")
@pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
def test_pages_are_read_from_the_standby_and_everything_else_from_the_primary(
    paused, client
):
    factories.campaign("brand-new", factors={"version": []})

    assert not shows(client, "brand-new")
    assert Campaign.objects.filter(slug="brand-new").exists()
    paused.sql("SELECT pg_wal_replay_resume()")
    caught_up(paused)
    assert shows(client, "brand-new")


@pytest.mark.usefixtures("known")
@pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
def test_who_wrote_reads_what_they_wrote_and_others_as_soon_as_it_is_there(
    paused, client
):
    author = User.objects.create_superuser("hanako")
    client.force_login(author)
    other = type(client)()
    other.force_login(author)

    response = client.post("/projects/", {"slug": "new-lab", "name": "New lab"})
    assert response.status_code == 302
    assert replica.POSITION.fullmatch(client.cookies[replica.COOKIE].value)
    # Its page makes the default project where there is none, and so reads from the primary anyway.
    lab = Project.objects.get(slug="new-lab")
    factories.campaign("of-the-new-lab", factors={"version": []}, project=lab)
    assert shows(client, "of-the-new-lab")
    assert not shows(other, "of-the-new-lab")

    paused.sql("SELECT pg_wal_replay_resume()")
    caught_up(paused)
    assert shows(other, "of-the-new-lab")
    assert shows(client, "of-the-new-lab")


@pytest.mark.usefixtures("known")
@pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
def test_a_token_reads_from_the_primary(paused, client, make_token):
    bearer = {"Authorization": f"Bearer {make_token()}"}
    sent = {"content_type": "application/json", "headers": bearer}
    assert client.post("/api/v1/uploads/", upload(), **sent).status_code == 201

    slug = Campaign.objects.latest("pk").slug
    assert shows(client, slug, headers=bearer)
    assert not shows(client, slug)


@pytest.mark.usefixtures("known")
@pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
def test_without_a_standby_the_primary_answers_and_readiness_says_so(
    read_from_standby, servers, client
):
    assert health_checks.replica().status == health_checks.OK
    factories.campaign("while-it-is-away", factors={"version": []})
    read_from_standby.stop()

    assert shows(client, "while-it-is-away")
    assert health_checks.replica().status == health_checks.WARNING
    read_from_standby.start()


@pytest.mark.usefixtures("known")
@pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
def test_a_server_that_follows_nobody_is_not_read_from(
    read_from_standby, client, monkeypatch
):
    port = connections["default"].settings_dict["PORT"]
    monkeypatch.setitem(connections[replica.ALIAS].settings_dict, "PORT", port)
    told = health_checks.replica()
    assert (told.status, told.reason) == (
        health_checks.WARNING,
        "It is no standby, or does not follow its primary.",
    )
    assert shows(
        client, factories.campaign("on-the-primary", factors={"version": []}).slug
    )


@pytest.mark.usefixtures("known")
@pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
def test_a_position_that_nobody_gave_is_ignored(paused, client):
    factories.campaign("newer", factors={"version": []})
    client.cookies[replica.COOKIE] = "0/0'; DROP TABLE runs_run"
    assert not shows(client, "newer")
    # One of the future leads to the primary, which has it all.
    client.cookies[replica.COOKIE] = "FFFFFFFF/0"
    assert shows(client, "newer")


# Uploads and pages through a real PgBouncer that lends connections for single transactions.


PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@pytest.fixture
def pgbouncer():
    """Its port and process. It has two connections to the test's PostgreSQL, for everybody."""
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
        yield port, process
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
        key: value
        for key, value in connection.settings_dict["OPTIONS"].items()
        if key != "options"
    }
    changed = {
        "HOST": "127.0.0.1",
        "PORT": str(pgbouncer[0]),
        "OPTIONS": {**kept, "prepare_threshold": None},
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }
    connection.close()
    for key, value in changed.items():
        monkeypatch.setitem(connection.settings_dict, key, value)
    yield
    connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is missing")
def test_several_statements_in_one_message_go_through(through):
    asked = [
        Statement("SELECT %s::int", (1,)),
        Statement("SELECT %s::text, 2", ("a;b",)),
    ]
    for _time in range(6):
        assert database.perform(asked) == [[(1,)], [("a;b", 2)]]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is missing")
def test_uploads_and_pages_go_through(through, client, bearer):
    sent = {"content_type": "application/json", "headers": bearer}
    bodies = {"runs": [upload(levels={"clients": number + 1}) for number in range(5)]}
    for _time in range(4):
        assert client.post("/api/v1/uploads/", upload(), **sent).status_code == 201
    assert client.post("/api/v1/uploads/batch/", bodies, **sent).status_code == 201
    assert Run.objects.count() == 9
    campaign = Run.objects.first().campaign
    pages = [
        "/",
        "/campaigns/",
        f"/campaigns/{campaign.slug}/",
        "/servers/",
        "/api/v1/runs/",
    ]
    pages += ["/api/v1/measurements/", f"/runs/{Run.objects.first().pk}/"]
    assert {page: client.get(page).status_code for page in pages} == dict.fromkeys(
        pages, 200
    )
    assert client.get(f"/api/v1/campaigns/{campaign.slug}/").status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is missing")
def test_one_that_hangs_is_not_waited_for(through, pgbouncer, client, monkeypatch):
    assert client.get("/campaigns/").status_code == 200
    monkeypatch.setattr(statement_limits, "PAGE", 0.3)
    monkeypatch.setattr(statement_limits, "GRACE_SECONDS", 0)
    _port, process = pgbouncer
    process.send_signal(signal.SIGSTOP)
    try:
        assert client.get("/campaigns/").status_code == 503
    finally:
        process.send_signal(signal.SIGCONT)
    monkeypatch.undo()
    connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is missing")
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
