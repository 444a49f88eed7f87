"""Whether this results database may be a copy of one that is still in use; see `Instance`."""

import logging

from django.db.models import Exists, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Instance
from runs.shared.errors import ServiceError

logger = logging.getLogger(__name__)


def is_held() -> bool:
    """Whether nothing may run, be sent or be queued by itself. One query."""
    return Instance.objects.exclude(held_since=None).exists()


def not_held() -> Q:
    """The condition of a query that finds nothing while the results database is held."""
    return ~Q(Exists(Instance.objects.exclude(held_since=None)))


def require_not_held() -> None:
    """Raise ServiceError `held` while a person has to say who uses the servers."""
    if is_held():
        message = _(
            "Nothing runs here, is sent or backed up: this results database may be a copy."
        )
        remedy = _(
            "Say on the page /take-over/, or by manage.py take_over, who uses its servers."
        )
        raise ServiceError("held", message, remedy=remedy)


def hold(reason: str, at: str = "") -> None:
    """Let nothing run or be sent until somebody has said who uses the servers."""
    Instance.objects.get_or_create(pk=1)
    free = Instance.objects.filter(held_since=None)
    if free.update(held_since=timezone.now(), held_by=reason, held_at=at[:80]):
        logger.error(
            "this results database may be a copy (%s %s): nothing runs", reason, at
        )
