"""Webhooks: what is sent to a real receiver, what is tried again, and where nothing is sent."""

import hashlib
import hmac
import json
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.utils import timezone

from runs import celery_messages
from runs.access.services import projects
from runs.histories.services import deliveries, webhooks
from runs.histories.services.deliveries import PAUSES, Undeliverable
from runs.models import Instance, Webhook, WebhookDelivery
from runs.queue.services import transitions
from runs.shared import copies
from runs.shared.errors import ServiceError
from tests import factories
from tests.api.receiver import Receiver

pytestmark = pytest.mark.django_db

SECRET = "a secret of many characters"


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOW_PRIVATE = True
    with Receiver() as running:
        yield running


@pytest.fixture
def hook(project, receiver):
    return webhooks.create(project=project, url=receiver.url, secret=SECRET).webhook


def queued(hook, event="change.found", **content):
    webhooks.queue(event=event, project_id=hook.project_id, content=content)
    return WebhookDelivery.objects.order_by("-pk").first()


def sent(delivery):
    deliveries.deliver(delivery_id=delivery.pk)
    delivery.refresh_from_db()
    return delivery


def due(delivery):
    WebhookDelivery.objects.filter(pk=delivery.pk).update(next_try_at=timezone.now())


# What is sent


def test_a_report_arrives_as_it_is_stored(hook, receiver):
    delivery = sent(queued(hook, campaign={"title": "夜間"}))

    (request,) = receiver.requests
    assert (delivery.state, delivery.status, delivery.tries) == ("delivered", 204, 1)
    assert request.body == delivery.payload.encode()
    assert "夜間" in delivery.payload  # readable in the log
    assert request.path == "/hook?to=team"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-BenchLab-Event"] == "change.found"
    assert request.headers["X-BenchLab-Delivery"] == str(delivery.pk)
    body = json.loads(request.body)
    assert (body["event"], body["project"]) == ("change.found", "default")
    assert body["campaign"]["title"] == "夜間"


def test_the_signature_is_of_the_time_and_the_body(hook, receiver):
    sent(queued(hook))

    (request,) = receiver.requests
    at = request.headers["X-BenchLab-Timestamp"]
    expected = hmac.new(
        SECRET.encode(), at.encode() + b"." + request.body, hashlib.sha256
    )
    assert request.headers["X-BenchLab-Signature"] == f"sha256={expected.hexdigest()}"
    assert abs(time.time() - int(at)) < 30


def test_a_second_try_has_a_time_of_its_own(hook, receiver, monkeypatch):
    receiver.status = 500
    delivery = sent(queued(hook))
    due(delivery)
    time.sleep(1.1)
    sent(delivery)

    first, second = receiver.requests
    assert first.body == second.body
    assert (
        first.headers["X-BenchLab-Signature"] != second.headers["X-BenchLab-Signature"]
    )


def test_only_those_who_want_an_event_get_it(project, receiver):
    webhooks.create(project=project, url=receiver.url, events=["upload.missing"])
    switched_off = webhooks.create(project=project, url=receiver.url).webhook
    webhooks.change(webhook=switched_off, is_active=False)
    other = projects.create(slug="other", is_public=True)
    webhooks.create(project=other, url=receiver.url)

    webhooks.queue(event="change.found", project_id=project.pk, content={})

    assert not WebhookDelivery.objects.exists()


def test_what_belongs_to_no_project_is_the_default_ones(hook):
    webhooks.queue(event="campaign.finished", project_id=None, content={})

    assert WebhookDelivery.objects.get().webhook == hook


def test_a_worker_is_woken_on_commit(
    hook, django_capture_on_commit_callbacks, monkeypatch
):
    woken = []
    monkeypatch.setattr(
        celery_messages, "_send", lambda *message: woken.append(message)
    )

    with django_capture_on_commit_callbacks(execute=True):
        delivery = queued(hook)

    assert woken == [(celery_messages.DELIVER, delivery.pk)]


def test_a_campaign_that_was_queued_here_tells_once_that_it_has_ended(hook):
    campaign = factories.campaign("first", repeats=1)
    for run in campaign.runs.all():
        factories.finish(run, tps=1000)
        transitions.refresh_campaign(campaign_id=campaign.pk)
    transitions.refresh_campaign(campaign_id=campaign.pk)

    (delivery,) = WebhookDelivery.objects.all()
    body = json.loads(delivery.payload)
    assert (body["event"], body["campaign"]["state"]) == (
        "campaign.finished",
        "finished",
    )


