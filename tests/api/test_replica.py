"""Pages read from a real streaming standby, and whoever wrote reads what they wrote."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import close_old_connections, connections

from benchlab import replica
from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.postgresql import SUPERUSER, EmbeddedPostgreSQL
from runs.models import Campaign, Project
from runs.selectors.operations import checks
from tests import factories
from tests.api.upload_bodies import run as upload
from tests.migrated import TEMPLATE, migrated_postgresql
from tests.real_services import FOLDER
from tests.ssh.openssh import short_folder

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", replica.ALIAS])
REPLICATED = ("--fsync=off", "--full_page_writes=off", "--max_connections=300")
ALLOW = "host all,replication all 127.0.0.1/32 scram-sha-256\n"


class Replicated(EmbeddedPostgreSQL):
    """A PostgreSQL that standbys may follow, or one that follows `primary`."""

    primary = None

    def program(self):
        program = super().program()
        program.argv = [*program.argv, *REPLICATED]
        if self.primary:
            known = f"user={SUPERUSER} password={self._password(SUPERUSER)}"
            conninfo = f"host=127.0.0.1 port={self.primary.port} {known}"
            program.argv.append(f"--primary_conninfo={conninfo}")
        return program

    def _write_access_rules(self):
        self._access_rules.write_text(ALLOW)
        self._access_rules.chmod(0o644)

    def start(self):
        """A standby has the roles and databases of its primary."""
        if self.primary:
            (self.data / "standby.signal").touch()
            self._ensure_database = lambda: True
        super().start()

    def sql(self, statement):
        with self._connect() as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture(scope="module", autouse=True)
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
        return {**kept, "HOST": "127.0.0.1", "PORT": str(server.port), "PASSWORD": password}

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


def test_pages_are_read_from_the_standby_and_everything_else_from_the_primary(paused, client):
    factories.campaign("brand-new", factors={"version": []})

    assert not shows(client, "brand-new")
    assert Campaign.objects.filter(slug="brand-new").exists()
    paused.sql("SELECT pg_wal_replay_resume()")
    caught_up(paused)
    assert shows(client, "brand-new")


def test_who_wrote_reads_what_they_wrote_and_others_as_soon_as_it_is_there(paused, client):
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


def test_a_token_reads_from_the_primary(paused, client, make_token):
    bearer = {"Authorization": f"Bearer {make_token()}"}
    sent = {"content_type": "application/json", "headers": bearer}
    assert client.post("/api/v1/uploads/", upload(), **sent).status_code == 201

    slug = Campaign.objects.latest("pk").slug
    assert shows(client, slug, headers=bearer)
    assert not shows(client, slug)


def test_without_a_standby_the_primary_answers_and_readiness_says_so(
    read_from_standby, servers, client
):
    assert checks.replica().status == checks.OK
    factories.campaign("while-it-is-away", factors={"version": []})
    read_from_standby.stop()

    assert shows(client, "while-it-is-away")
    assert checks.replica().status == checks.WARNING
    read_from_standby.start()


def test_a_server_that_follows_nobody_is_not_read_from(read_from_standby, client, monkeypatch):
    port = connections["default"].settings_dict["PORT"]
    monkeypatch.setitem(connections[replica.ALIAS].settings_dict, "PORT", port)
    told = checks.replica()
    assert (told.status, told.reason) == (
        checks.WARNING,
        "It is no standby, or does not follow its primary.",
    )
    assert shows(client, factories.campaign("on-the-primary", factors={"version": []}).slug)


def test_a_position_that_nobody_gave_is_ignored(paused, client):
    factories.campaign("newer", factors={"version": []})
    client.cookies[replica.COOKIE] = "0/0'; DROP TABLE runs_run"
    assert not shows(client, "newer")
    # One of the future leads to the primary, which has it all.
    client.cookies[replica.COOKIE] = "FFFFFFFF/0"
    assert shows(client, "newer")
