"""The headers of every answer, and how many answers there are."""

import gzip
import re
import socket
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from benchlab import middleware, worker
from benchlab.worker import ImpatientSocket
from runs.api import rate_limit
from tests import factories

TEMPLATES = Path(__file__).parents[2] / "templates"
# A report is a self-contained file, which a browser opens without BenchLab.
STANDALONE = {"reports/report.html"}
INLINE = re.compile(
    r"<style\b|<script(?![^>]*\bsrc=)|\son\w+\s*=\s*[\"']|javascript:", re.IGNORECASE
)

pytestmark = pytest.mark.django_db


def policy(response) -> dict[str, str]:
    text = response.headers["Content-Security-Policy"]
    return dict(part.strip().split(" ", 1) for part in text.split(";"))


@pytest.mark.parametrize("path", ["/", "/login/", "/servers/", "/no-such/", "/api/v1/campaigns/"])
def test_no_page_may_run_what_stands_in_it(client, path):
    told = policy(client.get(path))
    assert told["default-src"] == "'none'"
    assert told["script-src"] == "'self'"
    assert "unsafe" not in told["style-src"]
    assert told["frame-ancestors"] == "'none'"
    assert told["base-uri"] == "'none'"


@pytest.mark.parametrize(
    ("issuer", "told"),
    [
        ("", "'self'"),
        ("https://idp.example/realms/lab", "'self' https://idp.example"),
        ("http://127.0.0.1:8180/x", "'self' http://127.0.0.1:8180"),
        ("https://idp.example; script-src *", "'self'"),
        ("javascript:alert(1)", "'self'"),
    ],
)
def test_forms_lead_to_benchlab_and_to_the_provider_of_logins_only(settings, issuer, told):
    settings.OPENID_ISSUER = issuer
    assert middleware.of_pages()["form-action"] == told


def test_only_the_documentation_of_the_api_may_have_styles_in_it(client):
    told = policy(client.get("/api/docs/"))
    assert told["script-src"] == middleware.POLICY["script-src"]
    assert "'unsafe-inline'" in told["style-src"]


def test_no_template_has_a_script_or_style_within_it():
    found = [
        f"{path.relative_to(TEMPLATES)}: {match[0]}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        if str(path.relative_to(TEMPLATES)) not in STANDALONE
        for match in INLINE.finditer(path.read_text())
    ]
    assert found == []


def test_nobody_keeps_what_was_asked_for_with_a_login(client):
    assert "Cache-Control" not in client.get("/servers/").headers
    client.force_login(User.objects.create_user("reader"))
    for path in ("/", "/servers/", "/tokens/", "/api/v1/campaigns/"):
        assert "no-store" in client.get(path).headers["Cache-Control"], path


def test_nobody_keeps_what_was_asked_for_with_a_token(client):
    response = client.get("/api/v1/campaigns/", headers={"Authorization": "Bearer wrong"})
    assert "no-store" in response.headers["Cache-Control"]


def test_too_many_pages_are_refused_with_the_time_to_wait(client, settings, monkeypatch):
    settings.RATE_ANONYMOUS = 2
    monkeypatch.setattr(rate_limit.time, "time", lambda: 1_800_000_030.0)
    # Of an address that no other test has.
    answers = [client.get("/login/", REMOTE_ADDR="192.0.2.77") for _each in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[2].headers["Retry-After"] == "30"
    assert client.get("/healthz/", REMOTE_ADDR="192.0.2.77").status_code == 200


def test_a_request_that_stops_in_the_middle_is_at_its_end(monkeypatch):
    monkeypatch.setattr(worker, "SILENCE_SECONDS", 0.1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"half")
        reading = ImpatientSocket(ours)
        assert reading.recv(100) == b"half"
        assert reading.recv(100) == b""
        with pytest.raises(BrokenPipeError):
            theirs.sendall(b"the other half")
        assert reading.recv(100) == b""


def test_a_request_that_drips_is_at_its_end(monkeypatch):
    monkeypatch.setattr(worker, "SILENCE_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reading, received = ImpatientSocket(ours), 0
        while received < 50:
            theirs.send(b"x")
            if not reading.recv(1):
                break
            received += 1
            time.sleep(0.02)
    assert 0 < received < 50


def test_a_large_request_has_the_time_that_it_needs(monkeypatch):
    monkeypatch.setattr(worker, "SILENCE_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reading = ImpatientSocket(ours)
        before = reading._deadline
        theirs.sendall(bytes(100_000))
        assert sum(len(reading.recv(50_000)) for _each in range(2)) == 100_000
        assert reading._deadline - before == pytest.approx(100_000 / worker.BYTES_PER_SECOND)


def test_long_texts_are_packed_and_no_length_tells_a_secret(client, db):
    for number in range(30):
        factories.campaign(f"number-{number}", factors={"version": ["16.14"]}, repeats=1)
    taken = {"Accept-Encoding": "gzip"}
    for path in ("/campaigns/", "/api/v1/campaigns/", "/api/v1/campaigns/?format=csv"):
        plain, packed = client.get(path), client.get(path, headers=taken)
        assert "Content-Encoding" not in plain.headers
        assert "Accept-Encoding" in plain.headers["Vary"]
        assert packed.headers["Content-Encoding"] == "gzip"
        sent = b"".join(packed) if packed.streaming else packed.content
        expected = b"".join(plain) if plain.streaming else plain.content
        assert len(gzip.decompress(sent)) == len(expected)
        assert 3 * len(sent) < len(expected)

    lengths = {len(client.get("/login/", headers=taken).content) for _each in range(20)}
    assert len(lengths) > 5
    for path in ("/healthz/", "/campaigns/number-1/badge.svg"):
        assert "Content-Encoding" not in client.get(path, headers=taken).headers
