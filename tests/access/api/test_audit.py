"""The audit trail: what people do is kept, with before and after, and never a secret."""

import io

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.test import Client

from runs.access.selectors import macs
from runs.access.services import audit, projects
from runs.configurations.services import configurations
from runs.configurations.services.contents import Content
from runs.execution.ssh import hosts
from runs.histories.services import webhooks
from runs.models import AuditEntry, Run, Token
from runs.queue.services import withdrawals
from runs.servers.services import host_keys, maintenance, ssh_keys
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def acting(db):
    """Everything within a test is done by hanako on a page."""
    with audit.acting(audit.Actor("hanako", "page")):
        yield


def entry(action):
    return AuditEntry.objects.get(action=action)


def test_each_act_is_kept_with_who_what_before_and_after(acting, project):
    server = factories.server(
        "db1", state="unconfirmed", host_key="", offered_host_key=factories.HOST_KEY
    )
    fingerprint = "SHA256:" + "x" * 43
    with pytest.raises(Exception, match="not the fingerprint"):
        host_keys.confirm(server=server, fingerprint=fingerprint)
    assert not AuditEntry.objects.exists(), "what was refused did not happen"

    host_keys.confirm(server=server, fingerprint=hosts.fingerprint(factories.HOST_KEY))
    maintenance.begin(server=server, reason="new disks")
    run = factories.finish(factories.run(), tps=1)
    withdrawals.withdraw(run=run, reason="the disk was failing")
    member = project.memberships.create(
        user=User.objects.create_user("taro"), role="viewer"
    )
    projects.change_role(membership=member, role="operator")

    confirmed = entry("host_key_confirmed")
    assert (
        confirmed.actor,
        confirmed.by_way_of,
        confirmed.subject,
        confirmed.project,
    ) == (
        "hanako",
        "page",
        "server db1",
        None,
    )
    assert confirmed.before == {"fingerprint": None}
    assert confirmed.after["fingerprint"].startswith("SHA256:")
    assert entry("maintenance_begun").after == {"reason": "new disks", "until": None}
    withdrawn = entry("run_withdrawn")
    assert (withdrawn.subject, withdrawn.project) == (f"run {run.pk}", project)
    assert (withdrawn.before, withdrawn.after) == (
        {"state": "finished"},
        {"state": "withdrawn", "reason": "the disk was failing"},
    )
    changed = entry("role_changed")
    assert (changed.subject, changed.before, changed.after) == (
        "person taro",
        {"role": "viewer"},
        {"role": "operator"},
    )


def test_no_secret_is_part_of_it(acting, project):
    settings = {"primary_conninfo": "host=a password=SECRET1", "work_mem": "4MB"}
    configurations.create(name="one", description="", content=Content(settings, [], ""))
    webhooks.create(
        project=project,
        url="https://hooks.example/SECRET2?a=SECRET3",
        secret="SECRET4" * 4,
    )
    key = ssh_keys.generate(name="lab")
    projects.invite(
        project=project, role="viewer", by=User.objects.create_user("hanako")
    )
    audit.record(
        "any", "thing", after={"password": "SECRET5", "deep": {"api_token": "SECRET6"}}
    )
    audit.record("any", "thing", after={"note": "see postgresql://me:SECRET7@host/db"})

    said = str(
        list(AuditEntry.objects.values("subject", "before", "after", "by_way_of"))
    )
    assert "SECRET" not in said
    assert "hooks.example" in said
    assert "work_mem" in said
    assert key.public_key.split()[1] not in said


def test_texts_are_capped_and_have_no_control_characters(acting):
    audit.record(
        "any", "a\x1b[31m", after={"text": "x" * 10_000, "list": list(range(1000))}
    )

    found = entry("any")
    assert "\x1b" not in found.subject
    assert len(found.after["text"]) == 500
    assert len(found.after["list"]) == 50


def test_each_column_has_as_much_as_it_holds_and_numbers_are_those_of_json(project):
    given = {
        "long": {"n" * 200: 1},
        "large": 1e16,
        "below": 9e15,
        "none": -0.0,
        "half": 0.5,
    }
    with audit.acting(audit.Actor("a" * 200, "w" * 300)):
        audit.record("one", "s" * 400, after=given)
        audit.record("two", project)
        audit.record("three", factories.campaign("c"), project=None)
        audit.record("four", factories.campaign("d"), project=project)
    one, two, three, four = AuditEntry.objects.order_by("pk")
    assert [len(text) for text in (one.actor, one.by_way_of, one.subject)] == [
        150,
        200,
        300,
    ]
    assert list(one.after["long"]) == ["n" * 100]
    numbers = [one.after[name] for name in ("large", "below", "none", "half")]
    assert [repr(number) for number in numbers] == [
        str(10**16),
        "9000000000000000.0",
        "0.0",
        "0.5",
    ]
    assert (two.subject, two.project) == (f"project {project.slug}", None)
    assert (three.project, four.project) == (projects.default(), project)
    assert all(
        macs.is_marked(each.mark, macs.AUDIT, *each.marked)
        for each in (one, two, three)
    )


