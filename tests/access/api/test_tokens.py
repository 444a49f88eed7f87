"""Tokens: who may do what with them, and who gets which message."""

from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from redis import Redis

from runs.access.services import projects, tokens
from runs.models import Project, Token
from runs.shared.api import rate_limit
from runs.shared.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(client):
    """GET with a token, and give the answer."""

    def asked(text, path="campaigns/"):
        return client.get(
            f"/api/v1/{path}", headers={"Authorization": f"Bearer {text}"}
        )

    return asked


@pytest.fixture
def secret_project(db):
    return projects.create(slug="secret", is_public=False)


def token_of(text):
    return Token.objects.get(prefix=text.split("_")[1])


def test_a_token_has_256_bits_of_which_only_the_hash_is_stored(make_token):
    text = make_token("read")
    mark, _prefix, secret = text.split("_", 2)
    stored = token_of(text)

    assert mark == "blab"
    assert len(secret) == 43  # 32 bytes in base64
    assert secret not in str(Token.objects.filter(pk=stored.pk).values())
    assert len(stored.secret_hash) == 64


def test_two_tokens_differ(make_token):
    assert make_token() != make_token()


def test_a_token_reads(ask, make_token):
    assert ask(make_token("read")).status_code == 200


def revoked(text):
    tokens.revoke(token=token_of(text))
    return text


def expired(text):
    Token.objects.filter(pk=token_of(text).pk).update(expires_at=timezone.now())
    return text


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"), "token_invalid"),
        (lambda text: text.rpartition("_")[0], "token_invalid"),
        (lambda text: "blab_000000000000_" + text.split("_", 2)[2], "token_invalid"),
        (lambda text: text.split("_", 2)[2], "token_invalid"),
        (lambda text: "x" + text, "token_invalid"),
        (lambda text: "", "token_invalid"),
        (lambda text: "blab__", "token_invalid"),
        (lambda text: "blab_" + "a" * 5000, "token_invalid"),
        (lambda text: "blab_\u00e9_\u00e9", "token_invalid"),
        (revoked, "token_revoked"),
        (expired, "token_expired"),
    ],
)
def test_a_token_that_is_not_good_is_a_401_with_its_code(ask, make_token, spoil, code):
    answer = ask(spoil(make_token("read")))

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="BenchLab"'
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == code


def test_who_does_not_know_the_secret_is_not_told_that_a_token_was_revoked(
    ask, make_token
):
    text = revoked(make_token("read"))

    assert ask(text[:-4] + "AAAA").json()["code"] == "token_invalid"


def test_the_token_of_somebody_who_may_not_log_in_is_refused(
    ask, make_token, admin_user
):
    text = make_token("read", by=admin_user)
    admin_user.is_active = False
    admin_user.save()

    answer = ask(text)
    assert (answer.status_code, answer.json()["code"]) == (401, "owner_inactive")


@pytest.fixture
def ichiro(django_user_model):
    return django_user_model.objects.create_user("ichiro")


def test_the_token_of_who_left_a_private_project_is_refused(ask, make_token, ichiro):
    closed = projects.create(slug="closed", is_public=False, members=[ichiro])
    text = make_token("read", of=closed, by=ichiro)
    assert ask(text).status_code == 200

    closed.members.remove(ichiro)

    answer = ask(text)
    assert (answer.status_code, answer.json()["code"]) == (401, "owner_not_member")
    assert "join the project again" in answer.json()["detail"]
    closed.members.add(ichiro)
    assert ask(text).status_code == 200


def test_a_token_of_a_public_project_and_one_without_owner_need_no_member(
    ask, make_token, ichiro, secret_project
):
    assert ask(make_token("read", by=ichiro)).status_code == 200
    assert ask(make_token("read", of=secret_project)).status_code == 200


def test_an_administrators_token_needs_no_membership(
    ask, make_token, admin_user, secret_project
):
    text = make_token("read", of=secret_project, by=admin_user)
    assert ask(text).status_code == 200
    admin_user.is_superuser = False
    admin_user.save()
    assert ask(text).json()["code"] == "owner_not_member"


