"""Access: the audit trail over the API."""

from rest_framework import serializers

from runs.access import addresses
from runs.access.filters import AuditFilters
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.models import AuditEntry
from runs.shared.api.doors import ReadOnlyDoor


class AuditSerializer(serializers.Serializer[AuditEntry]):
    """One act; `before` and `after` have what it changed, and never a secret."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    by_way_of = serializers.CharField()
    action = serializers.CharField()
    subject = serializers.CharField()
    project = serializers.CharField(
        source="project.slug", allow_null=True, default=None
    )
    before = serializers.DictField()
    after = serializers.DictField()


@addresses.door(
    {
        "audit-detail": addresses.reading(Right.AUDIT),
        "audit-list": addresses.reading(Right.AUDIT),
    }
)
class AuditDoor(ReadOnlyDoor[AuditEntry]):
    """The audit trail: who did what, of the projects whose trail the reader may read. What belongs
    to none is an administrator's. The newest first."""

    queryset = AuditEntry.objects.all()
    listed = staticmethod(permissions.readable_audit)
    lookup_value_converter = "int"
    serializer_class = AuditSerializer
    filterset_class = AuditFilters
