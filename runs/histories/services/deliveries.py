"""Sends queued webhook deliveries: signed, retried with growing pauses, and logged.

Uses the standard library: `http.client` can connect to the very address that was checked, which
requests and httpx cannot without a transport of our own.
"""

import hashlib
import hmac
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.histories.services import webhooks
from runs.histories.services.public_addresses import is_public
from runs.models import WebhookDelivery
from runs.shared.copies import not_held

TIMEOUT_SECONDS = 10.0
MOST_BYTES = 4096


class Undeliverable(Exception):
    """The report did not arrive; the message gives the reason."""


@dataclass(frozen=True)
class Answer:
    """The receiver's answer: the status, and the beginning of the body."""

    status: int
    text: str


class _PinnedHTTP(http.client.HTTPConnection):
    """Connects to the address that was checked, whatever the name resolves to now."""

    def __init__(self, url_parts: SplitResult, address: str) -> None:
        super().__init__(
            str(url_parts.hostname), url_parts.port, timeout=TIMEOUT_SECONDS
        )
        self.address = address
        self.is_over = False
        # http.client forgets its own before it reads the body of a connection that closes.
        self.transport: socket.socket | None = None

    def connect(self) -> None:
        self.sock = socket.create_connection((self.address, self.port), TIMEOUT_SECONDS)
        self._use(self.sock)

    def break_off(self) -> None:
        """End it from another thread: what is read or connected raises an OSError."""
        self.is_over = True
        if self.transport is not None:
            with suppress(OSError):  # It has already ended.
                self.transport.shutdown(socket.SHUT_RDWR)

    def _use(self, transport: socket.socket) -> None:
        """Use a socket from now on. Raises TimeoutError if it was broken off meanwhile."""
        # In this order: either `break_off` sees this socket, or it is seen here.
        self.transport = transport
        if self.is_over:
            raise TimeoutError("timed out")


