"""Webhooks that a person may see and change, and the outcome of their reports."""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Prefetch, QuerySet

from runs.models import Token, Webhook, WebhookDelivery
from runs.selectors.access import permissions
from runs.selectors.access.rights import Right

SHOWN_DELIVERIES = 10


def of(asker: Token | User | AnonymousUser) -> QuerySet[Webhook]:
    """Those of a token's project; for a person those of the projects that they maintain."""
    found = Webhook.objects.select_related("project").order_by("-pk")
    if isinstance(asker, Token):
        return found.filter(project=asker.project_id)
    if not isinstance(asker, User) or not asker.is_active:
        return found.none()
    maintained = permissions.may_in(asker, Right.WEBHOOKS)
    return found if maintained is None else found.filter(project__in=maintained)


def with_deliveries(asker: Token | User | AnonymousUser) -> QuerySet[Webhook]:
    """The same with the newest reports of each, as `recent`."""
    newest = WebhookDelivery.objects.order_by("-pk")[:SHOWN_DELIVERIES]
    return of(asker).prefetch_related(Prefetch("deliveries", newest, to_attr="recent"))


def deliveries(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """The reports of a webhook, the newest first."""
    return WebhookDelivery.objects.filter(webhook=webhook).order_by("-pk")
