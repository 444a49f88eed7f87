"""Webhooks: creating and changing them, and queueing a report for each that wants an event."""

import json
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.services import audit, encryption, projects
from runs.histories.selectors.causes import Cause
from runs.histories.services import chat_messages
from runs.histories.services.public_addresses import is_public
from runs.models import Campaign, Change, Project, Revision, Webhook, WebhookDelivery
from runs.shared.errors import ServiceError

EVENTS = (
    "change.found",
    "alarm.raised",
    "change.refuted",
    "upload.missing",
    "campaign.finished",
)
OF_KIND = {
    Change.Kind.STEP: "change.found",
    Change.Kind.MACHINE: "change.found",
    Change.Kind.ALARM: "alarm.raised",
}
PING = "ping"
SECRET_BYTES = 32
SHORTEST_SECRET = 16


@dataclass(frozen=True)
class NewWebhook:
    """A new webhook, and the secret of its signatures, which cannot be shown again."""

    webhook: Webhook
    secret: str


@transaction.atomic
def create(
    *,
    project: Project,
    url: str,
    kind: str = Webhook.Kind.SIGNED,
    events: Sequence[str] = EVENTS,
    secret: str = "",
) -> NewWebhook:
    """Create a webhook; without a secret it gets one of 256 random bits.

    Raises ServiceError `url_not_allowed`, `kind_unknown`, `event_unknown`, `no_event` or
    `secret_too_short`.
    """
    _check_kind(kind)
    _check_url(url)
    if secret and len(secret) < SHORTEST_SECRET:
        message = _("A secret has at least %(number)d characters.") % {
            "number": SHORTEST_SECRET
        }
        raise ServiceError("secret_too_short", message, field="secret")
    secret = secret or secrets.token_urlsafe(SECRET_BYTES)
    webhook = Webhook.objects.create(
        project=project,
        url=url,
        kind=kind,
        events=_checked(events),
        encrypted_secret=encryption.encrypt(secret).decode(),
    )
    audit.record("webhook_made", webhook, after=_described(webhook))
    return NewWebhook(webhook, secret)


@transaction.atomic
def change(
    *,
    webhook: Webhook,
    url: str | None = None,
    kind: str | None = None,
    events: Sequence[str] | None = None,
    is_active: bool | None = None,
) -> Webhook:
    """Change the fields that are given. What waits for one that is switched off is given up.

    Raises ServiceError as `create`.
    """
    before = _described(webhook)
    if url is not None:
        _check_url(url)
        webhook.url = url
    if kind is not None:
        _check_kind(kind)
        webhook.kind = kind
    if events is not None:
        webhook.events = _checked(events)
    if is_active is not None:
        webhook.is_active = is_active
    webhook.save()
    give_up(webhook.deliveries.all())
    audit.record("webhook_changed", webhook, before=before, after=_described(webhook))
    return webhook


def _described(webhook: Webhook) -> dict[str, Any]:
    """What the audit trail keeps: of the address the host only, for its path may be a secret."""
    host = urlsplit(webhook.url).hostname
    return {
        "host": host,
        "kind": webhook.kind,
        "events": webhook.events,
        "active": webhook.is_active,
    }


def give_up(deliveries: QuerySet[WebhookDelivery]) -> int:
    """Give up what waits for webhooks that are switched off; return how many.

    Pings are sent anyway: somebody has just asked for them.
    """
    unwanted = deliveries.filter(
        state=WebhookDelivery.State.WAITING, webhook__is_active=False
    )
    return unwanted.exclude(event=PING).update(
        state=WebhookDelivery.State.GIVEN_UP,
        next_try_at=None,
        problem=_("The webhook was switched off."),
    )


def remove(*, webhook: Webhook) -> None:
    """Remove a webhook, and everything that waits for it."""
    audit.record("webhook_removed", webhook, before=_described(webhook))
    webhook.delete()


def secret_of(webhook: Webhook) -> str:
    """The secret in clear text. Raises InvalidToken under another encryption key."""
    return encryption.decrypt(webhook.encrypted_secret.encode())


@transaction.atomic
def ping(*, webhook: Webhook) -> WebhookDelivery:
    """Queue a report without an event, to test the webhook."""
    return _queued([webhook], PING, {"project": webhook.project.slug})[0]


def queue(
    *, event: str, project_id: int | None, content: dict[str, Any], unless: str = ""
) -> None:
    """Queue a report for each webhook that wants it. Call it in the event's transaction.

    Those that want the event `unless` as well have had that one. What belongs to no project goes to
    the default one.
    """
    project = (
        Project.objects.filter(pk=project_id).first()
        if project_id
        else projects.default()
    )
    wanting = [
        webhook
        for webhook in Webhook.objects.filter(project=project, is_active=True).order_by(
            "pk"
        )
        if event in webhook.events and unless not in webhook.events
    ]
    if wanting and project:
        _queued(wanting, event, {"project": project.slug, **content})


def _queued(
    hooks: Sequence[Webhook], event: str, content: dict[str, Any]
) -> list[WebhookDelivery]:
    now = timezone.now()
    body = {"id": str(uuid.uuid4()), "event": event, "at": now.isoformat(), **content}
    payload_of = {
        kind: json.dumps(chat_messages.written(kind, body), ensure_ascii=False)
        for kind in {hook.kind for hook in hooks}
    }
    deliveries = WebhookDelivery.objects.bulk_create(
        [
            WebhookDelivery(
                webhook=hook,
                event=event,
                payload=payload_of[hook.kind],
                next_try_at=now,
            )
            for hook in hooks
        ]
    )
    for delivery in deliveries:
        celery_messages.deliver(delivery.pk)
    return deliveries


