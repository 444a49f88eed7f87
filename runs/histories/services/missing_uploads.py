"""Missing uploads: each absence is reported once."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from runs.histories.services import webhooks
from runs.models import Campaign, Run


def look() -> list[Campaign]:
    """Report each campaign whose uploads are late; return those reported now.

    An absence starts at the last upload, so the next one ends it.
    """
    return [campaign for campaign in _late() if _tell(campaign)]


def expect(*, campaign: Campaign, every: timedelta | None) -> Campaign:
    """Set how often uploads are expected; None is never. The absence starts from now."""
    Campaign.objects.filter(pk=campaign.pk).update(
        expected_every=every, missing_told_at=None
    )
    campaign.refresh_from_db()
    return campaign


def track(*, campaign: Campaign, ref: str) -> Campaign:
    """Set the branch of the history; empty means all revisions."""
    Campaign.objects.filter(pk=campaign.pk).update(tracked_ref=ref)
    campaign.refresh_from_db()
    return campaign


def _late() -> list[Campaign]:
    # Each is one lookup in the index run_by_campaign, however many runs a campaign has.
    newest = Run.objects.filter(campaign=OuterRef("pk")).order_by("-pk")
    watched = Campaign.objects.filter(expected_every__isnull=False).annotate(
        last_upload_at=Subquery(newest.values("queued_at")[:1]),
        since=Coalesce(F("last_upload_at"), F("created_at")),
    )
    untold = Q(missing_told_at=None) | Q(missing_told_at__lt=F("since"))
    late = watched.filter(untold, since__lt=timezone.now() - F("expected_every"))
    return list(late.order_by("pk"))


@transaction.atomic
def _tell(campaign: Campaign) -> bool:
    """Report it, unless another worker has done so since we looked."""
    told_at = campaign.missing_told_at
    untold = Campaign.objects.filter(pk=campaign.pk, missing_told_at=told_at)
    if not untold.update(missing_told_at=timezone.now()):
        return False
    since: datetime | None = getattr(campaign, "last_upload_at", None)
    webhooks.missing(campaign=campaign, since=since)
    return True
