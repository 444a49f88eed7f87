"""Webhooks that somebody may see and change, and how their reports went."""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Prefetch, QuerySet

from runs.models import Token, Webhook, WebhookDelivery

SHOWN_DELIVERIES = 10


def of(asker: Token | User | AnonymousUser) -> QuerySet[Webhook]:
    """A token's project's; all of them for an administrator; nobody else sees any."""
    found = Webhook.objects.select_related("project").order_by("-pk")
    if isinstance(asker, Token):
        return found.filter(project=asker.project_id)
    return found if asker.is_active and asker.is_superuser else found.none()


def with_deliveries(asker: Token | User | AnonymousUser) -> QuerySet[Webhook]:
    """The same with the newest reports of each, as `recent`."""
    newest = WebhookDelivery.objects.order_by("-pk")[:SHOWN_DELIVERIES]
    return of(asker).prefetch_related(Prefetch("deliveries", newest, to_attr="recent"))


def deliveries(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """The reports of a webhook, the newest first."""
    return WebhookDelivery.objects.filter(webhook=webhook).order_by("-pk")