def test_an_entry_stays_as_it_is(acting):
    audit.record("any", "thing")
    for forgery in (
        lambda: AuditEntry.objects.update(actor="taro"),
        AuditEntry.objects.all().delete,
    ):
        with pytest.raises(DatabaseError, match="stays as it is"), transaction.atomic():
            forgery()
    assert entry("any").actor == "hanako"


def test_what_benchlab_does_by_itself_is_no_entry(db):
    factories.server("db1")
    audit.record("any", "thing")

    assert not AuditEntry.objects.exists()


def test_pages_tokens_and_commands_name_who_acts(
    client, project, make_token, log_in_as
):
    server = factories.server("db1")
    log_in_as("maintainer")
    client.post("/servers/db1/maintain/", {"reason": "disks"})
    client.logout()
    header = {"Authorization": f"Bearer {make_token('admin', by=User.objects.get())}"}
    client.post(f"/api/v1/servers/{server.slug}/release/", headers=header)
    call_command("create_token", "nightly", "--scopes", "read", stdout=io.StringIO())

    begun, ended, made = AuditEntry.objects.order_by("pk")
    token = Token.objects.get(name="test")
    assert (begun.actor, begun.by_way_of) == ("ichiro", "page")
    assert (ended.actor, ended.by_way_of) == (
        "ichiro",
        f"api, token test ({token.prefix})",
    )
    assert made.by_way_of == "command create_token"
    assert made.after["scopes"] == ["read"]


def test_who_may_not_reads_nothing_and_a_maintainer_reads_their_project(
    acting, client, project, make_token, get, log_in_as
):
    other = projects.create(slug="other", is_public=False)
    audit.record("any", "of mine", project=project)
    audit.record("any", "of others", project=other)
    audit.record("any", "of the instance")

    def subjects():
        return [
            row["subject"]
            for row in client.get("/api/v1/audit/?action=any").json()["results"]
        ]

    assert client.get("/api/v1/audit/").status_code == 401
    assert client.get("/audit/").status_code == 302
    log_in_as("maintainer")
    assert subjects() == ["of mine"]
    page = client.get("/audit/?action=any").content.decode()
    assert "of mine" in page
    assert "of others" not in page
    assert "of the instance" not in page
    others = AuditEntry.objects.get(subject="of others")
    assert client.get(f"/api/v1/audit/{others.pk}/").status_code == 404
    project.memberships.update(role="operator")
    assert client.get("/api/v1/audit/").status_code == 403
    assert client.get("/audit/").status_code == 403
    User.objects.update(is_superuser=True)
    assert subjects() == ["of the instance", "of others", "of mine"]
    client.logout()
    token = {"Authorization": f"Bearer {make_token('admin', of=other)}"}
    rows = client.get("/api/v1/audit/?action=any", headers=token).json()["results"]
    assert [row["subject"] for row in rows] == ["of others"]


@pytest.mark.parametrize("number", [3, 60])
def test_lists_take_the_same_queries_however_long(
    client, number, django_user_model, django_assert_num_queries
):
    client.force_login(django_user_model.objects.create_superuser("hanako"))
    with audit.acting(audit.Actor("hanako", "page")):
        for index in range(number):
            audit.record("any", f"<b>thing</b> {index}", project=projects.default())

    with django_assert_num_queries(3):
        assert len(client.get("/api/v1/audit/?page_size=20").json()["results"]) == min(
            number, 20
        )
    with django_assert_num_queries(3):
        page = client.get("/audit/?action=any").content.decode()
    assert "&lt;b&gt;thing" in page
    assert ('rel="next"' in page) == (number > 50)
    if number > 50:
        older = client.get(
            f"/audit/?action=any&after={AuditEntry.objects.all()[49].pk}"
        )
        assert (
            older.content.decode().count('<span class="mono">any</span>') == number - 50
        )


RUN = {
    "campaign": "nightly",
    "scenario": "tpcb-like",
    "status": "finished",
    "started_at": "2026-01-31T02:00:00Z",
    "measurements": [
        {"metric": "tps", "value": 1.5, "unit": "tps", "direction": "higher"}
    ],
}


@pytest.fixture
def browser(admin_user):
    """A browser that has logged in, and knows the page's CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    client.get("/campaigns/new/")
    return client


def token(browser):
    return {"X-CSRFToken": browser.cookies["csrftoken"].value}


def test_a_session_uploads_with_its_csrf_token(browser):
    answer = browser.post(
        "/api/v1/uploads/", RUN, "application/json", headers=token(browser)
    )

    assert answer.status_code == 201, answer.content
    assert Run.objects.count() == 1


def test_a_session_uploads_files_with_its_csrf_token(browser):
    printed = b"tps = 7.5 (without initial connection time)\n"
    sent = {
        "run": '{"campaign": "nightly", "tool": "pgbench"}',
        "stdout": SimpleUploadedFile("o", printed),
    }

    answer = browser.post("/api/v1/uploads/", sent, headers=token(browser))

    assert answer.json()["code"] != "broken_off", answer.content


def test_a_session_without_the_csrf_token_changes_nothing(browser):
    answer = browser.post("/api/v1/uploads/", RUN, "application/json")

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert not Run.objects.exists()
