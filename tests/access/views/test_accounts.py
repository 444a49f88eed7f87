"""Accounts, and the tokens that they make."""

import re

import pytest
from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from runs.access.services import audit, projects, tokens
from runs.access.views import logins
from runs.models import AuditEntry, Invitation, Token

pytestmark = pytest.mark.django_db


# Accounts: invitations, logins that are limited, passwords, second factors, logins elsewhere.


PASSWORD = "correct horse battery"


@pytest.fixture
def maintainer(client, django_user_model):
    """Somebody who maintains the default project, and has logged in."""
    user = django_user_model.objects.create_user("hanako", password=PASSWORD)
    projects.default().memberships.create(user=user, role="maintainer")
    client.force_login(user)
    return user


@pytest.fixture
def link(client, maintainer):
    """The link of an invitation, as the page shows it once."""
    page = client.post(
        "/projects/default/people/", {"role": "operator", "note": "Ichiro"}
    )
    return re.search(r"http://testserver(/invitations/[\w-]+/)", page.content.decode())[
        1
    ]


def signed_up(browser, name="ichiro"):
    sent = {"username": name, "email": "", "password1": PASSWORD, "password2": PASSWORD}
    return browser.post("/accounts/signup/", sent)


def test_nobody_makes_an_account_without_an_invitation():
    browser = Client()
    assert (
        "There is no open sign-up" in browser.get("/accounts/signup/").content.decode()
    )

    signed_up(browser)

    assert not User.objects.filter(username="ichiro").exists()


def test_an_invitation_makes_an_account_and_a_member_once(link):
    browser = Client()
    assert "hanako" in browser.get(link).content.decode()
    form = browser.get("/accounts/signup/").content.decode()
    assert form.count("optional)") == 1, (
        "the address may be left out, and the page says so once"
    )

    signed_up(browser)

    assert User.objects.get(username="ichiro").memberships.get().role == "operator"
    assert browser.get("/campaigns/new/").status_code == 200
    another = Client()
    assert another.get(link).status_code == 404
    signed_up(another, "jiro")
    assert not User.objects.filter(username="jiro").exists()


def test_who_has_an_account_joins_by_the_link(link, django_user_model):
    user = django_user_model.objects.create_user("saburo")
    browser = Client()
    browser.force_login(user)
    browser.get(link)

    browser.post("/invitations/accept/")

    assert user.memberships.get().role == "operator"


def test_an_invitation_ends_with_its_time_and_with_the_right_of_its_maker(
    link, maintainer
):
    maintainer.memberships.update(role="viewer")
    assert Client().get(link).status_code == 404
    maintainer.memberships.update(role="maintainer")
    assert Client().get(link).status_code == 200

    Invitation.objects.update(expires_at="2020-01-01T00:00:00Z")

    assert Client().get(link).status_code == 404


def test_an_invitation_never_lowers_a_role(maintainer):
    made = projects.invite(project=projects.default(), role="viewer", by=maintainer)

    projects.accept(secret=made.secret, user=maintainer)

    assert maintainer.memberships.get().role == "maintainer"


def test_members_get_other_roles_and_leave(client, maintainer, django_user_model):
    user = django_user_model.objects.create_user("goro")
    member = projects.default().memberships.create(user=user, role="viewer")
    path = f"/projects/default/people/{member.pk}/"

    client.post(f"{path}role/", {"role": "operator"})
    member.refresh_from_db()
    assert member.role == "operator"

    client.post(f"{path}role/", {"role": "king"})
    client.post(f"{path}remove/")
    assert not user.memberships.exists()


def test_wrong_passwords_are_answered_five_times(django_user_model):
    django_user_model.objects.create_user("shiro", password=PASSWORD)
    browser = Client(REMOTE_ADDR="192.0.2.77")
    for _each in range(5):
        browser.post("/login/", {"login": "shiro", "password": "wrong"})

    answer = browser.post("/login/", {"login": "shiro", "password": PASSWORD})

    assert "Too many failed login attempts" in answer.content.decode()
    assert not answer.wsgi_request.user.is_authenticated


