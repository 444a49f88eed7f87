"""A login elsewhere: against an OpenID Connect provider that listens on a port of this machine."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.access.services import projects
from runs.models import Membership

pytestmark = pytest.mark.django_db

CALLBACK = "/accounts/oidc/oidc/login/callback/"


class Provider(BaseHTTPRequestHandler):
    """Says who it is, changes a code for a token, and says whose token that is."""

    asked = {}
    person = {}

    def do_GET(self):
        here = f"http://127.0.0.1:{self.server.server_port}"
        if self.path == "/.well-known/openid-configuration":
            ends = ("authorization", "token", "userinfo")
            self.answer(
                {"issuer": here}
                | {f"{each}_endpoint": f"{here}/{each}" for each in ends}
            )
        elif self.headers["Authorization"] == "Bearer token of the provider":
            self.answer(self.person)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.update(parse_qs(body))
        self.answer({"access_token": "token of the provider", "token_type": "Bearer"})

    def answer(self, content):
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_given):
        pass


@pytest.fixture
def provider(settings):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    Thread(target=server.serve_forever, daemon=True).start()
    issuer = f"http://127.0.0.1:{server.server_port}"
    known = {
        "provider_id": "oidc",
        "name": "Lab",
        "client_id": "benchlab",
        "secret": "of the client",
        "settings": {"server_url": issuer},
    }
    settings.OPENID_ISSUER = issuer
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [known]}
    }
    Provider.asked.clear()
    Provider.person = {
        "sub": "7",
        "preferred_username": "jiro",
        "email": "hanako@example.org",
    }
    yield issuer
    server.shutdown()
    server.server_close()


def logged_in(browser):
    """The page to which a login at the provider leads."""
    leaving = browser.post("/accounts/oidc/oidc/login/?process=login")
    state = parse_qs(urlsplit(leaving.url).query)["state"][0]
    return browser.get(
        CALLBACK, {"code": "of the provider", "state": state}, follow=True
    )


def name_of(browser):
    """Who has logged in."""
    key = browser.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


def test_a_login_leads_to_the_provider_and_proves_itself(provider):
    browser = Client()
    leaving = browser.post("/accounts/oidc/oidc/login/?process=login")
    address = urlsplit(leaving.url)
    sent = parse_qs(address.query)
    assert f"{address.scheme}://{address.netloc}" == provider
    assert sent["redirect_uri"] == [f"http://testserver{CALLBACK}"]
    assert sent["code_challenge_method"] == ["S256"]
    forged = browser.get(
        CALLBACK, {"code": "of the provider", "state": "of somebody else"}
    )
    assert Provider.asked == {}
    assert name_of(browser) is None
    assert forged.status_code < 500


def test_whom_nobody_has_invited_gets_no_account(provider):
    browser = Client()
    logged_in(browser)
    assert Provider.asked["code_verifier"]
    assert name_of(browser) is None
    assert not User.objects.exists()


def test_whom_the_provider_lets_in_may_get_an_account_without_a_role(
    provider, settings
):
    settings.OPENID_SIGN_UP = True
    browser = Client()
    logged_in(browser)
    assert name_of(browser) == "jiro"
    assert not Membership.objects.exists()
    again = Client()
    logged_in(again)
    assert name_of(again) == "jiro"
    assert User.objects.count() == 1


def test_an_invitation_makes_a_member(provider, django_user_model):
    by = django_user_model.objects.create_superuser("hanako")
    made = projects.invite(project=projects.default(), role="operator", by=by)
    browser = Client()
    browser.get(f"/invitations/{made.secret}/")
    logged_in(browser)
    assert name_of(browser) == "jiro"
    assert Membership.objects.get().role == "operator"


@pytest.mark.parametrize("verified", [True, False])
def test_an_address_of_mail_at_the_provider_opens_nobodys_account(
    provider, settings, verified
):
    """Whoever may choose their address there must not become somebody else here."""
    settings.OPENID_SIGN_UP = True
    User.objects.create_superuser("hanako", "hanako@example.org", "secret-longer-1")
    Provider.person = {**Provider.person, "email_verified": verified}
    browser = Client()
    logged_in(browser)
    assert name_of(browser) != "hanako"


def test_who_has_an_account_links_it(provider):
    person = User.objects.create_user("saburo", password="secret-longer-1")
    browser = Client()
    browser.post("/login/", {"login": "saburo", "password": "secret-longer-1"})
    leaving = browser.post("/accounts/oidc/oidc/login/?process=connect")
    state = parse_qs(urlsplit(leaving.url).query)["state"][0]
    browser.get(CALLBACK, {"code": "of the provider", "state": state})
    other = Client()
    logged_in(other)
    assert name_of(other) == person.username
    assert re.search("Lab|oidc", browser.get("/accounts/3rdparty/").content.decode())