@pytest.mark.parametrize(
    ("scopes", "method", "path", "missing"),
    [
        (["upload"], "get", "campaigns/", "read"),
    ],
)
def test_a_missing_scope_is_a_403_that_names_it(
    client, make_token, scopes, method, path, missing
):
    header = {"Authorization": f"Bearer {make_token(*scopes)}"}

    answer = getattr(client, method)(f"/api/v1/{path}", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert f"“{missing}”" in answer.json()["detail"]


def test_a_token_does_not_make_a_door_do_what_it_cannot(client, make_token):
    header = {"Authorization": f"Bearer {make_token('read')}"}

    assert client.delete("/api/v1/runs/", headers=header).status_code == 405


def test_another_kind_of_authorization_is_nobodys(client):
    answer = client.get("/api/v1/campaigns/", headers={"Authorization": "Basic YTpi"})

    assert answer.status_code == 200


def test_the_last_use_is_noted_at_most_once_a_minute(
    ask, make_token, django_assert_num_queries
):
    text = make_token("read")
    ask(text)
    first = token_of(text).last_used_at
    assert first is not None

    with django_assert_num_queries(2):  # the token, and an empty list
        ask(text)
    assert token_of(text).last_used_at == first

    Token.objects.update(last_used_at=first - timedelta(seconds=61))
    ask(text)
    assert token_of(text).last_used_at > first


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"scopes": []}, "no_scope"),
        ({"scopes": ["read", "write"]}, "scope_unknown"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "expires_in_the_past"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(project, fields, code):
    with pytest.raises(ServiceError) as refused:
        tokens.create(
            **({"name": "x", "scopes": ["read"], "project": project} | fields)
        )

    assert refused.value.code == code
    assert not Token.objects.exists()


def test_nobody_makes_a_token_that_may_more_than_its_maker(project, django_user_model):
    person = django_user_model.objects.create_user("ichiro")
    project.memberships.create(user=person, role="operator")

    tokens.create(
        name="x", scopes=["read", "upload", "queue"], project=project, by=person
    )
    for scope in ("admin", "server"):
        with pytest.raises(ServiceError, match="Your role in the project"):
            tokens.create(name="x", scopes=[scope], project=project, by=person)


def test_a_token_of_somebody_who_was_demoted_may_what_the_owner_may(
    client, project, django_user_model, make_token
):
    owner = django_user_model.objects.create_superuser("root")
    factories.server("db1")
    header = {"Authorization": f"Bearer {make_token('admin', by=owner)}"}
    path = "/api/v1/servers/db1/maintain/"
    assert client.post(path, {}, "application/json", headers=header).status_code == 200

    owner.is_superuser = False
    owner.save()

    answer = client.post("/api/v1/servers/db1/release/", headers=header)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert client.get("/api/v1/webhooks/", headers=header).status_code == 403
    assert client.get("/api/v1/runs/", headers=header).status_code == 200


def test_an_upload_names_a_registered_server_only_with_the_scope(client, make_token):
    factories.server("db1")
    body = {
        "campaign": "nightly",
        "scenario": "tpcb-like",
        "status": "failed",
        "started_at": "2026-01-31T02:00:00Z",
        "server": "db1",
    }
    statuses = []
    for scopes in (("upload",), ("upload", "server"), ("admin",)):
        header = {"Authorization": f"Bearer {make_token(*scopes)}"}
        answer = client.post(
            "/api/v1/uploads/", body, "application/json", headers=header
        )
        statuses.append(answer.status_code)

    assert statuses == [403, 201, 201]


# What is private


@pytest.fixture
def private_run(secret_project):
    campaign = factories.campaign("hidden", project=secret_project, origin="uploaded")
    return factories.finish(campaign.runs.first(), tps=1)


@pytest.mark.parametrize("path", ["campaigns/", "runs/", "measurements/"])
def test_a_private_projects_results_are_in_no_list_of_strangers(get, private_run, path):
    assert get(path)["results"] == []


def test_a_private_projects_results_have_no_address_for_strangers(get, private_run):
    get("campaigns/hidden/", expect=404)
    get(f"runs/{private_run.pk}/", expect=404)
    get(f"measurements/{private_run.measurements.get().pk}/", expect=404)


def test_a_token_sees_its_own_private_project_only(
    ask, make_token, secret_project, private_run
):
    other = projects.create(slug="other", is_public=False)

    assert len(ask(make_token("read", of=secret_project)).json()["results"]) == 1
    assert ask(make_token("read", of=other)).json()["results"] == []


def test_members_see_a_private_project(
    client, secret_project, private_run, django_user_model
):
    member = django_user_model.objects.create_user("member")
    client.force_login(member)
    assert client.get("/api/v1/campaigns/").json()["results"] == []

    secret_project.members.add(member)
    assert len(client.get("/api/v1/campaigns/").json()["results"]) == 1


def test_what_belongs_to_no_project_is_public(get, private_run):
    factories.campaign("open", repeats=0)

    assert [row["slug"] for row in get("campaigns/")["results"]] == ["open"]


# How often


@pytest.fixture
def one_minute(monkeypatch):
    """Time stands still, so that no minute ends within a test."""
    now = rate_limit.time.time()
    monkeypatch.setattr(rate_limit.time, "time", lambda: now // 60 * 60 + 20)


def test_too_many_requests_are_told_when_to_come_again(
    settings, ask, make_token, one_minute
):
    settings.RATE_TOKEN = 3
    text = make_token("read")

    assert [ask(text).status_code for _ in range(3)] == [200, 200, 200]
    refused = ask(text)

    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert refused.headers["Retry-After"] == "40"


def test_the_next_minute_begins_anew(
    settings, ask, make_token, one_minute, monkeypatch
):
    settings.RATE_TOKEN = 1
    text = make_token("read")
    assert [ask(text).status_code for _ in range(2)] == [200, 429]

    later = rate_limit.time.time() + 40
    monkeypatch.setattr(rate_limit.time, "time", lambda: later)

    assert ask(text).status_code == 200


def test_each_token_is_counted_by_itself(settings, ask, make_token):
    settings.RATE_TOKEN = 1

    assert [ask(make_token("read")).status_code for _ in range(3)] == [200, 200, 200]


def test_an_address_cannot_be_made_up(client, settings, one_minute):
    settings.RATE_ANONYMOUS = 2
    own = f"198.51.100.{uuid4().hex}"  # counted nowhere yet
    addresses = [f"192.0.2.{number}" for number in range(8)]

    statuses = [
        client.get(
            "/api/v1/servers/", headers={"X-Forwarded-For": each}, REMOTE_ADDR=own
        ).status_code
        for each in addresses
    ]

    assert statuses == [200, 200] + 6 * [429]


def test_without_redis_nobody_is_refused(client, settings, monkeypatch):
    settings.RATE_ANONYMOUS = 1
    away = Redis.from_url("redis://127.0.0.1:1/0")
    monkeypatch.setattr(rate_limit, "redis_client", lambda: away)
    monkeypatch.setattr(rate_limit._Redis, "away_until", 0.0)

    assert [client.get("/api/v1/servers/").status_code for _ in range(3)] == [200] * 3


# By command


def test_the_command_prints_a_token_that_works(ask, db):
    out = StringIO()
    call_command("create_token", "nightly", scopes="read,upload", days=30, stdout=out)
    text = out.getvalue().strip()

    assert ask(text).status_code == 200
    stored = token_of(text)
    assert (stored.name, stored.scopes, stored.project.slug) == (
        "nightly",
        ["read", "upload"],
        "default",
    )
    assert timedelta(days=29) < stored.expires_at - timezone.now() <= timedelta(days=30)


def test_the_command_names_what_is_wrong(db):
    with pytest.raises(CommandError, match="create_project nowhere"):
        call_command("create_token", "x", project="nowhere")
    with pytest.raises(CommandError, match="no scope write"):
        call_command("create_token", "x", scopes="write")


def test_a_project_is_made_by_command(admin_user):
    call_command(
        "create_project", "lab", private=True, member=["admin"], stdout=StringIO()
    )

    made = Project.objects.get(slug="lab")
    assert not made.is_public
    assert list(made.members.all()) == [admin_user]
    with pytest.raises(CommandError, match="lab already"):
        call_command("create_project", "lab")
    with pytest.raises(CommandError, match="no user nobody"):
        call_command("create_project", "other", member=["nobody"])