# Tries


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_an_answer_that_is_no_success_is_tried_again(hook, receiver, status):
    receiver.status, receiver.answer = status, b"not today"
    before = timezone.now()

    delivery = sent(queued(hook))

    assert (delivery.state, delivery.status) == ("waiting", status)
    assert delivery.problem == f"{status}: not today"
    assert delivery.next_try_at >= before + PAUSES[0]
    due(delivery)
    receiver.status = 200
    assert sent(delivery).state == "delivered"
    assert delivery.tries == 2


def test_a_delivery_is_given_up_after_the_last_pause(hook, receiver):
    receiver.status = 500
    delivery = queued(hook)
    for _ in range(len(PAUSES) + 1):
        due(delivery)
        sent(delivery)

    assert (delivery.state, delivery.tries) == ("given_up", len(PAUSES) + 1)
    assert delivery.next_try_at is None
    assert deliveries.deliver(delivery_id=delivery.pk) is None


def test_each_pause_is_longer_than_the_one_before_and_after_the_last_there_is_none():
    begun = timezone.now()
    pauses = [
        deliveries._next_try(tries) - begun for tries in range(1, len(PAUSES) + 1)
    ]

    assert [each // timedelta(seconds=1) for each in pauses] == [
        30,
        120,
        600,
        3600,
        21600,
        86400,
    ]
    assert deliveries._next_try(len(PAUSES) + 1) is None


def test_what_is_being_sent_is_not_sent_by_another_worker_for_a_minute(
    hook, monkeypatch
):
    delivery, begun, seen = queued(hook), timezone.now(), []

    def post(*_given, **_more):
        if not seen:
            delivery.refresh_from_db()
            seen.extend(
                [
                    delivery.next_try_at - begun,
                    deliveries.deliver(delivery_id=delivery.pk),
                ]
            )
        return deliveries.Answer(204, "")

    monkeypatch.setattr(deliveries, "post", post)

    assert sent(delivery).state == "delivered"
    held, again = seen
    assert (held // timedelta(seconds=1), again) == (60, None)


def test_one_that_is_not_due_is_not_sent(hook, receiver):
    receiver.status = 500
    delivery = sent(queued(hook))

    assert deliveries.deliver(delivery_id=delivery.pk) is None
    assert len(receiver.requests) == 1


def test_a_worker_that_was_killed_leaves_its_delivery_to_the_next(hook, receiver):
    delivery = queued(hook)
    WebhookDelivery.objects.update(
        tries=1, next_try_at=timezone.now() + deliveries.TRY_TAKES
    )

    assert deliveries.deliver(delivery_id=delivery.pk) is None
    due(delivery)
    assert sent(delivery).state == "delivered"


def test_the_beat_wakes_what_is_due(
    hook, django_capture_on_commit_callbacks, monkeypatch
):
    woken = []
    monkeypatch.setattr(
        celery_messages, "_send", lambda *message: woken.append(message)
    )
    delivery, later = queued(hook), queued(hook)
    WebhookDelivery.objects.filter(pk=later.pk).update(
        next_try_at=timezone.now() + timedelta(hours=1)
    )

    with django_capture_on_commit_callbacks(execute=True):
        deliveries.wake()

    assert woken == [(celery_messages.DELIVER, delivery.pk)]


def test_old_deliveries_are_forgotten_unless_they_wait(hook, receiver):
    old, new, waiting = sent(queued(hook)), sent(queued(hook)), queued(hook)
    for each, hours in ((old, 30 * 24 + 1), (new, 30 * 24 - 1), (waiting, 30 * 24 + 1)):
        at = timezone.now() - timedelta(hours=hours)
        WebhookDelivery.objects.filter(pk=each.pk).update(created_at=at)

    deliveries.forget()

    assert list(WebhookDelivery.objects.order_by("pk")) == [new, waiting]


def test_nobody_there_is_tried_again(hook, receiver):
    Webhook.objects.update(url=f"http://127.0.0.1:{free_port()}/")

    delivery = sent(queued(hook))

    assert delivery.state == "waiting"
    assert "ConnectionRefusedError" in delivery.problem


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_a_redirect_is_not_followed(hook, receiver):
    receiver.status, receiver.headers = 302, {"Location": receiver.url}

    delivery = sent(queued(hook))

    assert delivery.problem == "302: redirects are not followed"
    assert len(receiver.requests) == 1


def test_of_a_long_answer_only_the_beginning_is_kept(hook, receiver):
    receiver.status, receiver.answer = 500, b"x" * 10_000_000

    assert len(sent(queued(hook)).problem) == 1000


@pytest.mark.parametrize(
    "beginning",
    [
        b"HTTP/1.0 2",
        b"HTTP/1.0 500 Not Today\r\n\r\n",
        b"HTTP/1.1 500 Not Today\r\nContent-Length: 4000\r\n\r\n",
    ],
)
def test_an_answer_that_drips_is_broken_off(hook, receiver, monkeypatch, beginning):
    monkeypatch.setattr(deliveries, "TIMEOUT_SECONDS", 0.5)
    receiver.drip, receiver.beginning = 0.1, beginning
    begun = time.monotonic()

    delivery = sent(queued(hook))

    assert delivery.state == "waiting"
    assert time.monotonic() - begun < 5


def test_a_secret_that_cannot_be_read_is_a_try_that_failed(hook, receiver, settings):
    settings.ENCRYPTION_KEY, right = (
        Fernet.generate_key().decode(),
        settings.ENCRYPTION_KEY,
    )
    before = timezone.now()

    delivery = sent(queued(hook))

    assert (delivery.state, receiver.requests) == ("waiting", [])
    assert "BENCHLAB_ENCRYPTION_KEY" in delivery.problem
    assert delivery.next_try_at >= before + PAUSES[0]
    due(delivery)
    settings.ENCRYPTION_KEY = right
    assert sent(delivery).state == "delivered"


# Where nothing is sent


def test_what_waits_for_a_webhook_that_is_switched_off_is_given_up(hook, receiver):
    delivery = queued(hook)

    webhooks.change(webhook=hook, is_active=False)

    assert deliveries.deliver(delivery_id=delivery.pk) is None
    delivery.refresh_from_db()
    assert (delivery.state, delivery.next_try_at) == ("given_up", None)
    assert delivery.problem == "The webhook was switched off."
    webhooks.change(webhook=hook, is_active=True)
    assert deliveries.deliver(delivery_id=delivery.pk) is None
    assert receiver.requests == []


def test_what_was_tried_while_its_webhook_was_switched_off_is_not_tried_again(
    hook, receiver
):
    delivery = queued(hook)
    Webhook.objects.update(is_active=False)

    assert deliveries.deliver(delivery_id=delivery.pk) is None
    delivery.refresh_from_db()
    assert (delivery.state, receiver.requests) == ("given_up", [])


def test_a_webhook_that_is_switched_off_can_be_tried(hook, receiver):
    webhooks.change(webhook=hook, is_active=False)

    assert sent(webhooks.ping(webhook=hook)).state == "delivered"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fd00::1]",
        "[fec0::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
    ],
)
def test_addresses_that_are_not_public_are_refused(host):
    with pytest.raises(Undeliverable, match=r"not a public address|has no address"):
        deliveries.post(f"http://{host}/", b"", {}, allow_private=False)


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"]
)
def test_addresses_of_the_internet_are_public(text):
    assert deliveries.is_public(text)


