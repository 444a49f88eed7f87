"""The audit trail: what of it somebody may read."""

from django.contrib.auth.models import User
from django.db.models import QuerySet

from runs.models import AuditEntry, Token
from runs.selectors.access import permissions
from runs.selectors.access.permissions import Actor
from runs.selectors.access.rights import Right


def readable(reader: Actor) -> QuerySet[AuditEntry]:
    """The entries of those projects in which the reader may read them, the newest first.

    What belongs to no project (servers, keys) is an administrator's. A token reads those of its
    own project.
    """
    entries = AuditEntry.objects.select_related("project").order_by("-pk")
    if isinstance(reader, Token):
        return entries.filter(project=reader.project_id)
    if not isinstance(reader, User):
        return entries.none()
    projects = permissions.may_in(reader, Right.AUDIT)
    return entries if projects is None else entries.filter(project__in=projects)