class _PinnedHTTPS(_PinnedHTTP):
    """The same over TLS; the certificate must match the name."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        tls = ssl.create_default_context()
        # During the handshake the socket is nobody's, and cannot be broken off.
        self.sock = tls.wrap_socket(self.sock, server_hostname=self.host)
        self._use(self.sock)


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool
) -> Answer:
    """Send the body, and return the answer, whatever its status. Redirects are not followed.

    Raises Undeliverable: the name has no address, or one that is not public; nobody answers
    within TIMEOUT_SECONDS; or the answer does not come from a web server.
    """
    url_parts = urlsplit(url)
    address = resolve(url_parts, allow_private=allow_private)
    kind = _PinnedHTTPS if url_parts.scheme == "https" else _PinnedHTTP
    connection = kind(url_parts, address)
    # A receiver that sends a byte now and then would never hit the timeout of the socket.
    deadline = threading.Timer(TIMEOUT_SECONDS, connection.break_off)
    deadline.daemon = True
    deadline.start()
    try:
        connection.request("POST", _target(url_parts), body, dict(headers))
        response = connection.getresponse()
        return Answer(
            response.status, response.read(MOST_BYTES).decode("utf-8", "replace")
        )
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Undeliverable(f"{type(error).__name__}: {error}") from error
    finally:
        deadline.cancel()
        connection.close()


def resolve(url_parts: SplitResult, *, allow_private: bool) -> str:
    """The address to connect to. If one address is not public, the name is refused.

    Raises Undeliverable.
    """
    host, port = (
        str(url_parts.hostname),
        url_parts.port or (443 if url_parts.scheme == "https" else 80),
    )
    try:
        address_entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Undeliverable(f"{host} has no address: {error}") from error
    addresses = [str(entry[4][0]) for entry in address_entries]
    for address in addresses:
        if not allow_private and not is_public(address):
            raise Undeliverable(
                f"{host} is {address}, which is not a public address. To allow addresses of your"
                " own network, set BENCHLAB_WEBHOOK_ALLOW_PRIVATE=1."
            )
    return addresses[0]


def _target(url_parts: SplitResult) -> str:
    path = url_parts.path or "/"
    return f"{path}?{url_parts.query}" if url_parts.query else path


State = WebhookDelivery.State
# The pause after each failed try; after the last one the delivery is given up.
PAUSES = tuple(
    timedelta(seconds=seconds) for seconds in (30, 120, 600, 3600, 6 * 3600, 24 * 3600)
)
# Until then nobody else tries; the delivery of a worker that was killed goes to the next one.
TRY_TAKES = timedelta(seconds=60)
KEPT_FOR = timedelta(days=30)
MOST_WOKEN = 200
LONGEST_PROBLEM = 1000


def wake() -> None:
    """Wake a worker for each delivery that is due."""
    due = WebhookDelivery.objects.filter(
        state=State.WAITING, next_try_at__lte=timezone.now()
    )
    for key in due.order_by("next_try_at").values_list("pk", flat=True)[:MOST_WOKEN]:
        celery_messages.deliver(key)


def forget() -> None:
    """Delete the deliveries that ended long ago."""
    ended = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    ended.exclude(state=State.WAITING).delete()


def deliver(*, delivery_id: int) -> WebhookDelivery | None:
    """Send a report if it is due and nobody else is sending it, else return None.

    A delivery that was tried while its webhook was being switched off is given up.
    """
    delivery = _claim(delivery_id)
    if delivery is None:
        return None
    try:
        response = _send(delivery)
    except Undeliverable as error:
        _failed(delivery, str(error))
    except InvalidToken:
        _failed(
            delivery,
            _(
                "The webhook's secret cannot be read: add the key it was encrypted "
                "under to BENCHLAB_ENCRYPTION_KEY, or create the webhook again."
            ),
        )
    else:
        _answered(delivery, response)
    return delivery


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The value of `X-BenchLab-Signature`: an HMAC of time and body, so neither can be replayed."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"sha256={signed.hexdigest()}"


@transaction.atomic
def _claim(delivery_id: int) -> WebhookDelivery | None:
    now = timezone.now()
    due = WebhookDelivery.objects.select_for_update(
        skip_locked=True, of=("self",)
    ).filter(not_held(), pk=delivery_id, state=State.WAITING, next_try_at__lte=now)
    delivery = due.select_related("webhook").first()
    if delivery is None or webhooks.give_up(
        WebhookDelivery.objects.filter(pk=delivery.pk)
    ):
        return None
    delivery.tries += 1
    delivery.next_try_at = now + TRY_TAKES
    delivery.save(update_fields=["tries", "next_try_at"])
    return delivery


def _send(delivery: WebhookDelivery) -> Answer:
    body = delivery.payload.encode()
    timestamp = str(int(timezone.now().timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "BenchLab",
        "X-BenchLab-Event": delivery.event,
        "X-BenchLab-Delivery": str(delivery.pk),
        "X-BenchLab-Timestamp": timestamp,
        "X-BenchLab-Signature": signature(
            webhooks.secret_of(delivery.webhook), timestamp, body
        ),
    }
    return post(
        delivery.webhook.url,
        body,
        headers,
        allow_private=settings.WEBHOOK_ALLOW_PRIVATE,
    )


def _answered(delivery: WebhookDelivery, response: Answer) -> None:
    delivery.status = response.status
    if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        delivery.state, delivery.problem = State.DELIVERED, ""
        delivery.delivered_at, delivery.next_try_at = timezone.now(), None
        _save(delivery)
    elif response.status < HTTPStatus.BAD_REQUEST:
        _failed(delivery, f"{response.status}: redirects are not followed")
    else:
        _failed(delivery, f"{response.status}: {response.text}")


def _failed(delivery: WebhookDelivery, problem: str) -> None:
    delivery.problem = problem[:LONGEST_PROBLEM].replace("\0", "")
    delivery.next_try_at = _next_try(delivery.tries)
    if delivery.next_try_at is None:
        delivery.state = State.GIVEN_UP
    _save(delivery)


def _next_try(tries: int) -> datetime | None:
    return timezone.now() + PAUSES[tries - 1] if tries <= len(PAUSES) else None


def _save(delivery: WebhookDelivery) -> None:
    """Store the outcome, unless the webhook was removed in the meantime."""
    names = ("state", "status", "problem", "next_try_at", "delivered_at")
    WebhookDelivery.objects.filter(pk=delivery.pk).update(
        **{name: getattr(delivery, name) for name in names}
    )