def test_a_private_address_is_told_with_what_to_do(hook, receiver, settings):
    settings.WEBHOOK_ALLOW_PRIVATE = False

    delivery = sent(queued(hook))

    assert receiver.requests == []
    assert "BENCHLAB_WEBHOOK_ALLOW_PRIVATE=1" in delivery.problem


def test_one_private_address_among_several_refuses_the_name(monkeypatch):
    found = [(2, 1, 6, "", (address, 80)) for address in ("8.8.8.8", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_given, **_more: found)

    with pytest.raises(Undeliverable, match=r"127\.0\.0\.1"):
        deliveries.resolve(urlsplit("http://two.example/"), allow_private=False)


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://a.example/", 80),
        ("https://a.example/", 443),
        ("https://a.example:8443/", 8443),
    ],
)
def test_a_name_is_looked_up_for_the_port_of_its_address(monkeypatch, url, port):
    asked = []
    found = [(2, 1, 6, "", ("8.8.8.8", port))]
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *given, **_more: asked.append(given) or found
    )

    assert deliveries.resolve(urlsplit(url), allow_private=False) == "8.8.8.8"
    assert asked == [("a.example", port)]


def certified(name, folder):
    """The path of a key with its own certificate of that name."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(
            subject, subject, key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path = folder / "both.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(pem)
    )
    return path


def test_over_tls_the_certificate_must_be_of_the_name(receiver, monkeypatch, tmp_path):
    path, port = certified("turns.example", tmp_path), urlsplit(receiver.url).port
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    receiver.server.socket = tls.wrap_socket(receiver.server.socket, server_side=True)
    found = [(2, 1, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_given, **_more: found)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))

    assert (
        deliveries.post(
            f"https://turns.example:{port}/", b"", {}, allow_private=True
        ).status
        == 204
    )
    with pytest.raises(Undeliverable, match="not valid for 'other"):
        deliveries.post(f"https://other.example:{port}/", b"", {}, allow_private=True)
    assert [each.headers["Host"] for each in receiver.requests] == [
        f"turns.example:{port}"
    ]


def test_a_handshake_that_ends_after_the_time_is_broken_off(
    receiver, monkeypatch, tmp_path
):
    """Connecting was slow as well: the socket's own timeout begins anew with the handshake."""
    path, port = certified("turns.example", tmp_path), urlsplit(receiver.url).port
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    receiver.server.socket = tls.wrap_socket(
        receiver.server.socket, server_side=True, do_handshake_on_connect=False
    )
    receiver.drip = 0.1
    accept, connect = receiver.server.get_request, socket.create_connection

    def accept_slowly():
        accepted = accept()
        time.sleep(0.6)
        return accepted

    def connect_slowly(*given):
        time.sleep(0.6)
        return connect(*given)

    monkeypatch.setattr(receiver.server, "get_request", accept_slowly)
    monkeypatch.setattr(socket, "create_connection", connect_slowly)
    monkeypatch.setattr(deliveries, "TIMEOUT_SECONDS", 1.0)
    found = [(2, 1, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_given, **_more: found)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))

    begun = time.monotonic()
    with pytest.raises(Undeliverable):
        deliveries.post(f"https://turns.example:{port}/", b"", {}, allow_private=True)
    assert time.monotonic() - begun < 5