def _check_kind(kind: str) -> None:
    if kind not in Webhook.Kind.values:
        message = _("There is no kind %(kind)s; known are: %(known)s.")
        names = {"kind": kind, "known": ", ".join(Webhook.Kind.values)}
        raise ServiceError("kind_unknown", message % names, field="kind")


def _checked(events: Sequence[str]) -> list[str]:
    if not events:
        raise ServiceError("no_event", _("Choose at least one event."), field="events")
    for event in events:
        if event not in EVENTS:
            message = _("There is no event %(event)s; known are: %(known)s.")
            names = {"event": event, "known": ", ".join(EVENTS)}
            raise ServiceError("event_unknown", message % names, field="events")
    return [event for event in EVENTS if event in events]


def _check_url(url: str) -> None:
    """Refuse what is not an address of a web server. Where it leads is checked for each report."""
    try:
        url_parts = urlsplit(url)
        is_good = (
            url_parts.scheme in {"http", "https"}
            and bool(url_parts.hostname)
            and url_parts.username is None
            and url_parts.port != 0
        )
    except ValueError:
        is_good = False
    if not is_good:
        message = _(
            "“%(url)s” is not an address http(s)://host/path without a user name."
        )
        raise ServiceError("url_not_allowed", message % {"url": url}, field="url")
    if not settings.WEBHOOK_ALLOW_PRIVATE and _is_private(url_parts.hostname or ""):
        message = _("“%(host)s” is no public address: reports to it would be refused.")
        remedy = _(
            "To allow webhooks to your own network, set BENCHLAB_WEBHOOK_ALLOW_PRIVATE=1."
        )
        raise ServiceError(
            "url_not_allowed",
            message % {"host": url_parts.hostname},
            remedy=remedy,
            field="url",
        )


def _is_private(host: str) -> bool:
    """Whether a host is an address that may not be reached; where names lead is asked later."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not is_public(host)
    except ValueError:
        return False


def changed(*, cause: Cause, campaign: Campaign, without_alarms: bool = False) -> None:
    """`change.found`, `alarm.raised` or `change.refuted`; members of the project get mails too.

    `without_alarms` leaves out who has had an alarm of it.
    """
    is_refuted = cause.first.decision == Change.Decision.REFUTED
    for kind, event_kind in OF_KIND.items():
        event = "change.refuted" if is_refuted else event_kind
        cause_of_kind = cause.select_kind(kind)
        if cause_of_kind is not None:
            changes = [_change(change, campaign) for change in cause_of_kind.changes]
            _tell(
                event,
                campaign,
                {
                    "sentence": cause_of_kind.sentence,
                    "further_lines": cause_of_kind.further_lines,
                    "lines": cause_of_kind.lines,
                    "change": changes[0],
                    "changes": changes,
                },
                unless="alarm.raised" if without_alarms else "",
            )
    celery_messages.send_mails()


def _change(change: Change, campaign: Campaign) -> dict[str, Any]:
    names = (
        "kind",
        "verdict",
        "ratio",
        "before",
        "after",
        "facts",
        "decision",
        "reason",
    )
    commit = change.cell.revision
    return {
        "id": change.pk,
        **{name: getattr(change, name) for name in names},
        "metric": change.metric.name,
        "unit": change.metric.unit,
        "levels": change.cell.levels,
        "revision": commit and _commit(commit),
        "run": change.run_id,
        "url": address(history_path(campaign, change)),
    }


def _commit(commit: Revision) -> dict[str, Any]:
    names = ("sha", "ref", "url", "subject", "author")
    committed_at = commit.committed_at.isoformat() if commit.committed_at else None
    return {
        **{name: getattr(commit, name) for name in names},
        "committed_at": committed_at,
    }


def missing(*, campaign: Campaign, since: datetime | None) -> None:
    """`upload.missing`: no upload for longer than the campaign expects."""
    every = campaign.expected_every.total_seconds() if campaign.expected_every else None
    content = {
        "expected_every": every,
        "last_upload_at": since.isoformat() if since else None,
    }
    _tell("upload.missing", campaign, content)


def finished(*, campaign: Campaign) -> None:
    """`campaign.finished`: every run of a campaign that was queued here has ended."""
    _tell("campaign.finished", campaign, {})


def address(path: str) -> str:
    """A path as an absolute address, if the site knows its own (`BENCHLAB_URL`)."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}"


def campaign_path(campaign: Campaign) -> str:
    """The page of a campaign. To ask the pages for it would load them all: 20 MB and a second."""
    return f"/campaigns/{campaign.slug}/"


def history_path(campaign: Campaign, change: Change) -> str:
    """The page of the change's history, at the change."""
    path = f"{campaign_path(campaign)}history/"
    return f"{path}?metric={change.metric.name}#change-{change.pk}"


def _tell(
    event: str, campaign: Campaign, content: dict[str, Any], *, unless: str = ""
) -> None:
    about = {
        "slug": campaign.slug,
        "title": campaign.title,
        "state": campaign.state,
        "url": address(campaign_path(campaign)),
    }
    queue(
        event=event,
        project_id=campaign.project_id,
        content={"campaign": about, **content},
        unless=unless,
    )
