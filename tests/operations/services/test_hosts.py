"""Another host joins: its token, what it gets, what it may not, and how it leaves."""

import os
import subprocess
import sys
import time
from datetime import timedelta

import psycopg
import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.db import connection
from django.utils import timezone

from benchlab import release
from runs.access.selectors import macs
from runs.access.services import audit, encryption, host_secrets
from runs.models import AuditEntry, HostSecret, Instance, Lease, WorkerHost
from runs.operations.services import host_client, host_roles, hosts
from runs.queue.services import leases
from runs.servers.services import ssh_keys
from runs.shared import releases, worker_health
from runs.shared.errors import ServiceError
from tests import factories
from tests.migrated import ROOT

pytestmark = pytest.mark.django_db


@pytest.fixture
def reached() -> dict[str, str]:
    """How another host reaches PostgreSQL and Redis of the tests."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW port")
        port = cursor.fetchone()[0]
    return {"database": f"127.0.0.1:{port}", "redis": "127.0.0.1:6379"}


def invited(reached, **options):
    with audit.acting(audit.Actor("hanako", "command join_token")):
        return hosts.invite(**reached, **options)


def joining(token, **said):
    own = {"name": "second", "release": release.own_release(), "at": time.time()}
    return hosts.Joining(token=token, **{**own, **said})


def joined(reached, **options):
    token = invited(reached, **options).token
    return hosts.join(joining=joining(token), is_protected=True)


def refusal(act) -> str:
    with pytest.raises(ServiceError) as refused:
        act()
    return refused.value.code


# The token.


def test_a_token_is_good_once_and_only_its_hash_is_stored(reached):
    token = invited(reached).token
    host = WorkerHost.objects.get()
    assert token not in str(vars(host))
    assert hosts.join(joining=joining(token), is_protected=True)["host"] == host.pk
    again = joining(token, name="third")
    assert (
        refusal(lambda: hosts.join(joining=again, is_protected=True))
        == "join_token_invalid"
    )


@pytest.mark.parametrize("fault", ["expired", "revoked", "another secret", "empty"])
def test_a_token_that_is_not_good_opens_nothing(reached, fault):
    invitation = invited(reached)
    token = invitation.token
    if fault == "expired":
        WorkerHost.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif fault == "revoked":
        hosts.remove(name=invitation.host.prefix)
    else:
        token = token[:-1] + ("b" if token.endswith("a") else "a")
    token = "" if fault == "empty" else token
    said = joining(token)
    assert (
        refusal(lambda: hosts.join(joining=said, is_protected=True))
        == "join_token_invalid"
    )
    assert not WorkerHost.objects.filter(joined_at__isnull=False).exists()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"release": "0000.0001.0000+0001"}, "other_release"),
        ({"at": time.time() - 60}, "clock_differs"),
        ({"name": "se cond\nX=1"}, "host_name"),
    ],
)
def test_what_the_host_can_mend_does_not_use_its_token_up(reached, said, code):
    token = invited(reached).token
    wrong = joining(token, **said)
    assert refusal(lambda: hosts.join(joining=wrong, is_protected=True)) == code
    hosts.join(joining=joining(token), is_protected=True)


def test_secrets_go_over_tls_or_within_this_machine_unless_said_otherwise(
    reached, client
):
    def send(token, **headers):
        body = {
            "token": token,
            "name": f"host-{WorkerHost.objects.count()}",
            "release": release.own_release(),
            "at": time.time(),
        }
        address = "/api/v1/hosts/join/"
        return client.post(address, body, "application/json", **headers)

    token = invited(reached).token
    from_elsewhere = send(token, REMOTE_ADDR="192.0.2.7")
    assert from_elsewhere.json()["code"] == "not_protected"
    behind_a_proxy = send(token, HTTP_X_FORWARDED_FOR="192.0.2.7")
    assert behind_a_proxy.json()["code"] == "not_protected"
    assert send(token).status_code == 200
    trusted = invited(reached, is_trusted_network=True).token
    assert send(trusted, REMOTE_ADDR="192.0.2.7").status_code == 200


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [
        ("https://lab.example", True),
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://lab.example", False),
        ("http://127.0.0.1.lab.example", False),
        ("http://localhost@lab.example", False),
        ("ftp://127.0.0.1", False),
        ("lab.example", False),
    ],
)
def test_the_host_sends_its_token_to_no_address_that_others_can_read(url, is_sent):
    def ask():
        host_client.require_protected(url, is_trusted=False)

    if is_sent:
        ask()
    else:
        assert refusal(ask) == "not_protected"


def test_addresses_that_lead_to_this_machine_alone_are_refused(settings):
    assert refusal(lambda: hosts.invite(redis="10.0.0.1:6379")) == "out_of_its_reach"
    reached = {"database": "10.0.0.1:5432", "redis": "10.0.0.1:6379"}
    assert refusal(lambda: hosts.invite(**reached)) == "no_tls"
    assert hosts.invite(**reached, is_trusted_network=True).token


def test_each_act_is_in_the_audit_trail_without_a_secret(reached):
    answer = joined(reached, may_log_in=True)
    with audit.acting(audit.Actor("hanako", "command hosts")):
        hosts.remove(name="second")
    entries = list(AuditEntry.objects.order_by("pk"))
    assert [entry.action for entry in entries[-3:]] == [
        "host_invited",
        "host_joined",
        "host_removed",
    ]
    secrets = [
        answer["environment"]["BENCHLAB_ENCRYPTION_KEY"],
        answer["environment"]["DATABASE_URL"],
    ]
    text = str([vars(entry) for entry in entries])
    assert not [secret for secret in secrets if secret in text]


# What a host gets.


def test_a_host_gets_keys_of_its_own_and_not_those_of_the_first(reached, settings):
    ssh_keys.default()
    environment = joined(reached)["environment"]
    assert "SECRET_KEY" not in environment
    assert settings.ENCRYPTION_KEY not in str(environment)
    assert not HostSecret.objects.exists()
    hosts.allow(name="second")
    copy = HostSecret.objects.get()
    key = Fernet(environment["BENCHLAB_ENCRYPTION_KEY"])
    assert b"OPENSSH PRIVATE KEY" in key.decrypt(bytes(copy.secret_encrypted))
    with pytest.raises(InvalidToken):
        key.decrypt(bytes(ssh_keys.default().private_key_encrypted))


def test_a_host_that_may_log_in_reads_ssh_keys_that_are_made_later(reached, settings):
    answer = joined(reached, may_log_in=True)
    key = ssh_keys.generate(name="later")
    private = ssh_keys.private_key(key)
    settings.WORKER_HOST = answer["host"]
    settings.ENCRYPTION_KEY = answer["environment"]["BENCHLAB_ENCRYPTION_KEY"]
    assert ssh_keys.private_key(key) == private
    HostSecret.objects.all().delete()
    with pytest.raises(host_secrets.NotShared):
        ssh_keys.private_key(key)


def test_what_a_host_marks_is_believed_and_nothing_else(reached, settings):
    answer = joined(reached)
    own_key = settings.ENCRYPTION_KEY
    settings.ENCRYPTION_KEY = answer["environment"]["BENCHLAB_ENCRYPTION_KEY"]
    request, update = (macs.mark(kind, 1) for kind in (macs.REQUEST, macs.UPDATE))
    settings.ENCRYPTION_KEY = own_key
    assert macs.is_marked(request, macs.REQUEST, 1)
    assert not macs.is_marked(request, macs.REQUEST, 2)
    assert not macs.is_marked(update, macs.UPDATE, 1)


def test_keys_of_hosts_are_encrypted_anew_with_all_others(reached, settings):
    joined(reached)
    settings.ENCRYPTION_KEY = (
        f"{Fernet.generate_key().decode()},{settings.ENCRYPTION_KEY}"
    )
    encryption.rotate()
    settings.ENCRYPTION_KEY = settings.ENCRYPTION_KEY.partition(",")[0]
    assert encryption.decrypt(bytes(WorkerHost.objects.get().key_encrypted))


# Its role in PostgreSQL.


@pytest.mark.django_db(transaction=True)
def test_its_role_reads_runs_and_no_session_password_or_token(reached, tmp_path):
    url = joined(reached)["environment"]["DATABASE_URL"]
    try:
        with psycopg.connect(url, autocommit=True) as database:
            for query in (
                "SELECT count(*) FROM runs_run",
                "SELECT username FROM auth_user",
                "UPDATE runs_lease SET holder = ''",
                "SELECT nextval('runs_runevent_id_seq')",
                "SELECT name FROM django_migrations",
                "SELECT prefix FROM runs_workerhost",
            ):
                database.execute(query)
            for query in (
                "SELECT * FROM django_session",
                "SELECT password FROM auth_user",
                "SELECT secret_hash FROM runs_token",
                "UPDATE runs_workerhost SET left_at = NULL",
                "INSERT INTO runs_membership DEFAULT VALUES",
                "DELETE FROM runs_sshkey",
                "CREATE TABLE mine (x int)",
                "ALTER ROLE CURRENT_USER CREATEROLE",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    database.execute(query)
            # As the unit of systemd does before each start.
            checked = subprocess.run(
                [sys.executable, "manage.py", "migrate", "--check"],
                cwd=ROOT,
                env={**os.environ, "DATABASE_URL": url, "BENCHLAB_VAR": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert checked.returncode == 0, checked.stderr
            hosts.remove(name="second")
            with pytest.raises(psycopg.OperationalError):
                database.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
    finally:
        for name in WorkerHost.objects.exclude(role="").values_list("role", flat=True):
            host_roles.remove(name)


def test_tables_of_a_later_migration_are_granted_as_well(reached):
    joined(reached)
    role = WorkerHost.objects.get().role
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE runs_later (id int)")
        host_roles.grant_all()
        cursor.execute("SELECT has_table_privilege(%s, 'runs_later', 'SELECT')", [role])
        assert cursor.fetchone() == (True,)


# Releases.


def test_an_older_release_takes_no_run_and_says_so(ready_server, monkeypatch):
    Lease.objects.get_or_create(server=ready_server)
    campaign = factories.campaign(on=ready_server, state="queued")
    Instance.objects.get_or_create(pk=1)
    Instance.objects.update(release="0009.0000.0000+9999")
    notes = []
    monkeypatch.setitem(worker_health._state, "until", 0.0)
    monkeypatch.setattr(worker_health, "note", notes.append)
    hosts.look()
    assert "9.0.0 (9999)" in notes[0]
    assert leases.claim(server_id=ready_server.pk, holder="old") is None
    releases.note()
    assert Instance.objects.get().release == "0009.0000.0000+9999"
    Instance.objects.update(release="")
    releases.note()
    assert Instance.objects.get().release == release.own_release()
    claim = leases.claim(server_id=ready_server.pk, holder="new")
    assert claim is not None
    assert campaign.runs.filter(pk=claim.run_id).exists()


def test_releases_are_in_the_order_of_their_texts():
    texts = ["0000.0003.0000+0094", "0000.0003.0000+0101", "0000.0010.0000+0001"]
    assert sorted(texts) == texts
    assert release.release_in_words(texts[0]) == "0.3.0 (0094)"