def tried(password, address, name="shiro"):
    """Whether a login from an address succeeds."""
    browser = Client(REMOTE_ADDR=address)
    answer = browser.post("/login/", {"login": name, "password": password})
    return answer.wsgi_request.user.is_authenticated


def test_wrong_passwords_lock_the_address_and_not_the_person(django_user_model):
    django_user_model.objects.create_user("shiro", password=PASSWORD)
    for _each in range(6):
        assert not tried("wrong", "192.0.2.81")

    assert not tried(PASSWORD, "192.0.2.81")
    assert tried(PASSWORD, "192.0.2.82")


def test_guesses_from_many_addresses_become_slow_and_the_person_gets_in(
    django_user_model, monkeypatch
):
    monkeypatch.setitem(logins.GUESSES, "login_of_name", "4/h/key")
    django_user_model.objects.create_user("shiro", password=PASSWORD)
    for each in range(4):
        assert not tried("wrong", f"198.51.100.{each}")

    assert not tried("wrong", "198.51.100.9")
    assert not tried(PASSWORD, "198.51.100.9")  # one attempt of each address
    assert tried(PASSWORD, "198.51.100.10")
    assert tried(PASSWORD, "198.51.100.10")  # which is taken back by a login
    assert not tried("2001:db8::1", "2001:db8::1")
    assert not tried(PASSWORD, "2001:db8::2")


def test_a_password_is_changed_by_who_knows_it(client, django_user_model):
    user = django_user_model.objects.create_user("rokuro", password=PASSWORD)
    client.force_login(user)
    new = {
        "oldpassword": "wrong",
        "password1": "another long one",
        "password2": "another long one",
    }

    client.post("/accounts/password/change/", new)
    user.refresh_from_db()
    assert user.check_password(PASSWORD)

    client.post("/accounts/password/change/", new | {"oldpassword": PASSWORD})
    user.refresh_from_db()
    assert user.check_password("another long one")


def test_the_secret_of_a_second_factor_is_encrypted(django_user_model):
    user = django_user_model.objects.create_user("nanako")
    secret = totp.generate_totp_secret()

    totp.TOTP.activate(user, secret)

    assert secret not in str(Authenticator.objects.values_list("data", flat=True)[0])
    counter = next(iter(totp.yield_hotp_counters_from_time()))
    code = totp.format_hotp_value(totp.hotp_value(secret, counter))
    assert totp.TOTP(Authenticator.objects.get()).validate_code(code)


@pytest.mark.parametrize("sends_mail", [False, True])
def test_a_second_factor_needs_a_confirmed_address_only_where_mail_confirms_it(
    settings, sends_mail
):
    if sends_mail:
        settings.MFA_ALLOW_UNVERIFIED_EMAIL = False
    User.objects.create_user("hanako", "hanako@example.org", PASSWORD)
    browser = Client()
    browser.post("/login/", {"login": "hanako", "password": PASSWORD})
    browser.get(
        "/accounts/email/"
    )  # takes the account's address up, as one to be confirmed
    activate = "/accounts/2fa/totp/activate/"
    browser.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": activate})
    page = browser.get(activate, follow=True).content.decode()
    assert ('name="code"' in page, "verified your email" in page) == (
        not sends_mail,
        sends_mail,
    )


def test_a_second_factor_is_asked_for(django_user_model):
    user = django_user_model.objects.create_user("hachi", password=PASSWORD)
    totp.TOTP.activate(user, totp.generate_totp_secret())
    browser = Client(REMOTE_ADDR="192.0.2.78")

    answer = browser.post("/login/", {"login": "hachi", "password": PASSWORD})

    assert answer.url.startswith("/accounts/2fa/authenticate/")
    assert not browser.get("/").wsgi_request.user.is_authenticated


