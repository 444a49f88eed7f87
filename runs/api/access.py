"""Access: the audit trail over the API."""

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers

from runs.api.doors import ReadOnlyDoor
from runs.models import AuditEntry
from runs.selectors.access import permissions


class AuditFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which entries."""

    actor = django_filters.CharFilter("actor", label="Name of who acted.")
    action = django_filters.CharFilter("action", label="What was done, such as run_withdrawn.")
    subject = django_filters.CharFilter("subject", label="What it was done to: run 12, server db1.")
    project = django_filters.CharFilter(method="of_project", label="Slug of the project.")

    def of_project(
        self, rows: QuerySet[AuditEntry], _name: str, value: str
    ) -> QuerySet[AuditEntry]:
        """Those of a project."""
        return permissions.audit_of_project(rows, value)


class AuditSerializer(serializers.Serializer[AuditEntry]):
    """One act; `before` and `after` have what it changed, and never a secret."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    by_way_of = serializers.CharField()
    action = serializers.CharField()
    subject = serializers.CharField()
    project = serializers.CharField(source="project.slug", allow_null=True, default=None)
    before = serializers.DictField()
    after = serializers.DictField()


class AuditDoor(ReadOnlyDoor[AuditEntry]):
    """The audit trail: who did what, of the projects whose trail the reader may read. What belongs
    to none is an administrator's. The newest first."""

    queryset = AuditEntry.objects.all()
    listed = staticmethod(permissions.readable_audit)
    lookup_value_converter = "int"
    serializer_class = AuditSerializer
    filterset_class = AuditFilters
