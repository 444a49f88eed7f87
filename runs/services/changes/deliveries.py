"""Sends queued webhook deliveries: signed, retried with growing pauses, and logged."""

import hashlib
import hmac
from datetime import datetime, timedelta
from http import HTTPStatus

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import dispatch
from runs.models import WebhookDelivery
from runs.services.changes import http_post as outgoing
from runs.services.changes import webhooks
from runs.services.changes.http_post import Answer, Undeliverable

State = WebhookDelivery.State
# The pause after each failed try; after the last one the delivery is given up.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 600, 3600, 6 * 3600, 24 * 3600))
# Until then nobody else tries; the delivery of a worker that was killed goes to the next one.
TRY_TAKES = timedelta(seconds=60)
KEPT_FOR = timedelta(days=30)
MOST_WOKEN = 200
LONGEST_PROBLEM = 1000


def wake() -> None:
    """Wake a worker for each delivery that is due, and delete those that ended long ago."""
    now = timezone.now()
    due = WebhookDelivery.objects.filter(state=State.WAITING, next_try_at__lte=now)
    for key in due.order_by("next_try_at").values_list("pk", flat=True)[:MOST_WOKEN]:
        dispatch.deliver(key)
    ended = WebhookDelivery.objects.filter(created_at__lt=now - KEPT_FOR)
    ended.exclude(state=State.WAITING).delete()


def deliver(*, delivery_id: int) -> WebhookDelivery | None:
    """Send a report if it is due and nobody else is sending it, else return None.

    A delivery that was tried while its webhook was being switched off is given up.
    """
    delivery = _claim(delivery_id)
    if delivery is None:
        return None
    try:
        answer = _send(delivery)
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
        _answered(delivery, answer)
    return delivery


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The value of `X-BenchLab-Signature`: an HMAC of time and body, so neither can be replayed."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"sha256={signed.hexdigest()}"


@transaction.atomic
def _claim(delivery_id: int) -> WebhookDelivery | None:
    now = timezone.now()
    due = WebhookDelivery.objects.select_for_update(skip_locked=True, of=("self",)).filter(
        pk=delivery_id, state=State.WAITING, next_try_at__lte=now
    )
    delivery = due.select_related("webhook").first()
    if delivery is None or webhooks.give_up(WebhookDelivery.objects.filter(pk=delivery.pk)):
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
        "X-BenchLab-Signature": signature(webhooks.secret_of(delivery.webhook), timestamp, body),
    }
    return outgoing.post(
        delivery.webhook.url, body, headers, allow_private=settings.WEBHOOK_ALLOW_PRIVATE
    )


def _answered(delivery: WebhookDelivery, answer: Answer) -> None:
    delivery.status = answer.status
    if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        delivery.state, delivery.problem = State.DELIVERED, ""
        delivery.delivered_at, delivery.next_try_at = timezone.now(), None
        _save(delivery)
    elif answer.status < HTTPStatus.BAD_REQUEST:
        _failed(delivery, f"{answer.status}: redirects are not followed")
    else:
        _failed(delivery, f"{answer.status}: {answer.text}")


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
