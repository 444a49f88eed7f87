"""Mails to the members of a project: changes in its histories, and missing uploads.

Off without `EMAIL_URL`. A mail is claimed in a transaction that is over before the mail server is
asked, and recorded in another one. So each is sent at least once: again after `TRY_TAKES` if its
worker was killed before it recorded what the mail server had taken.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta
from smtplib import SMTPException
from typing import TypeVar

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs import celery_messages
from runs.cells.selectors.level_texts import level
from runs.histories.selectors import causes
from runs.histories.selectors.causes import Cause
from runs.histories.services import webhooks
from runs.models import Campaign, Change, Project
from runs.shared import copies

logger = logging.getLogger(__name__)

# Older changes are not news: mails may have been switched on today.
NEWS_FOR = timedelta(days=1)
MOST_AT_ONCE = 200
# Until then nobody else tries. A mail server may be silent for EMAIL_TIMEOUT in each step.
TRY_TAKES = timedelta(minutes=5)
LONGEST_SUBJECT = 160
RELATED = (
    "cell__campaign__project",
    "cell__campaign__scenario",
    "cell__revision",
    "metric",
    "run",
)


def wake() -> None:
    """Wake a worker if something waits to be mailed."""
    if settings.SENDS_MAIL and (_waiting().exists() or _absences().exists()):
        celery_messages.send_mails()


def send() -> int:
    """Send what waits and return the number of mails.

    Changes become one mail per project, missing uploads one mail per campaign. No transaction is
    open while a mail server is asked: nothing waits for it. What it refused, or could not be asked,
    is tried again the next time, and what a killed worker was sending after `TRY_TAKES`.
    """
    if not settings.SENDS_MAIL or copies.is_held():
        return 0
    projects = set(_waiting().values_list("cell__campaign__project", flat=True))
    absences = list(_absences().values_list("pk", flat=True))
    sent = sum(map(_send_changes, projects))
    return sent + sum(map(_send_absence, absences))


_Mailed = TypeVar("_Mailed", Change, Campaign)


@transaction.atomic
def _claim(waiting: QuerySet[_Mailed]) -> list[_Mailed]:
    """Those of them that nobody else is mailing; from now on this worker is."""
    mailed = list(
        waiting.select_for_update(skip_locked=True, of=("self",))[:MOST_AT_ONCE]
    )
    keys = [mail.pk for mail in mailed]
    waiting.model.objects.filter(pk__in=keys).update(mailing_since=timezone.now())
    return mailed


def _is_free() -> Q:
    return Q(mailing_since=None) | Q(mailing_since__lt=timezone.now() - TRY_TAKES)


def _waiting() -> QuerySet[Change]:
    since = timezone.now() - NEWS_FOR
    is_news = Q(found_at__gte=since) | Q(settled_at__gte=since)
    return Change.objects.filter(_is_free(), is_news, mailed_at=None).order_by("pk")


def _absences() -> QuerySet[Campaign]:
    """Campaigns whose missing uploads were reported lately, but not mailed yet."""
    unmailed = Q(missing_mailed_at=None) | Q(missing_mailed_at__lt=F("missing_told_at"))
    since = timezone.now() - NEWS_FOR
    absent = Campaign.objects.filter(_is_free(), unmailed, missing_told_at__gte=since)
    return (
        absent.filter(expected_every__isnull=False)
        .select_related("project")
        .order_by("pk")
    )


def _send_changes(project_id: int | None) -> int:
    of_project = _waiting().filter(cell__campaign__project=project_id)
    changes = _claim(of_project.select_related(*RELATED))
    if not changes:
        return 0
    receivers = _receivers(changes[0].cell.campaign.project)
    cause_list = causes.find_causes(changes)
    text = "\n\n".join(map(_item, cause_list)) + "\n"
    is_mailed = _mailed(_subject(cause_list), text, receivers)
    claimed = Change.objects.filter(pk__in=[change.pk for change in changes])
    claimed.update(mailing_since=None, mailed_at=timezone.now() if is_mailed else None)
    return int(is_mailed and bool(receivers))


def _send_absence(campaign_id: int) -> int:
    campaign = next(iter(_claim(_absences().filter(pk=campaign_id))), None)
    if campaign is None:
        return 0
    receivers = _receivers(campaign.project)
    subject = _("BenchLab: no more uploads to %(campaign)s") % {
        "campaign": campaign.slug
    }
    is_mailed = _mailed(subject, _text_of_absence(campaign), receivers)
    # Of this absence, and not of a new one reported while this mail was being sent.
    mailed = campaign.missing_told_at if is_mailed else campaign.missing_mailed_at
    claimed = Campaign.objects.filter(pk=campaign.pk)
    claimed.update(mailing_since=None, missing_mailed_at=mailed)
    return int(is_mailed and bool(receivers))


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
    last_upload = (
        campaign.runs.order_by("-pk").values_list("queued_at", flat=True).first()
    )
    words = {
        "campaign": campaign.slug,
        "every": campaign.expected_every,
        "last": f"{last_upload:%Y-%m-%d %H:%M} UTC" if last_upload else _("never"),
    }
    sentence = _(
        "%(campaign)s expects an upload every %(every)s (days, hours:minutes:seconds)."
        " The last one arrived: %(last)s. Check the job that uploads."
    )
    url = webhooks.address(webhooks.campaign_path(campaign))
    return f"{sentence % words}\n{url}\n"


def _subject(cause_list: Sequence[Cause]) -> str:
    campaigns = sorted({cause.first.cell.campaign.slug for cause in cause_list})
    number = len(cause_list)
    if number == 1 and cause_list[0].first.decision != Change.Decision.REFUTED:
        values_of_one = {"campaign": campaigns[0], "told": cause_list[0].lines[0]}
        return " ".join(
            (_("BenchLab: %(campaign)s, %(told)s") % values_of_one).split()
        )[:LONGEST_SUBJECT]
    words = {"number": number, "campaigns": ", ".join(campaigns[:3])}
    subject = ngettext(
        "BenchLab: %(number)d change in %(campaigns)s",
        "BenchLab: %(number)d changes in %(campaigns)s",
        number,
    )
    return subject % words


def _item(cause: Cause) -> str:
    """The sentence that lists and the history have, with what it leaves out."""
    campaign = cause.first.cell.campaign
    if cause.first.decision == Change.Decision.REFUTED:
        words = {"campaign": campaign.slug, "since": cause.beginning}
        words["reason"] = cause.first.get_reason_display()
        lines = [
            _("%(campaign)s, since %(since)s: refuted, %(reason)s.") % words,
            *cause.lines,
        ]
    else:
        lines = [f"{campaign.slug}: {cause.sentence}", *cause.further_lines]
    if len(cause.changes) == 1 and (condition := _condition(cause.first)):
        lines.append(condition)
    if any(change.kind == Change.Kind.ALARM for change in cause.changes):
        lines.append(_("An alarm: two jobs agree on it."))
    return "\n".join(
        [*lines, webhooks.address(webhooks.history_path(campaign, cause.first))]
    )


def _condition(change: Change) -> str:
    return ", ".join(level(value, name) for name, value in change.cell.levels.items())
