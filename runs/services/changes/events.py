"""What is reported to the outside: each event once, in the transaction that makes it true."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from runs import dispatch
from runs.models import Campaign, Cell, Change, Revision
from runs.services.changes import webhooks


def changed(*, change: Change, campaign: Campaign) -> None:
    """`change.found` or `alarm.raised`; members of the project get a mail as well."""
    event = "change.found" if change.kind == Change.Kind.STEP else "alarm.raised"
    cell = Cell.objects.select_related("revision").get(pk=change.cell_id)
    content = {
        "change": {
            "id": change.pk,
            "kind": change.kind,
            "verdict": change.verdict,
            "metric": change.metric.name,
            "unit": change.metric.unit,
            "levels": cell.levels,
            "revision": _revision(cell.revision),
            "run": change.run_id,
            "ratio": change.ratio,
            "before": change.before,
            "after": change.after,
            "url": history_address(campaign, change),
        }
    }
    _tell(event, campaign, content)
    dispatch.send_mails()


def missing(*, campaign: Campaign, since: datetime | None) -> None:
    """`upload.missing`: no upload for longer than the campaign expects."""
    every = campaign.expected_every.total_seconds() if campaign.expected_every else None
    content = {"expected_every": every, "last_upload_at": since.isoformat() if since else None}
    _tell("upload.missing", campaign, content)


def finished(*, campaign: Campaign) -> None:
    """`campaign.finished`: every run of a campaign that was queued here has ended."""
    _tell("campaign.finished", campaign, {})


def address(path: str) -> str:
    """A path as an absolute address, if the site knows its own (`BENCHLAB_URL`)."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}"


def history_address(campaign: Campaign, change: Change) -> str:
    """The address at which an outside reader sees the change with its neighbours."""
    return address(history_path(campaign, change))


def history_path(campaign: Campaign, change: Change) -> str:
    """The page of the change's history, at the change."""
    path = reverse("campaign-history", args=[campaign.slug])
    return f"{path}?metric={change.metric.name}#change-{change.pk}"


def _tell(event: str, campaign: Campaign, content: dict[str, Any]) -> None:
    about = {
        "slug": campaign.slug,
        "title": campaign.title,
        "state": campaign.state,
        "url": address(reverse("campaign-detail", args=[campaign.slug])),
    }
    webhooks.queue(
        event=event, project_id=campaign.project_id, content={"campaign": about, **content}
    )


def _revision(revision: Revision | None) -> dict[str, str] | None:
    if revision is None:
        return None
    return {"sha": revision.sha, "ref": revision.ref, "url": revision.url}