def test_the_address_that_was_checked_is_the_one_connected_to(receiver, monkeypatch):
    port = urlsplit(receiver.url).port
    answers = [[(2, 1, 6, "", ("127.0.0.1", port))]]
    # A name that answers once, and then leads elsewhere: nobody may ask for it again.
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *given, **more: (
            answers.pop() if host == "turns.example" else real(host, *given, **more)
        ),
    )

    answer = deliveries.post(
        f"http://turns.example:{port}/", b"{}", {}, allow_private=True
    )

    assert answer.status == 204
    assert receiver.requests[0].headers["Host"] == f"turns.example:{port}"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://ci.example/",
        "file:///etc/passwd",
        "https://",
        "ci.example/hook",
        "",
        "http://user:password@ci.example/",
        "http://ci.example:99999/",
        "http://[::1/",
        "http://ci.example:0/",
    ],
)
def test_what_is_no_address_of_a_web_server_is_refused(client, admin, url):
    answer = post(client, admin, "webhooks/", {"url": url})

    assert answer.status_code in {400, 422}, answer.content
    assert not Webhook.objects.exists()


# The API


@pytest.fixture
def admin(make_token):
    return {"Authorization": f"Bearer {make_token('admin')}"}


def post(client, headers, path, body=None):
    return client.post(
        f"/api/v1/{path}", body or {}, "application/json", headers=headers
    )


def test_a_webhook_is_made_and_its_secret_told_once(client, admin):
    answer = post(client, admin, "webhooks/", {"url": "https://ci.example/hook"})

    body = answer.json()
    assert answer.status_code == 201, answer.content
    assert len(body["secret"]) >= 40
    assert body["kind"] == "signed"
    assert body["events"] == list(webhooks.EVENTS)
    assert webhooks.secret_of(Webhook.objects.get()) == body["secret"]
    assert body["secret"] not in Webhook.objects.get().encrypted_secret
    again = client.get(f"/api/v1/webhooks/{body['id']}/", headers=admin).json()
    assert "secret" not in again
    assert client.get("/api/v1/webhooks/", headers=admin).json()["results"] == [again]


def test_the_secret_may_be_the_receivers(client, admin):
    given = {"url": "https://ci.example/", "secret": 16 * "s"}

    assert post(client, admin, "webhooks/", given).json()["secret"] == 16 * "s"


@pytest.mark.parametrize(
    ("given", "pointer", "code"),
    [
        ({"events": []}, "/events", "no_event"),
        ({"kind": "fax"}, "/kind", "kind_unknown"),
        ({"events": ["run.exploded"]}, "/events", "event_unknown"),
        ({"secret": 15 * "s"}, "/secret", "secret_too_short"),
        ({"target": "x"}, "/target", "unknown_field"),
        ({"url": None}, "/url", "null"),
    ],
)
def test_a_webhook_that_is_wrong_is_pointed_at(client, admin, given, pointer, code):
    answer = post(client, admin, "webhooks/", {"url": "https://ci.example/"} | given)

    assert answer.status_code in {400, 422}
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
        (pointer, code)
    ]


