"""Tokens that a process has read before, and what ends that: seen as by who wants to go on."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from redis.exceptions import ConnectionError as RedisIsAway

from runs.access.services import known_tokens, projects, tokens
from runs.models import Membership, Token
from runs.shared.errors import ServiceError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def keeping(monkeypatch):
    """As in production; time goes on where a test says so."""
    monkeypatch.setattr(known_tokens, "KEPT_SECONDS", KEPT)
    monkeypatch.setattr(known_tokens._Process, "readings", {})
    monkeypatch.setattr(known_tokens._Process, "away_until", 0.0)
    clock = [1000.0]
    monkeypatch.setattr(known_tokens.time, "monotonic", lambda: clock[0])
    return clock


KEPT = 2.0


@pytest.fixture
def owner(django_user_model):
    return django_user_model.objects.create_user("ichiro")


@pytest.fixture
def closed(owner):
    return projects.create(slug="closed", is_public=False, members=[owner])


@pytest.fixture
def new_token(closed, owner):
    return tokens.create(name="ci", scopes=["upload"], project=closed, by=owner)


def reads(text):
    """How often the table of tokens is read for a request with this text."""
    with CaptureQueriesContext(connection) as queries:
        tokens.authenticate(text=text)
    return sum(
        'FROM "runs_token"' in query["sql"] for query in queries.captured_queries
    )


def elsewhere(change):
    """Make a change in another process: this one's memory is as it was."""
    readings = dict(known_tokens._Process.readings)
    change()
    known_tokens._Process.readings.update(readings)


def code_of(text):
    with pytest.raises(ServiceError) as refused:
        tokens.authenticate(text=text)
    return refused.value.code


def test_a_token_is_read_once_in_some_seconds(new_token, keeping):
    assert [reads(new_token.text) for _request in range(3)] == [1, 0, 0]
    keeping[0] += KEPT
    assert reads(new_token.text) == 1


def test_a_token_that_another_process_revokes_is_refused_by_the_next_request(new_token):
    tokens.authenticate(text=new_token.text)
    elsewhere(lambda: tokens.revoke(token=new_token.token))

    assert code_of(new_token.text) == "token_revoked"


def test_revoking_that_is_rolled_back_ends_nothing(new_token):
    tokens.authenticate(text=new_token.text)
    with transaction.atomic():
        tokens.revoke(token=new_token.token)
        transaction.set_rollback(True)

    assert reads(new_token.text) == 0


def membership():
    return Membership.objects.get()


def invited(owner, project):
    maintainer = type(owner).objects.create_user("hanako", is_superuser=True)
    invitation = projects.invite(project=project, role="viewer", by=maintainer)
    projects.accept(secret=invitation.secret, user=owner)


@pytest.mark.parametrize(
    "change",
    [
        lambda owner, project: projects.remove_member(membership=membership()),
        lambda owner, project: projects.change_role(
            membership=membership(), role="viewer"
        ),
        invited,
    ],
)
def test_whatever_changes_what_an_owner_may_ends_what_all_processes_know(
    change, new_token, closed, owner
):
    tokens.authenticate(text=new_token.text)
    elsewhere(lambda: change(owner, closed))

    before = known_tokens._Process.readings[new_token.token.prefix].token
    assert known_tokens.find_token(new_token.token.prefix) is not before


def test_who_left_a_private_project_is_refused_at_once(new_token):
    tokens.authenticate(text=new_token.text)
    elsewhere(lambda: projects.remove_member(membership=membership()))

    assert code_of(new_token.text) == "owner_not_member"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            lambda owner: Token.objects.update(revoked_at="2026-01-01T00:00:00Z"),
            "token_revoked",
        ),
        (lambda owner: type(owner).objects.update(is_active=False), "owner_inactive"),
        (lambda owner: Membership.objects.all().delete(), "owner_not_member"),
        (lambda owner: Token.objects.all().delete(), "token_invalid"),
    ],
)
def test_a_change_by_sql_holds_after_the_bound_whoever_goes_on_asking(
    change, code, new_token, owner, keeping
):
    for _request in range(20):
        tokens.authenticate(text=new_token.text)
    change(owner)
    # Requests do not extend what is known: a client that never pauses is refused as well.
    for _request in range(20):
        keeping[0] += KEPT / 21
        tokens.authenticate(text=new_token.text)
    keeping[0] += KEPT / 20

    assert code_of(new_token.text) == code


def test_a_token_that_expires_is_refused_although_it_is_known(new_token):
    tokens.authenticate(text=new_token.text)
    known = known_tokens._Process.readings[new_token.token.prefix].token
    known.expires_at = known.created_at

    assert code_of(new_token.text) == "token_expired"


def test_the_prefix_of_a_known_token_is_worth_nothing_without_its_secret(new_token):
    tokens.authenticate(text=new_token.text)

    assert code_of(f"blab_{new_token.token.prefix}_{'A' * 43}") == "token_invalid"


def test_who_guesses_prefixes_fills_nothing(new_token):
    for number in range(50):
        code_of(f"blab_{number:012x}_{'A' * 43}")

    assert known_tokens._Process.readings == {}


class Away:
    """A Redis that does not answer."""

    def get(self, _key):
        raise RedisIsAway

    incr = get


def test_without_redis_each_request_reads_its_token(new_token, monkeypatch):
    tokens.authenticate(text=new_token.text)
    monkeypatch.setattr(known_tokens, "redis_client", Away)

    assert [reads(new_token.text) for _request in range(3)] == [1, 1, 1]


def test_a_token_that_is_revoked_without_redis_is_refused_after_the_bound(
    new_token, monkeypatch, keeping
):
    tokens.authenticate(text=new_token.text)
    with monkeypatch.context() as away:
        away.setattr(known_tokens, "redis_client", Away)
        elsewhere(lambda: tokens.revoke(token=new_token.token))
    keeping[0] += KEPT

    assert code_of(new_token.text) == "token_revoked"
