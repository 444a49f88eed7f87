"""Maintenance of a server: no run starts on it; the one in progress ends as usual."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.services import audit
from runs.models import Server
from runs.shared.errors import ServiceError


@transaction.atomic
def begin(*, server: Server, reason: str, until: datetime | None = None) -> Server:
    """Start no run on a server until then, or until further notice. Raises `until_is_past`."""
    if until is not None and until <= timezone.now():
        message = _("The end time is in the past.")
        remedy = _("Give a time in the future, or none.")
        raise ServiceError("until_is_past", message, remedy=remedy, field="until")
    Server.objects.filter(pk=server.pk).update(
        maintenance_since=timezone.now(),
        maintenance_until=until,
        maintenance_reason=reason.strip(),
    )
    server.refresh_from_db()
    details = {"reason": server.maintenance_reason, "until": until}
    audit.record("maintenance_begun", server, after=details)
    return server


@transaction.atomic
def end(*, server: Server) -> Server:
    """Allow runs to start again. Raises `not_maintained`."""
    changed = Server.objects.filter(
        pk=server.pk, maintenance_since__isnull=False
    ).update(maintenance_since=None, maintenance_until=None, maintenance_reason="")
    if not changed:
        raise ServiceError("not_maintained", _("This server is not being maintained."))
    celery_messages.wake(server.pk)
    server.refresh_from_db()
    audit.record("maintenance_ended", server)
    return server
