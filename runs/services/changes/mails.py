"""Mails to the members of a project: changes in its histories, and missing uploads.

Off without `EMAIL_URL`.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail
from django.db import connection, transaction
from django.db.models import F, Max, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs import dispatch
from runs.models import Campaign, Change, Project
from runs.services.changes import events

logger = logging.getLogger(__name__)

# Older changes are not news: mails may have been switched on today.
NEWS_FOR = timedelta(days=1)
MOST_CHANGES = 200
# Whoever holds it sends mails; see LOCK in changes.py for the other one.
LOCK = (0x6D61696C, 0)
RELATED = ("cell__campaign__project", "cell__revision", "metric", "run")


def wake() -> None:
    """Wake a worker if something waits to be mailed."""
    if settings.SENDS_MAIL and (_waiting().exists() or _absences().exists()):
        dispatch.send_mails()


def send() -> int:
    """Send what waits and return the number of mails.

    Changes become one mail per project, missing uploads one mail per campaign. One worker at a time
    sends, and locks no row while it does: uploads do not wait for a mail server. What could not be
    sent, refused or lost with a killed worker, is tried again the next time.
    """
    if not settings.SENDS_MAIL:
        return 0
    projects = set(_waiting().values_list("cell__campaign__project", flat=True))
    absences = list(_absences().values_list("pk", flat=True))
    sent = sum(_in_turn(partial(_send_changes, project)) for project in projects)
    return sent + sum(_in_turn(partial(_send_absence, campaign)) for campaign in absences)


@transaction.atomic
def _in_turn(send_one: Callable[[], int]) -> int:
    """Send one mail, unless somebody else is sending: then nothing.

    The lock is the transaction's, as PgBouncer may give the next one another connection. What waits
    is read behind it, and so not sent twice.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", LOCK)
        is_ours = bool(cursor.fetchone()[0])
    return send_one() if is_ours else 0


def _send_changes(project_id: int | None) -> int:
    of_project = _waiting().filter(cell__campaign__project=project_id)
    changes = list(of_project.select_related(*RELATED)[:MOST_CHANGES])
    return _send(changes[0].cell.campaign.project, changes) if changes else 0


def _waiting() -> QuerySet[Change]:
    since = timezone.now() - NEWS_FOR
    return Change.objects.filter(mailed_at=None, found_at__gte=since).order_by("pk")


def _absences() -> QuerySet[Campaign]:
    """Campaigns whose missing uploads were reported lately, but not mailed yet."""
    unmailed = Q(missing_mailed_at=None) | Q(missing_mailed_at__lt=F("missing_told_at"))
    since = timezone.now() - NEWS_FOR
    told = Campaign.objects.filter(unmailed, missing_told_at__gte=since)
    return told.filter(expected_every__isnull=False).select_related("project").order_by("pk")


def _send(project: Project | None, changes: Sequence[Change]) -> int:
    receivers = _receivers(project)
    if not _mailed(_subject(changes), _text(changes), receivers):
        return 0
    now = timezone.now()
    Change.objects.filter(pk__in=[change.pk for change in changes]).update(mailed_at=now)
    return 1 if receivers else 0


def _send_absence(campaign_id: int) -> int:
    campaign = _absences().filter(pk=campaign_id).first()
    if campaign is None:
        return 0
    receivers = _receivers(campaign.project)
    subject = _("BenchLab: uploads to %(campaign)s stay away") % {"campaign": campaign.slug}
    if not _mailed(subject, _text_of_absence(campaign), receivers):
        return 0
    # Of this absence, and not of a new one reported while this mail was being sent.
    Campaign.objects.filter(pk=campaign.pk).update(missing_mailed_at=campaign.missing_told_at)
    return 1 if receivers else 0


def _mailed(subject: str, text: str, receivers: list[str]) -> bool:
    """Whether nothing is left to send: the mail server took it, or nobody is to receive it."""
    if not receivers:
        return True
    try:
        send_mail(subject, text, None, receivers)
    except (SMTPException, OSError):
        logger.exception("a mail could not be sent")
        return False
    return True


def _receivers(project: Project | None) -> list[str]:
    if project is None:
        return []
    members = project.members.filter(is_active=True).exclude(email="").order_by("email")
    return list(members.values_list("email", flat=True))


def _text_of_absence(campaign: Campaign) -> str:
    last = campaign.runs.aggregate(last=Max("queued_at"))["last"]
    words = {
        "campaign": campaign.slug,
        "every": campaign.expected_every,
        "last": f"{last:%Y-%m-%d %H:%M} UTC" if last else _("never"),
    }
    told = _(
        "%(campaign)s expects an upload every %(every)s (days, hours:minutes:seconds)."
        " The last one came: %(last)s. Look at the job that uploads."
    )
    url = events.address(reverse("campaign-detail", args=[campaign.slug]))
    return f"{told % words}\n{url}\n"


def _subject(changes: Sequence[Change]) -> str:
    campaigns = sorted({change.cell.campaign.slug for change in changes})
    number = len(changes)
    words = {"number": number, "campaigns": ", ".join(campaigns[:3])}
    subject = ngettext(
        "BenchLab: %(number)d change in %(campaigns)s",
        "BenchLab: %(number)d changes in %(campaigns)s",
        number,
    )
    return subject % words


def _text(changes: Sequence[Change]) -> str:
    return "\n\n".join(_line(change) for change in changes) + "\n"


def _line(change: Change) -> str:
    cell = change.cell
    words = {
        "campaign": cell.campaign.slug,
        "metric": change.metric.name,
        "levels": ", ".join(f"{name} {level}" for name, level in cell.levels.items()),
        "effect": f"{(change.ratio - 1) * 100:+.1f} %",
        "verdict": change.verdict,
        "since": str(cell.revision) if cell.revision else f"{change.run.started_at:%Y-%m-%d}",
        "url": events.history_address(cell.campaign, change),
    }
    if change.kind == Change.Kind.ALARM:
        told = _("%(campaign)s: %(metric)s (%(levels)s) of %(since)s alone is off by %(effect)s.")
    else:
        told = _(
            "%(campaign)s: %(metric)s (%(levels)s) is %(verdict)s from %(since)s on: %(effect)s."
        )
    return f"{told % words}\n{words['url']}"