def test_other_logins_are_listed_and_ended(django_user_model):
    django_user_model.objects.create_user("kuro", password=PASSWORD)
    here, elsewhere = (Client(REMOTE_ADDR=f"192.0.2.{number}") for number in (81, 82))
    for browser in (here, elsewhere):
        browser.post("/login/", {"login": "kuro", "password": PASSWORD})
    assert "192.0.2.82" in here.get("/accounts/sessions/").content.decode()

    here.post("/accounts/sessions/")

    assert not elsewhere.get("/").wsgi_request.user.is_authenticated
    assert here.get("/").wsgi_request.user.is_authenticated


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(
    "path",
    [
        "password/change/",
        "email/",
        "2fa/",
        "2fa/totp/activate/",
        "2fa/webauthn/",
        "2fa/webauthn/add/",
        "sessions/",
        "reauthenticate/",
        "linked/",
    ],
)
def test_pages_of_an_account_are_in_our_design(
    client, django_user_model, path, language
):
    django_user_model.objects.create_user("juri", password=PASSWORD)
    client.post("/login/", {"login": "juri", "password": PASSWORD})

    page = client.get(
        f"/accounts/{path}", headers={"Accept-Language": language}, follow=True
    )

    assert page.status_code == 200
    assert f'<html lang="{language}">' in page.content.decode()
    assert "BenchLab, the PostgreSQL" in page.content.decode() or language == "ja"


def entries(action):
    found = AuditEntry.objects.filter(action=action).order_by("pk")
    return list(found.values_list("actor", "subject", "after"))


def test_logins_and_changes_of_an_account_are_in_the_audit_trail(django_user_model):
    user = django_user_model.objects.create_user("kaede", password=PASSWORD)
    browser, address = Client(REMOTE_ADDR="192.0.2.90"), {"address": "192.0.2.90"}
    browser.post("/login/", {"login": "kaede", "password": "wrong"})
    browser.post("/login/", {"login": "kaede", "password": PASSWORD})
    new = {
        "oldpassword": PASSWORD,
        "password1": "another long one",
        "password2": "another long one",
    }
    browser.post("/accounts/password/change/", new)
    browser.post("/logout/")
    totp.TOTP.activate(user, totp.generate_totp_secret())
    browser.post("/login/", {"login": "kaede", "password": "another long one"})
    browser.post("/accounts/2fa/authenticate/", {"code": "000000"})

    assert entries("login_refused") == [("", "account kaede", address)]
    assert entries("logged_in") == [("kaede", "account kaede", address)]
    assert entries("password_changed") == [("kaede", "account kaede", address)]
    assert entries("logged_out") == [("kaede", "account kaede", address)]
    assert entries("second_factor_refused") == [("", "account kaede", address)]
    said = str(list(AuditEntry.objects.values()))
    assert PASSWORD not in said
    assert "another long one" not in said


def test_a_name_that_nobody_has_is_not_kept_as_it_may_be_a_password():
    Client(REMOTE_ADDR="192.0.2.91").post(
        "/login/", {"login": "hunter2", "password": "x"}
    )

    assert entries("login_refused") == [("", logins.UNKNOWN, {"address": "192.0.2.91"})]


def test_a_flood_of_guesses_leaves_ten_entries_of_which_the_last_says_so(
    django_user_model,
):
    django_user_model.objects.create_user("midori", password=PASSWORD)
    for number in range(logins.MOST + 5):
        browser = Client(REMOTE_ADDR=f"198.51.100.{number}")
        for name in (f"midori{number}", f"other{number}"):
            browser.post("/login/", {"login": name, "password": "wrong"})

    found = entries("login_refused")
    assert len(found) == logins.MOST
    assert ["further_ones" in after for *_who, after in found] == [False] * 9 + [True]