def test_a_webhook_is_changed_and_removed(client, admin, hook):
    path = f"/api/v1/webhooks/{hook.pk}/"
    given = {"is_active": False, "events": ["upload.missing"], "kind": "slack"}

    body = client.patch(path, given, "application/json", headers=admin).json()

    assert (body["is_active"], body["events"]) == (False, ["upload.missing"])
    assert body["kind"] == "slack"
    assert body["url"] == hook.url
    assert client.delete(path, headers=admin).status_code == 204
    assert client.get(path, headers=admin).status_code == 404


def test_a_ping_is_sent_and_logged(client, admin, hook, receiver):
    made = post(client, admin, f"webhooks/{hook.pk}/ping/")
    sent(WebhookDelivery.objects.get())

    assert made.status_code == 202
    (row,) = client.get(f"/api/v1/webhooks/{hook.pk}/deliveries/", headers=admin).json()
    assert (row["event"], row["state"], row["status"]) == ("ping", "delivered", 204)
    assert row["payload"].encode() == receiver.requests[0].body


@pytest.mark.parametrize("scopes", [("read", "upload", "queue")])
def test_webhooks_are_for_the_scope_admin(client, make_token, hook, scopes):
    header = {"Authorization": f"Bearer {make_token(*scopes)}"}

    assert client.get("/api/v1/webhooks/", headers=header).status_code == 403
    assert (
        post(client, header, "webhooks/", {"url": "https://x.example/"}).status_code
        == 403
    )
    assert client.get("/api/v1/webhooks/").status_code == 401


def test_a_token_sees_its_own_projects_webhooks_only(client, make_token, hook):
    other = projects.create(slug="other", is_public=True)
    header = {"Authorization": f"Bearer {make_token('admin', of=other)}"}

    assert client.get("/api/v1/webhooks/", headers=header).json()["results"] == []
    assert client.get(f"/api/v1/webhooks/{hook.pk}/", headers=header).status_code == 404
    assert (
        client.delete(f"/api/v1/webhooks/{hook.pk}/", headers=header).status_code == 404
    )


# The page


def test_the_page_makes_a_webhook_and_shows_its_secret_once(admin_client, project):
    given = {
        "url": "https://ci.example/",
        "kind": "teams",
        "project": "default",
        "events": ["change.found"],
    }

    page = admin_client.post("/webhooks/", given).content.decode()

    secret = webhooks.secret_of(Webhook.objects.get())
    assert Webhook.objects.get().kind == "teams"
    assert secret in page
    assert secret not in admin_client.get("/webhooks/").content.decode()


def test_the_page_tells_what_is_wrong_with_an_address(admin_client, project):
    given = {
        "url": "ftp://ci.example/",
        "kind": "teams",
        "project": "default",
        "events": ["change.found"],
    }

    page = admin_client.post("/webhooks/", given).content.decode()

    assert "is not an address http(s)://" in page


def test_the_page_shows_how_reports_went(admin_client, hook, receiver):
    receiver.status, receiver.answer = 500, b"out of order"
    admin_client.post(f"/webhooks/{hook.pk}/ping/")
    sent(WebhookDelivery.objects.get())

    page = admin_client.get("/webhooks/").content.decode()

    assert "500: out of order" in page


def test_the_page_removes_a_webhook(admin_client, hook):
    page = admin_client.post(
        f"/webhooks/{hook.pk}/remove/", follow=True
    ).content.decode()

    assert "was removed" in page
    assert not Webhook.objects.exists()


def test_the_page_is_for_administrators(client, hook, django_user_model):
    assert client.get("/webhooks/").status_code == 302
    client.force_login(django_user_model.objects.create_user("ichiro"))
    assert client.get("/webhooks/").status_code == 403
    assert client.post(f"/webhooks/{hook.pk}/ping/").status_code == 403
    assert client.post(f"/webhooks/{hook.pk}/remove/").status_code == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.7", "192.168.1.4:8080"]
)
def test_an_address_that_reports_may_not_reach_is_refused_when_it_is_stored(
    settings, project, host
):
    settings.WEBHOOK_ALLOW_PRIVATE = False

    with pytest.raises(ServiceError) as refused:
        webhooks.create(project=project, url=f"http://{host}/hook")

    assert (refused.value.code, refused.value.field) == ("url_not_allowed", "url")
    assert "BENCHLAB_WEBHOOK_ALLOW_PRIVATE=1" in str(refused.value.remedy)


@pytest.mark.django_db
def test_a_held_copy_delivers_nothing(hook, receiver):
    delivery = queued(hook)
    copies.hold(Instance.Hold.RESTORED)
    assert deliveries.deliver(delivery_id=delivery.pk) is None
    Instance.objects.update(held_since=None)
    assert sent(delivery).state == WebhookDelivery.State.DELIVERED
