"""Webhooks that report changes, with what they sent."""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Prefetch, QuerySet

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.models import Token, Webhook, WebhookDelivery
from runs.shared.newest import take_newest

SHOWN_DELIVERIES = 10


def webhooks(*, to: Token | User | AnonymousUser) -> QuerySet[Webhook]:
    """Those of a token's project; for a person those of the projects that they maintain."""
    webhooks_found = Webhook.objects.select_related("project").order_by("-pk")
    return permissions.filter_by_right(webhooks_found, Right.WEBHOOKS, to=to)


def list_with_deliveries(asker: Token | User | AnonymousUser) -> QuerySet[Webhook]:
    """The same with the newest reports of each, as `recent`."""
    newest = take_newest(
        WebhookDelivery.objects.all(),
        Webhook.objects.all(),
        foreign_key="webhook",
        number=SHOWN_DELIVERIES,
    )
    return webhooks(to=asker).prefetch_related(
        Prefetch("deliveries", newest, to_attr="recent")
    )


def deliveries(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """The reports of a webhook, the newest first."""
    return WebhookDelivery.objects.filter(webhook=webhook).order_by("-pk")
