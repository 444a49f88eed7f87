"""Whether anything waits for control: one query, which finds nothing in an idle lab."""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from runs.campaigns.services import kept_verdicts
from runs.models import (
    Bisection,
    Build,
    RunCount,
    SealRequest,
    StaleCell,
    WebhookDelivery,
)
from runs.seals.services import audit_chain
from runs.shared import database


def is_any() -> bool:
    """Runs to add up, bisections, builds, histories, reports, seals or verdicts; mails, perhaps."""
    rows: tuple[QuerySet[Any], ...] = (
        RunCount.objects.filter(is_sum=False),
        Bisection.objects.filter(state=Bisection.State.RUNNING),
        Build.objects.filter(state__in=Build.OPEN),
        StaleCell.objects.all(),
        WebhookDelivery.objects.filter(state=WebhookDelivery.State.WAITING),
        SealRequest.objects.filter(refused=""),
        audit_chain.waiting(),
    )
    return settings.SENDS_MAIL or kept_verdicts.waits() or database.has_any(*rows)