def test_a_second_factor_that_is_added_and_removed_is_told(rf, django_user_model):
    user = django_user_model.objects.create_user("tsubasa", password=PASSWORD)
    secret = totp.generate_totp_secret()
    told = {"user": user, "authenticator": totp.TOTP.activate(user, secret).instance}
    for signal in (signals.authenticator_added, signals.authenticator_removed):
        with audit.acting(audit.Actor("tsubasa", "page")):
            signal.send(sender=Authenticator, request=rf.post("/"), **told)

    after = {"kind": "totp", "address": "127.0.0.1"}
    for action in ("second_factor_added", "second_factor_removed"):
        assert entries(action) == [("tsubasa", "account tsubasa", after)]
    assert secret not in str(list(AuditEntry.objects.values()))


# The page of the tokens.


GIVEN = {
    "name": "nightly",
    "scopes": ["read", "upload"],
    "project": "default",
    "last_day": "",
}


@pytest.fixture
def own(member, django_user_model):
    """A token of the one who has logged in."""
    owner = django_user_model.objects.get(username="ichiro")
    made = tokens.create(
        name="mine", scopes=["read"], project=projects.default(), by=owner
    )
    return made.token


def test_a_visitor_is_sent_to_log_in(client):
    assert client.get("/tokens/").status_code == 302
    assert client.post("/tokens/1/revoke/").status_code == 302


def test_a_token_is_shown_once_and_works(member, client):
    page = member.get("/tokens/")
    assert page.status_code == 200
    answer = member.post("/tokens/", GIVEN)

    (text,) = set(re.findall(r"blab_[0-9a-f]{12}_[\w-]{43}", answer.content.decode()))
    assert "no-store" in answer.headers["Cache-Control"]
    assert text not in member.get("/tokens/").content.decode()
    header = {"Authorization": f"Bearer {text}"}
    assert client.get("/api/v1/runs/", headers=header).status_code == 200


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "This field is required."),
        ({"scopes": []}, "This field is required."),
        ({"scopes": ["root"]}, "root is not one of the available choices."),
        ({"project": "nowhere"}, "Select a valid choice."),
        ({"last_day": "2001-01-01"}, "That day has passed."),
    ],
)
def test_a_fault_is_told_at_its_field(member, changed, message):
    answer = member.post("/tokens/", GIVEN | changed)

    assert message in answer.content.decode()
    assert not Token.objects.exists()


def test_a_token_is_good_to_the_end_of_its_last_day(member):
    today = timezone.localdate()

    member.post("/tokens/", GIVEN | {"last_day": today.isoformat()})

    token = Token.objects.get()
    assert token.state == "good"
    assert timezone.localtime(token.expires_at).date() == today


def test_a_private_project_is_offered_to_its_members_only(member):
    projects.create(slug="secret", name="Secret", is_public=False)

    assert "Secret" not in member.get("/tokens/").content.decode()
    assert (
        "Select a valid choice."
        in member.post("/tokens/", GIVEN | {"project": "secret"}).content.decode()
    )


def test_a_token_is_revoked_by_its_owner(member, own):
    page = member.post(f"/tokens/{own.pk}/revoke/", follow=True).content.decode()

    own.refresh_from_db()
    assert own.state == "revoked"
    assert "was revoked" in page


def test_others_neither_see_nor_revoke_it(client, own, django_user_model):
    client.force_login(django_user_model.objects.create_user("jiro"))

    assert "mine" not in client.get("/tokens/").content.decode()
    assert client.post(f"/tokens/{own.pk}/revoke/").status_code == 404
    own.refresh_from_db()
    assert own.state == "good"


def test_an_administrator_sees_all_of_them(own, admin_client):
    assert "mine" in admin_client.get("/tokens/").content.decode()


def test_the_first_account_is_named_only_until_somebody_has_logged_in(
    client, django_user_model
):
    page = client.get("/login/").content.decode()
    assert "changepassword admin" in page
    assert page.count("Forgot your password?") == 1
    assert "Forgot the password?" not in page
    django_user_model.objects.create_user("hanako", last_login=timezone.now())
    assert "changepassword admin" not in client.get("/login/").content.decode()
